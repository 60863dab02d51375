"""Addresses that people take for one another: the same at both ends, or all but the same (address poisoning)."""

ENDS = 3  # characters that people compare at either end, beside what all addresses of a network begin with
SLIPS = 4  # so many differing characters in an address of the same length are one slip of a finger or two
_BEGINNINGS = ("0x", "bc1", "tb1", "T")
_SHORTEST_AGREEMENT = 3  # what agrees for less than this between two differences is not worth a break


def same_form(address: str) -> str:
    """The same text for the same address: where a network knows no capitals (0x…, bc1…), they do not count."""
    return address.lower() if address.lower().startswith(("0x", "bc1", "tb1")) else address


def ends_of(address: str) -> tuple[str, str]:
    """What people see of it at a glance, in small letters: its beginning up to ENDS own characters, and its end."""
    common = next((len(start) for start in _BEGINNINGS if address.startswith(start)), 0)
    return address[: common + ENDS].lower(), address[-ENDS:].lower()


def looks_alike(one: str, other: str) -> bool:
    """Whether two different addresses pass for one another at a glance."""
    if same_form(one) == same_form(other):
        return False
    return ends_of(one) == ends_of(other) or _differences(one, other) <= SLIPS


def marked(address: str, beside: str) -> str:
    """The address with what differs from the other one in square brackets."""
    if len(address) != len(beside):
        head, tail = _agreeing(address, beside), _agreeing(address[::-1], beside[::-1])
        end = max(head, len(address) - tail)
        return f"{address[:head]}[{address[head:end]}]{address[end:]}"
    text, at = "", 0
    for start, end in _runs(address, beside):
        text, at = f"{text}{address[at:start]}[{address[start:end]}]", end
    return text + address[at:]


def _differences(one: str, other: str) -> int:
    if len(one) != len(other):
        return max(len(one), len(other))
    return sum(a != b for a, b in zip(same_form(one), same_form(other), strict=True))


def _agreeing(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((place for place, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _runs(one: str, other: str) -> list[tuple[int, int]]:
    """Where two texts of one length differ, as beginnings and ends; short agreements in between belong to it."""
    runs: list[tuple[int, int]] = []
    for place, (a, b) in enumerate(zip(same_form(one), same_form(other), strict=True)):
        if a == b:
            continue
        if runs and place - runs[-1][1] < _SHORTEST_AGREEMENT:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs
