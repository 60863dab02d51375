"""Many accounts compared with the whole register, and with each other, in one pass over it.

The accounts are indexed by what is left equal when one can be mistaken for another; every recipient of the register is
looked up once. So the time grows with the register, not with the register times the number of accounts.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from backoffice.recipients.keys import normalised_address
from backoffice.recipients.look_alikes import (
    CONFUSABLE,
    MAX_DIFFERENT_CHARACTERS,
    SHORT_NAME,
    is_similar,
    visible_ends,
)
from backoffice.recipients.models import RecipientState, RecipientType
from backoffice.recipients.register import newest_versions

MOST_NAMED = 3
"""So many similar recipients of an account are named."""
_AT_ONCE = 2_000


@dataclass(frozen=True)
class ComparedAccount:
    """An account that is compared, with the names it goes by; `names` are ignored where only accounts count."""

    type: RecipientType
    key: str
    account: str
    names: tuple[str, ...] = ()


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
    """Of each account, by its number: the similar ones, at most `MOST_NAMED`. Retired recipients do not count."""
    index = _Index(compared)
    found: dict[int, Similarities] = defaultdict(Similarities)
    for number, account in compared.items():
        own = SimilarAccount(account.names[0] if account.names else "", account.account, number=number)
        index.add_matches(found, account, own, but=number)
    of_types = newest_versions().filter(type__in={one.type for one in compared.values()})
    columns = ("type", "key", "account", "name", "alias", "bank")
    rows = of_types.exclude(state=RecipientState.RETIRED).order_by("pk").values_list(*columns)
    for kind, key, account, name, alias, bank in rows.iterator(chunk_size=_AT_ONCE):
        other = ComparedAccount(RecipientType(kind), key, account, (name, alias))
        index.add_matches(found, other, SimilarAccount(alias or name, account, bank))
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
        near = {
            number
            for trait in self._traits(other.type, other.account)
            for number in self._by_trait.get(trait, ())
        }
        for number in near - {but}:
            one = self._compared[number]
            if one.key != other.key and is_similar(one.type, one.account, other.account):
                _add(found[number].accounts, shown)
        named = {number for name in _folded(other.names) for number in self._by_name.get(name, ())}
        for number in named - {but}:
            one = self._compared[number]
            if one.key != other.key and one.type == other.type:
                _add(found[number].names, shown)

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
