r"""The canonical form of an audit entry: the bytes that its hash covers. Version v1, which must never change.

v1 is a JSON object of all members of the entry except `hash` itself, with these rules:

* members sorted by name, no white space, every character outside ASCII written as ``\uXXXX``;
* `at` in UTC with six decimals of the second: ``2026-03-01T09:30:00.000000+00:00``;
* `actor` is the person's primary key as text, or null if the program acted;
* `detail` holds only objects, lists, text, whole numbers, booleans and null (enforced by `plain`), because
  both databases return these exactly as stored. An amount is text.

The hash is the SHA-256 of those bytes in lower-case hexadecimal. A later form gets a new version name, stored
in the entry, so that old entries remain verifiable.
"""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TypeAlias
from uuid import UUID

from django.utils.functional import Promise

VERSION = "v1"
GENESIS = "0" * 64  # the previous hash of the first entry
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | bool | None"


class AuditError(Exception):
    """An entry could not be appended, so the change that it records must not happen either."""


class NotRecordableError(AuditError):
    """A detail has no stable form, such as a float, or may be secret."""


def digest(members: Mapping[str, object]) -> str:
    """The SHA-256 of the members' canonical form, in hexadecimal."""
    return hashlib.sha256(canonical_json(members)).hexdigest()


def canonical_json(members: Mapping[str, object]) -> bytes:
    return _CANONICAL.encode(members).encode("ascii")


def canonical_time(at: datetime) -> str:
    """The time in the canonical form."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def plain(value: object) -> Plain:
    """The value in types that both databases return unchanged. Raises NotRecordableError for all others.

    A float is refused because its text differs between systems, an unknown type because it may be secret
    (`SecretStr`).
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, Mapping):
        return {storable_text(str(name)): plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [plain(member) for member in value]
    return _text(value)


def _text(value: object) -> str:
    match value:
        case str():
            return storable_text(str.__str__(value))  # the value of an enum member, not its name
        case Promise() | UUID():
            return storable_text(str(value))
        case Decimal():
            return format(value, "f")
        case datetime():
            return canonical_time(value)
        case date():
            return value.isoformat()
    raise NotRecordableError(f"{type(value).__name__} has no place in the detail of an audit entry")


def storable_text(text: str) -> str:
    """The text with characters that PostgreSQL cannot store (NUL, lone surrogates) replaced by U+FFFD.

    Text from people and from the provider is logged, and a hostile character must not prevent the entry.
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "\ufffd")
