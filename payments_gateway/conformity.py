"""Where an answer differs from what is written down in openapi.yaml, in a few words for people.

Members, types and closed lists of words are compared; limits and patterns are not. What the answer says is not
repeated: a remark names places and kinds of values, so it can be shown whatever the answer holds.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_SOURCE = Path(__file__).with_name("openapi.yaml")
_LONGEST_NAME = 40
_MOST_NAMES = 20
_MOST_REMARKS = 12


def remarks_on(operation: str, members: Mapping[str, object]) -> list[str]:
    """What is unexpected in the answer to this operation (`balances.list`); each remark once, the first dozen.

    Empty for an answer as it is written down, and for an operation that is not.
    """
    schema = _answers().get(operation)
    if schema is None:
        return []
    found = list(dict.fromkeys(_differences(schema, members, "")))
    more = len(found) - _MOST_REMARKS
    return found if more <= 0 else [*found[:_MOST_REMARKS], f"and {more} more"]


@cache
def _document() -> Any:
    return yaml.safe_load(_SOURCE.read_text(encoding="utf-8"))


@cache
def _answers() -> Mapping[str, Any]:
    """operationId -> schema of the answer with status 200, for every operation that has one."""
    operations = [
        each for path in _document()["paths"].values() for each in path.values() if "operationId" in each
    ]
    return {
        each["operationId"]: _resolved(each["responses"]["200"])["content"]["application/json"]["schema"]
        for each in operations
        if "200" in each["responses"]
    }


def _resolved(part: Any) -> Any:
    while "$ref" in part:
        target = _document()
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = target
    return part


def _differences(schema: Any, value: object, place: str) -> Iterator[str]:
    schema = _resolved(schema)
    here = place or "the answer"
    expected = schema.get("type")
    kinds = [expected] if isinstance(expected, str) else expected
    if kinds and not any(_is(value, kind) for kind in kinds):
        yield f"{here} is {_kind(value)}, not {' or '.join(_NAMES[kind] for kind in kinds)}"
        return
    words = [schema["const"]] if "const" in schema else schema.get("enum")
    if words and value not in words:
        yield f"{here} is none of {', '.join(map(str, words))}"
    if isinstance(value, dict):
        yield from _in_object(schema, value, place)
    if isinstance(value, list) and "items" in schema:
        for item in value:
            yield from _differences(schema["items"], item, f"{place}[]")


def _in_object(schema: Any, value: dict[str, object], place: str) -> Iterator[str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties")
    here, dot = place or "the answer", f"{place}." if place else ""
    missing = [name for name in schema.get("required", []) if name not in value]
    unknown = [_shown(name) for name in value if name not in properties] if others is False else []
    if missing:
        yield f"{here} lacks {_listed(missing)}"
    if unknown:
        yield f"{here} has unknown {_listed(unknown)}"
    for name, item in value.items():
        if name in properties:
            yield from _differences(properties[name], item, f"{dot}{name}")
        elif isinstance(others, dict):
            yield from _differences(others, item, f"{dot}*")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


def _kind(value: object) -> str:
    return next(name for kind, name in _NAMES.items() if _is(value, kind))


def _is(value: object, kind: str) -> bool:
    match value:
        case None:
            return kind == "null"
        case bool():
            return kind == "boolean"
        case int() | Decimal():
            return kind == "number" or (kind == "integer" and value == int(value))
        case str():
            return kind == "string"
        case list():
            return kind == "array"
    return kind == "object"


def _shown(name: str) -> str:
    """The name of a member as one short printable line."""
    plain = "".join(char if char.isprintable() else "?" for char in name)
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
