"""What exactly is countersigned: the digest of an operation's content, and the codes that people compare."""

import hashlib
import json
import secrets
from typing import Any
from uuid import UUID

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def digest_of(*, operation_id: UUID | None, kind: str, payload: dict[str, Any], environment: str) -> str:
    """SHA-256, in hexadecimal, over the canonical JSON of the content.

    Keys are sorted and amounts are text, so the digest is the same whatever stored the payload in between. It binds the
    operation's id and the environment: a signature given here is worth nothing for another operation or elsewhere.
    Without an id it tells whether two operations have the same content.
    """
    content = {
        "v": 1,
        "id": str(operation_id or ""),
        "environment": environment,
        "kind": kind,
        "payload": payload,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def short_code(digest: str) -> str:
    """The first 40 bits of a digest as two people can compare them aloud: `K7F2-91XD`."""
    text = _base32(int(digest[:10], 16), 8)
    return f"{text[:4]}-{text[4:]}"


def new_reference(letter: str) -> str:
    """A short name for an operation, such as `W-7Q2K9F`; unique by the database's word."""
    return f"{letter}-{_base32(secrets.randbits(30), 6)}"


def _base32(number: int, length: int) -> str:
    return "".join(_CROCKFORD[(number >> (5 * place)) & 31] for place in reversed(range(length)))
