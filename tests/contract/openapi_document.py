"""The document as tests read it: from its one source, and not through the provider that serves it."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

from payments_gateway import operations

SOURCE = Path(operations.__file__).with_name("openapi.yaml")
_METHODS = ("get", "put", "post", "delete")
OPTIONAL = "optional reads"


@cache
def document() -> Any:
    """The whole document, references and all."""
    return yaml.safe_load(SOURCE.read_text(encoding="utf-8"))


def described() -> dict[str, tuple[str, str, Any]]:
    """operationId -> (method, path, description), of every operation in the document."""
    return {
        each["operationId"]: (method.upper(), path, each)
        for path, item in document()["paths"].items()
        for method, each in item.items()
        if method in _METHODS
    }


def of_the_specification() -> dict[str, tuple[str, str, Any]]:
    """Those of `described` that are no optional reads."""
    return {name: each for name, each in described().items() if OPTIONAL not in each[2]["tags"]}


def request_schema(name: str) -> Any:
    """The schema of an operation's body, or None when it takes none."""
    body = described()[name][2].get("requestBody")
    return body and body["content"]["application/json"]["schema"]


def answer_schema(name: str, status: int) -> Any:
    """The schema of an operation's answer with this status. KeyError for a status that is not documented."""
    answer = resolved(described()[name][2]["responses"][str(status)])
    return answer["content"]["application/json"]["schema"]


def resolved(part: Any) -> Any:
    """What a reference into the document resolves to; anything else is returned as it is."""
    while "$ref" in part:
        target: Any = document()
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = target
    return part


def validator(schema: Any) -> jsonschema_rs.Draft202012Validator:
    """What checks a value against a schema of the document, its formats included."""
    return jsonschema_rs.Draft202012Validator(
        {**schema, "components": document()["components"]}, validate_formats=True
    )


def disagreements(schema: Any, value: Any) -> list[str]:
    """In words, where a value is not what the schema says; empty when it is."""
    try:
        return [f"{error.instance_path}: {error.message}" for error in validator(schema).iter_errors(value)]
    except UnicodeEncodeError:
        return ["half a surrogate is no text"]
