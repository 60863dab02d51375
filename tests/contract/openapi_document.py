"""The document as tests read it: from its one source, and not through the provider that serves it."""

from typing import Any

import jsonschema_rs

from payments_gateway.operations import api_description
from payments_gateway.profile.model import ProfileName

_METHODS = ("get", "put", "post", "delete")
OPTIONAL = "optional reads"


def document(profile: ProfileName = "specification") -> Any:
    """The whole document of a profile, references and all."""
    return api_description(profile)


def described(profile: ProfileName = "specification") -> dict[str, tuple[str, str, Any]]:
    """operationId -> (method, path, description), of every operation in the document."""
    return {
        each["operationId"]: (method.upper(), path, each)
        for path, item in document(profile)["paths"].items()
        for method, each in item.items()
        if method in _METHODS
    }


def of_the_specification() -> dict[str, tuple[str, str, Any]]:
    """Those of `described` that are no optional reads."""
    return {name: each for name, each in described().items() if OPTIONAL not in each[2]["tags"]}


def differing() -> list[str]:
    """The operations whose description the two profiles do not share."""
    both = described(), described("published")
    return [name for name in both[0] if _complete(name, "specification") != _complete(name, "published")]


def _complete(name: str, profile: ProfileName) -> Any:
    _, path, description = described(profile)[name]
    return path, _dereferenced(description, profile)


def _dereferenced(part: Any, profile: ProfileName) -> Any:
    if isinstance(part, list):
        return [_dereferenced(each, profile) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _dereferenced(each, profile)
        for name, each in (resolved(part, profile) if "$ref" in part else part).items()
    }


def request_schema(name: str, profile: ProfileName = "specification") -> Any:
    """The schema of an operation's body, or None when it takes none."""
    body = described(profile)[name][2].get("requestBody")
    return body and body["content"]["application/json"]["schema"]


def answer_schema(name: str, status: int, profile: ProfileName = "specification") -> Any:
    """The schema of an operation's answer with this status. KeyError for a status that is not documented."""
    answer = resolved(described(profile)[name][2]["responses"][str(status)], profile)
    return answer["content"]["application/json"]["schema"]


def resolved(part: Any, profile: ProfileName = "specification") -> Any:
    """What a reference into the document resolves to; anything else is returned as it is."""
    while "$ref" in part:
        target: Any = document(profile)
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = target
    return part


def validator(schema: Any, profile: ProfileName = "specification") -> jsonschema_rs.Draft202012Validator:
    """What checks a value against a schema of the document, its formats included."""
    return jsonschema_rs.Draft202012Validator(
        {**schema, "components": document(profile)["components"]}, validate_formats=True
    )


def disagreements(schema: Any, value: Any, profile: ProfileName = "specification") -> list[str]:
    """In words, where a value is not what the schema says; empty when it is."""
    try:
        errors = validator(schema, profile).iter_errors(value)
        return [f"{error.instance_path}: {error.message}" for error in errors]
    except UnicodeEncodeError:
        return ["half a surrogate is no text"]
