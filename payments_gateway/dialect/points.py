"""How an open point of the dialect is declared, and how a deployment's value for one is read."""

import json
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError


class OpenPoint(NamedTuple):
    """One point that the specification leaves open: what we assume, how sure that is, why, and where it is left open.

    `confidence` is sure, likely, hint or unknown; `where` names the section of the specification.
    """

    name: str
    value: object
    confidence: str
    why: str
    where: str


def point(default: Any, confidence: str, where: str, why: str) -> Any:
    """Declare an open point as a field of the dialect. A table among the defaults becomes unchangeable."""
    metadata = {"confidence": confidence, "where": where, "why": why}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: MappingProxyType(dict(default)), metadata=metadata)
    return field(default=default, metadata=metadata)


def shaped(name: str, kind: Any, value: object) -> Any:
    """Read a value as JSON and TOML write it: lists become tuples, the keys of a table numbers where they must be.

    Nothing else is converted. Raises ValueError, which names the point and the place in it, for another shape.
    """
    try:
        read = TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
    except ValidationError as exc:
        problem = exc.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{name}{place and f' at {place}'}: {problem['msg']}.") from None
    except (TypeError, ValueError):  # what JSON has no words for, such as the dates of TOML
        raise ValueError(f"{name}: a {type(value).__name__} can be no value of any point.") from None
    return MappingProxyType(read) if isinstance(read, dict) else read
