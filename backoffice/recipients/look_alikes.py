"""Accounts, addresses and user names that can be mistaken for each other, compared over the whole register.

One account is compared by a query. Many are compared with the whole register, and with each other, in one pass over it:
they are indexed by what is left equal when one can be mistaken for another, and every recipient of the register is
looked up once. So the time grows with the register, not with the register times the number of accounts.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from django.db.models import Q

from backoffice.recipients.keys import ADDRESS_PREFIX, BANK_PREFIX, USER_PREFIX, normalised_address
from backoffice.recipients.models import RecipientState, RecipientType, RecipientVersion
from backoffice.recipients.register import newest_versions

# Characters that people compare at either end, after the prefix common to all addresses of a network.
COMPARED_CHARACTERS = 3
# Up to this many differing characters between addresses of the same length count as a typing error.
MAX_DIFFERENT_CHARACTERS = 4
_COMMON_PREFIXES = ("0x", "bc1", "tb1", "T")
_MIN_EQUAL_RUN = 3  # an equal part between two differences is shown separately only from this length
_SHOWN = 3
CONFUSABLE = str.maketrans({"0": "o", "1": "l", "i": "l", "5": "s", "_": "", "-": "", ".": ""})
MOST_NAMED = 3
"""So many similar recipients of an account are named."""
_AT_ONCE = 2_000
_ASKED_AT_MOST = 20
"""More accounts than that are compared with all rows of the register, and not with those that a query finds."""
_TYPES = {
    BANK_PREFIX: RecipientType.BANK,
    ADDRESS_PREFIX: RecipientType.ADDRESS,
    USER_PREFIX: RecipientType.USER,
}


def visible_ends(address: str) -> tuple[str, str]:
    """What people notice of an address, in lower case: its start after the common prefix, and its end."""
    common = next((len(start) for start in _COMMON_PREFIXES if address.startswith(start)), 0)
    return address[: common + COMPARED_CHARACTERS].lower(), address[-COMPARED_CHARACTERS:].lower()


def looks_alike(one: str, other: str) -> bool:
    """Whether two different addresses can be mistaken for each other."""
    if normalised_address(one) == normalised_address(other):
        return False
    return (
        visible_ends(one) == visible_ends(other) or _count_differences(one, other) <= MAX_DIFFERENT_CHARACTERS
    )


def is_one_slip_away(one: str, other: str) -> bool:
    """Whether one character differs, is missing or is added, or two neighbours are swapped."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    start = _common_prefix_length(one, other)
    rest, other_rest = one[start:], other[start:]
    swapped = rest[1:2] + rest[:1] + rest[2:]
    return (
        rest[1:] == other_rest[1:]
        or rest[1:] == other_rest
        or rest == other_rest[1:]
        or swapped == other_rest
    )


def mark_differences(address: str, beside: str) -> str:
    """The address, with what differs from the other one in square brackets."""
    if len(address) != len(beside):
        head, tail = (
            _common_prefix_length(address, beside),
            _common_prefix_length(address[::-1], beside[::-1]),
        )
        end = max(head, len(address) - tail)
        return f"{address[:head]}[{address[head:end]}]{address[end:]}"
    text, at = "", 0
    for start, end in _differing_runs(address, beside):
        text, at = f"{text}{address[at:start]}[{address[start:end]}]", end
    return text + address[at:]


def similar_recipients(kind: RecipientType, account: str, key: str) -> list[RecipientVersion]:
    """Recipients of the register, not retired, whose account can be mistaken for this one. One query."""
    others = newest_versions().filter(type=kind).exclude(key=key).exclude(state=RecipientState.RETIRED)
    found: list[RecipientVersion] = []
    for other in others.filter(could_be_similar(kind, account)).order_by("pk").iterator():
        if is_similar(kind, account, other.account):
            found.append(other)
        if len(found) == _SHOWN:
            break
    return found


def could_be_similar(kind: RecipientType, account: str) -> Q:
    """A condition that all recipients of this type meet for which `is_similar` holds, and others too."""
    if kind == RecipientType.BANK:
        # One slip leaves either end as it is.
        half = max(len(account) // 2 - 1, 1)
        return Q(account__startswith=account[:half]) | Q(account__endswith=account[-half:])
    # Of an address, four differences leave one fifth as it is.
    return _shares_a_part(account) if kind == RecipientType.ADDRESS else Q()


def namesakes(kind: RecipientType, names: set[str], key: str) -> list[RecipientVersion]:
    """Recipients of the register, not retired, with one of these names and another account. One query."""
    others = newest_versions().filter(type=kind).exclude(key=key).exclude(state=RecipientState.RETIRED)
    same = Q()
    for name in sorted(names - {""}):
        same |= Q(name__iexact=name) | Q(alias__iexact=name)
    return list(others.filter(same).order_by("pk")[:_SHOWN]) if same else []


def is_similar(kind: RecipientType, one: str, other: str) -> bool:
    """Whether two accounts of this type can be mistaken for each other."""
    if kind == RecipientType.ADDRESS:
        return looks_alike(one, other)
    if kind == RecipientType.BANK:
        return one == other or is_one_slip_away(one, other)
    folded, other_folded = one.casefold(), other.casefold()
    plain = folded.translate(CONFUSABLE) == other_folded.translate(CONFUSABLE)
    return plain or (len(folded) > SHORT_NAME and is_one_slip_away(folded, other_folded))


SHORT_NAME = 3
"""User names of so few characters differ by one from too many others."""


def _shares_a_part(address: str) -> Q:
    """Addresses with an equal part at the same place, or with the same visible ends; more than look alike."""
    head, tail = visible_ends(address)
    found = Q(account__istartswith=head, account__iendswith=tail)
    size = max(len(address) // (MAX_DIFFERENT_CHARACTERS + 1), 1)
    for place in range(MAX_DIFFERENT_CHARACTERS + 1):
        found |= Q(account__icontains=address[place * size : (place + 1) * size])
    return found


def _count_differences(one: str, other: str) -> int:
    if len(one) != len(other):
        return max(len(one), len(other))
    return sum(a != b for a, b in zip(normalised_address(one), normalised_address(other), strict=True))


def _common_prefix_length(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _differing_runs(one: str, other: str) -> list[tuple[int, int]]:
    """Start and end of each difference between equally long texts; short equal parts are included."""
    runs: list[tuple[int, int]] = []
    for place, (a, b) in enumerate(zip(normalised_address(one), normalised_address(other), strict=True)):
        if a == b:
            continue
        if runs and place - runs[-1][1] < _MIN_EQUAL_RUN:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


@dataclass(frozen=True)
class ComparedAccount:
    """An account that is compared, with the names it goes by; `names` are ignored where only accounts count."""

    type: RecipientType
    key: str
    account: str
    names: tuple[str, ...] = ()


def account_of(key: str) -> ComparedAccount | None:
    """The account that this key identifies; None if it identifies none."""
    prefix = next((prefix for prefix in _TYPES if key.startswith(prefix)), None)
    if prefix is None:
        return None
    account = key.removeprefix(prefix)
    if prefix == BANK_PREFIX:
        account = account.rpartition(":")[2]
    return ComparedAccount(_TYPES[prefix], key, account)


@dataclass(frozen=True)
class SimilarAccount:
    """A recipient of the register, or another of the compared accounts, whose number is `number` then."""

    title: str
    account: str
    bank: str = ""
    number: int = 0


@dataclass
class Similarities:
    """What can be mistaken for an account, and who goes by its name with another account."""

    accounts: list[SimilarAccount] = field(default_factory=list)
    names: list[SimilarAccount] = field(default_factory=list)


def compare_with_register(compared: Mapping[int, ComparedAccount]) -> dict[int, Similarities]:
    """Of each account, by its number: the similar ones among these and in the register, at most `MOST_NAMED`."""
    index = _Index(compared)
    found: dict[int, Similarities] = defaultdict(Similarities)
    for number, account in compared.items():
        own = SimilarAccount(account.names[0] if account.names else "", account.account, number=number)
        index.add_matches(found, account, own, but=number)
    _add_registered(found, compared, index)
    return dict(found)


def similar_in_register(compared: Mapping[int, ComparedAccount]) -> dict[int, Similarities]:
    """The same in the register only, so that similar accounts among these do not displace one of the register."""
    found: dict[int, Similarities] = defaultdict(Similarities)
    _add_registered(found, compared, _Index(compared))
    return dict(found)


def _add_registered(
    found: dict[int, Similarities], compared: Mapping[int, ComparedAccount], index: "_Index"
) -> None:
    """Add the recipients of the register, without those that are retired."""
    of_types = newest_versions().filter(type__in={one.type for one in compared.values()})
    columns = ("type", "key", "account", "name", "alias", "bank")
    rows = of_types.exclude(state=RecipientState.RETIRED).order_by("pk").values_list(*columns)
    for kind, key, account, name, alias, bank in rows.iterator(chunk_size=_AT_ONCE):
        other = ComparedAccount(RecipientType(kind), key, account, (name, alias))
        index.add_matches(found, other, SimilarAccount(alias or name, account, bank))


def similar_keys(keys: Collection[str]) -> dict[str, set[str]]:
    """Of each of these keys: those in the register whose accounts can be mistaken for its own, approved or retired
    since. One query.
    """
    compared = {
        number: one for number, key in enumerate(sorted(keys)) if (one := account_of(key)) is not None
    }
    rows = RecipientVersion.objects.filter(type__in={one.type for one in compared.values()})
    if len(compared) <= _ASKED_AT_MOST:
        near = Q(pk__in=[])
        for one in compared.values():
            near |= Q(could_be_similar(one.type, one.account), type=one.type)
        rows = rows.filter(near)
    index = _Index(compared)
    found: dict[str, set[str]] = defaultdict(set)
    of_agreed = rows.exclude(state=RecipientState.SUGGESTED).order_by().values_list("type", "key", "account")
    for kind, key, account in of_agreed.distinct().iterator(chunk_size=_AT_ONCE):
        for number in index.similar_to(ComparedAccount(RecipientType(kind), key, account)):
            found[compared[number].key].add(key)
    return dict(found)


class _Index:
    """The compared accounts by what remains equal of accounts that can be mistaken for each other, and by name."""

    def __init__(self, compared: Mapping[int, ComparedAccount]) -> None:
        self._compared = compared
        self._slips = _either_half if len(compared) <= _FEW else _with_one_left_out
        self._by_trait: dict[tuple[object, ...], list[int]] = defaultdict(list)
        self._by_name: dict[str, list[int]] = defaultdict(list)
        for number, one in compared.items():
            for trait in self._traits(one.type, one.account):
                self._by_trait[trait].append(number)
            for name in _folded(one.names):
                self._by_name[name].append(number)

    def add_matches(
        self,
        found: dict[int, Similarities],
        other: ComparedAccount,
        shown: SimilarAccount,
        but: int | None = None,
    ) -> None:
        """Add the other one to all that it can be mistaken for, and to all that go by its name."""
        for number in self.similar_to(other):
            if number != but:
                _add(found[number].accounts, shown)
        named = {number for name in _folded(other.names) for number in self._by_name.get(name, ())}
        for number in named - {but}:
            one = self._compared[number]
            if one.key != other.key and one.type == other.type:
                _add(found[number].names, shown)

    def similar_to(self, other: ComparedAccount) -> set[int]:
        """The numbers of the accounts that the other one can be mistaken for."""
        near = {
            number
            for trait in self._traits(other.type, other.account)
            for number in self._by_trait.get(trait, ())
        }
        return {
            number
            for number in near
            if (one := self._compared[number]).key != other.key
            and is_similar(one.type, one.account, other.account)
        }

    def _traits(self, kind: RecipientType, account: str) -> Iterator[tuple[object, ...]]:
        """What two accounts have in common at least if `is_similar`, and others may have too."""
        if kind == RecipientType.BANK:
            yield from (("bank", rest) for rest in self._slips(account))
        elif kind == RecipientType.ADDRESS:
            yield ("ends", *visible_ends(account))
            # Four differences leave one of five parts as it is.
            same, parts = normalised_address(account), MAX_DIFFERENT_CHARACTERS + 1
            size = max(len(same) // parts, 1)
            for place in range(parts):
                yield "part", len(same), place, same[place * size : (place + 1) * size]
        else:
            folded = account.casefold()
            yield "user", folded.translate(CONFUSABLE)
            if len(folded) > SHORT_NAME:
                yield from (("slip", rest) for rest in self._slips(folded))


def _add(shown: list[SimilarAccount], one: SimilarAccount) -> None:
    if len(shown) < MOST_NAMED and one not in shown:
        shown.append(one)


def _folded(names: tuple[str, ...]) -> set[str]:
    return {name.casefold() for name in names if name}


_FEW = 100
"""Up to so many accounts it is faster to look up halves, which others have too, than all that one slip leaves."""


def _either_half(text: str) -> set[str]:
    """The start and the end of the text, of which one slip leaves one as it is, also in a text longer by one."""
    halves = {max((len(text) + longer) // 2 - 1, 1) for longer in (-1, 0, 1)}
    return {part for half in halves for part in (f"{text[:half]}…", f"…{text[-half:]}")}


def _with_one_left_out(text: str) -> set[str]:
    """The text, and the text without each one of its characters: what texts one slip apart have in common."""
    return {text, *(text[:place] + text[place + 1 :] for place in range(len(text)))}
