"""The form of an archive of evidence, and how it is verified without a database.

A gzip file of JSON lines, each in the canonical form of `backoffice.audit.canonical`:

1. the header: `format`, `since`, `until`, `made_at`, and of the audit log the `first` position and its
   `previous_hash`;
2. a line for each row, `{"table": …, "row": …}`: first the entries of the audit log, in order, with all that their
   hashes cover, then the other tables;
3. the trailer: `counts` by table, the position `last` and its `hash`, the SHA-256 of all lines before it, the id
   of the `key` and the Ed25519 `signature` of the canonical form of the other members.

So a reader needs gunzip, SHA-256 and Ed25519 only.
"""

import base64
import gzip
import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from backoffice.audit import canonical

FORMAT = "countersign-evidence-1"
ENTRIES = "audit_entry"
_LONGEST_LINE = 16 * 1024 * 1024  # bytes


class InvalidArchiveError(Exception):
    """The file is no archive, was changed, or does not agree with itself. The message says where."""


@dataclass(frozen=True)
class Archive:
    """What a verified archive holds. `heads` are the hashes of its audit entries by position, as far as asked for."""

    header: Mapping[str, Any]
    trailer: Mapping[str, Any]
    heads: Mapping[int, str] = field(default_factory=dict)


class ArchiveWriter:
    """Writes the lines of an archive and sums them up; `close_with` adds the trailer."""

    def __init__(self, file: IO[bytes]) -> None:
        self._packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
        self._digest = hashlib.sha256()
        self.counts: Counter[str] = Counter()

    def write(self, members: Mapping[str, object]) -> None:
        line = canonical.canonical_json(members) + b"\n"
        self._digest.update(line)
        self._packed.write(line)

    def write_row(self, table: str, row: Mapping[str, object]) -> None:
        self.write({"table": table, "row": row})
        self.counts[table] += 1

    @property
    def sha256(self) -> str:
        """Of all lines so far."""
        return self._digest.hexdigest()

    def close_with(self, trailer: Mapping[str, object]) -> None:
        self._packed.write(canonical.canonical_json(trailer) + b"\n")
        self._packed.close()


def verify_archive(path: Path, public_keys: Mapping[str, str], wanted: Iterable[int] = ()) -> Archive:
    """Check signature, sum, counts and the chain of entries, in constant memory.

    `public_keys` are base64 by id. `wanted` are positions of entries whose hashes are returned. Raises
    InvalidArchiveError, OSError.
    """
    positions, heads, counts = set(wanted), dict[int, str](), Counter[str]()
    digest = hashlib.sha256()
    with _archive_errors(), gzip.open(path, "rb") as file:
        lines = _numbered_lines(file)
        _, line = next(lines, (0, b""))
        header = _parsed(line, 1)
        if header.get("format") != FORMAT:
            raise InvalidArchiveError("This is no archive of evidence")
        position, previous = header["first"] - 1, header["previous_hash"]
        digest.update(line)
        for number, line in lines:
            members = _parsed(line, number)
            if "row" not in members:
                break
            counts[members["table"]] += 1
            digest.update(line)
            if members["table"] == ENTRIES:
                position, previous = _checked_entry(members["row"], position, previous)
                if position in positions:
                    heads[position] = previous
        else:
            raise InvalidArchiveError("The archive is cut off")
        if next(lines, None) is not None:
            raise InvalidArchiveError("Something follows the end of the archive")
        _check_trailer(members, counts, digest.hexdigest(), (position, previous))
        _check_signature(members, public_keys)
    return Archive(header, members, heads)


def _numbered_lines(file: gzip.GzipFile) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        yield number, line


def _parsed(line: bytes, number: int) -> dict[str, Any]:
    try:
        members = json.loads(line)
    except ValueError as exc:
        raise InvalidArchiveError(f"Line {number} cannot be read") from exc
    if not isinstance(members, dict):
        raise InvalidArchiveError(f"Line {number} cannot be read")
    return members


def _checked_entry(row: Mapping[str, Any], position: int, previous: str) -> tuple[int, str]:
    content = {name: value for name, value in row.items() if name != "hash"}
    if row["position"] != position + 1:
        raise InvalidArchiveError(f"Entry {position + 1} is missing")
    if row["previous_hash"] != previous or row["hash"] != canonical.digest(content):
        raise InvalidArchiveError(f"Entry {position + 1} was changed")
    return position + 1, row["hash"]


def _check_trailer(
    trailer: Mapping[str, Any], counts: Mapping[str, int], sha256: str, end: tuple[int, str]
) -> None:
    if trailer["sha256"] != sha256:
        raise InvalidArchiveError("The rows are not those that were signed")
    if trailer["counts"] != counts or (trailer["last"], trailer["hash"]) != end:
        raise InvalidArchiveError("The end of the archive does not agree with its rows")


def _check_signature(trailer: Mapping[str, Any], public_keys: Mapping[str, str]) -> None:
    public_key = public_keys.get(trailer["key"])
    if public_key is None:
        raise InvalidArchiveError(f"The public key {trailer['key']} is not known")
    signed = canonical.canonical_json({name: trailer[name] for name in trailer if name != "signature"})
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public_key, validate=True))
        key.verify(base64.b64decode(trailer["signature"], validate=True), signed)
    except (InvalidSignature, ValueError) as exc:
        raise InvalidArchiveError("The signature is not that of this archive") from exc


@contextmanager
def _archive_errors() -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError) as exc:
        raise InvalidArchiveError("The file is damaged, or no archive") from exc
    except (KeyError, TypeError, ValueError) as exc:
        raise InvalidArchiveError("A line lacks what an archive must have") from exc
