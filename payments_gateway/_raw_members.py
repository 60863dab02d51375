"""The members of a JSON object, each as the text that stands in the body: what was signed is bytes, not values."""

import json
import re

from payments_gateway.money import UnreadableError

LARGEST_BODY = 64 * 1024
"""Bytes. A delivery has about one thousand; a longer body is malformed, unread."""

MOST_MEMBERS = 100
"""Members at the top level. A delivery has three; each more costs a little time."""

LONGEST_NUMBER = 100
"""Characters of a JSON number. No amount has as many, and arithmetic with a million digits is slow."""

_MARK = re.compile(r"[ \t\n\r]*([{}:,])[ \t\n\r]*")


def raw_members(body: bytes) -> dict[str, str]:
    """Return the members of the top-level object, each value as the text that stands in the body.

    A parser that writes the values anew would lose what was signed: spaces, order, escapes, spelling of numbers.
    """
    if len(body) > LARGEST_BODY:
        raise UnreadableError(f"it is longer than {LARGEST_BODY} bytes")
    try:
        return _walked(body.decode())
    except UnreadableError:
        raise
    except (ValueError, RecursionError) as exc:
        problem = type(exc).__name__
    raise UnreadableError(f"it is not readable JSON ({problem})")


def _walked(text: str) -> dict[str, str]:
    members: dict[str, str] = {}
    at, mark = _step(text, 0, "{")
    if text.startswith("}", at):
        at, mark = _step(text, at, "}")
    while mark != "}":
        name, at = _name(text, at)
        if name in members or len(members) == MOST_MEMBERS:
            raise UnreadableError("it gives one name twice, or has too many members")
        start, _ = _step(text, at, ":")
        _, end = _EXTENTS.raw_decode(text, start)
        members[name] = text[start:end]
        at, mark = _step(text, end, ",}")
    if at != len(text):
        raise UnreadableError("something follows its end")
    return members


def _step(text: str, at: int, marks: str) -> tuple[int, str]:
    """Pass one of these marks, with the spaces around it. Return where the text goes on, and which mark it was."""
    found = _MARK.match(text, at)
    if found is None or found[1] not in marks:
        raise UnreadableError("it is not a JSON object")
    return found.end(), found[1]


def _digits(text: str) -> str:
    if len(text) > LONGEST_NUMBER:
        raise UnreadableError("it holds a number out of all proportion")
    return text


_EXTENTS = json.JSONDecoder(parse_float=_digits, parse_int=_digits)
"""Finds where a value ends; `loads` reads it."""


def _name(text: str, at: int) -> tuple[str, int]:
    if not text.startswith('"', at):
        raise UnreadableError("a name is no text")
    return _EXTENTS.raw_decode(text, at)
