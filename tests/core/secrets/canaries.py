"""The secrets that are planted, and the search of every place that keeps anything."""

import base64
import json
import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from django.conf import settings as product_settings
from django.db import connection

from backoffice.accounts.models import StaffSession
from backoffice.accounts.sessions import SessionStore
from backoffice.core.logs import JsonFormatter

# Where a secret is shown on purpose, to the person whom it belongs to, once.
SHOWN_ONCE = {"/account/authenticator/": {"seed", "recovery code"}}


@dataclass
class Canaries:
    """The secrets that are planted, in every form in which somebody might write them down."""

    api_key: str = field(default_factory=lambda: f"key-{secrets.token_hex(12)}")
    new_key: str = field(default_factory=lambda: f"made-{secrets.token_hex(12)}")
    otp: str = field(default_factory=lambda: f"otp-{secrets.token_hex(12)}")
    password: str = field(default_factory=lambda: f"pass phrase {secrets.token_hex(12)}")
    seed: bytes = b""
    recovery_codes: list[str] = field(default_factory=list)

    def forms(self) -> Iterator[tuple[str, bytes]]:
        yield from (("API key", self.api_key.encode()), ("one-time code", self.otp.encode()))
        yield "new key", self.new_key.encode()
        yield from (("password", self.password.encode()), ("password", self.password.split()[-1].encode()))
        if self.seed:
            yield from (("seed", form) for form in (self.seed, self.seed.hex().encode()))
            yield "seed", base64.b32encode(self.seed)
        for code in self.recovery_codes:
            yield from (("recovery code", form.encode()) for form in (code, code.replace("-", "")))

    def found_in(self, content: bytes) -> set[str]:
        """The names of the canaries that are there, grouped like "ABCD EFGH" or not, in whatever case."""
        folded = content.lower()
        readings = (folded, folded.replace(b" ", b""))
        return {name for name, form in self.forms() if any(form.lower() in reading for reading in readings)}


@dataclass
class Sinks:
    """Every place that stores what it is given."""

    canaries: Canaries
    pages: list[tuple[str, bytes]]
    log_lines: Callable[[], str]
    caplog: pytest.LogCaptureFixture

    def leaks(self) -> set[tuple[str, str]]:
        """Place and name of every canary that is where it must not be."""
        places = [*database(), *files(), *self.logs(), *self.pages]
        return {
            (place, name)
            for place, content in places
            for name in self.canaries.found_in(content) - SHOWN_ONCE.get(place, set())
        }

    def logs(self) -> Iterator[tuple[str, bytes]]:
        """What the handler wrote, and the records themselves as a careless handler would write them."""
        yield "standard error", self.log_lines().encode()
        as_json = JsonFormatter()
        plain = logging.Formatter("%(message)s")
        for record in self.caplog.records:
            yield f"JSON of {record.name}", as_json.format(record).encode()
            yield f"record of {record.name}", f"{plain.format(record)} {record.args!r}".encode()


def database() -> Iterator[tuple[str, bytes]]:
    """Every value of every column of every table, and what the sessions hold inside of their signature."""
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")  # noqa: S608 - its own table names
            columns = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                yield from (
                    (f"{table}.{name}", as_bytes(value)) for name, value in zip(columns, row, strict=True)
                )
    for session in StaffSession.objects.all():
        yield "inside of a session", repr(OfRow(session.pk).decode(session.session_data)).encode()


class OfRow(SessionStore):
    """The session of this row, whose data is signed for it, without the key that only the browser has."""

    def __init__(self, row_key: str) -> None:
        super().__init__()
        self._row_key = row_key

    @property
    def row_key(self) -> str:
        return self._row_key

    @property
    def key_salt(self) -> str:
        return super().key_salt.replace(type(self).__qualname__, SessionStore.__qualname__)


def as_bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def files() -> Iterator[tuple[str, bytes]]:
    """Every file of the data folder: messages to workers, and on SQLite the database with all that it ever wrote."""
    for path in Path(product_settings.DATA_DIR).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            yield path.name, content
            if path.parent.name == "messages":
                yield f"body of {path.name}", base64.b64decode(json.loads(content)["body"])
