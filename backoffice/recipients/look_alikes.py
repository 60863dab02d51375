"""Accounts, addresses and user names that can be mistaken for each other, compared over the whole register."""

from django.db.models import Q

from backoffice.recipients.keys import normalised_address
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
