"""Compare a response with its schema in openapi.yaml and describe the differences.

Members, types and closed enumerations are compared; limits and patterns are not. A difference names the path
and kind of a value, never its content, so it can be shown for any response.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml

_OPENAPI_FILE = Path(__file__).with_name("openapi.yaml")
_LONGEST_NAME = 40
_MAX_NAMES = 20
_MAX_DIFFERENCES = 12


def schema_differences(operation: str, members: Mapping[str, object]) -> list[str]:
    """Return how a response to this operation (`balances.list`) differs from its schema.

    At most a dozen differences, without duplicates. Empty for an operation without a schema.
    """
    schema = _response_schemas().get(operation)
    if schema is None:
        return []
    found = list(dict.fromkeys(_differences(schema, members, "")))
    more = len(found) - _MAX_DIFFERENCES
    return found if more <= 0 else [*found[:_MAX_DIFFERENCES], f"and {more} more"]


@cache
def _document() -> Any:
    return yaml.safe_load(_OPENAPI_FILE.read_text(encoding="utf-8"))


@cache
def _response_schemas() -> Mapping[str, Any]:
    """Return operationId -> schema of the response with status 200, for every operation that has one."""
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
    if kinds and not any(_is_of_type(value, kind) for kind in kinds):
        yield f"{here} is {_type_name(value)}, not {' or '.join(_TYPE_NAMES[kind] for kind in kinds)}"
        return
    words = [schema["const"]] if "const" in schema else schema.get("enum")
    if words and value not in words:
        yield f"{here} is none of {', '.join(map(str, words))}"
    if isinstance(value, dict):
        yield from _object_differences(schema, value, place)
    if isinstance(value, list) and "items" in schema:
        for item in value:
            yield from _differences(schema["items"], item, f"{place}[]")


def _object_differences(schema: Any, value: dict[str, object], place: str) -> Iterator[str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    others = schema.get("additionalProperties")
    here, dot = place or "the answer", f"{place}." if place else ""
    missing = [name for name in schema.get("required", []) if name not in value]
    unknown = [_printable(name) for name in value if name not in properties] if others is False else []
    if missing:
        yield f"{here} lacks {_comma_separated(missing)}"
    if unknown:
        yield f"{here} has unknown {_comma_separated(unknown)}"
    for name, item in value.items():
        if name in properties:
            yield from _differences(properties[name], item, f"{dot}{name}")
        elif isinstance(others, dict):
            yield from _differences(others, item, f"{dot}*")


def _comma_separated(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return ", ".join(names[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


_TYPE_NAMES = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


def _type_name(value: object) -> str:
    return next(name for kind, name in _TYPE_NAMES.items() if _is_of_type(value, kind))


def _is_of_type(value: object, kind: str) -> bool:
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


def _printable(name: str) -> str:
    """The name of a member as one short printable line."""
    plain = "".join(char if char.isprintable() else "?" for char in name)
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
