"""Reads from the provider that are remembered: the last value, when it was read, and why the latest read failed.

They are kept in the database, so that every process shares them, and encrypted there: whoever can write to the
database must not be able to place an account holder, an address or a rate that people then trust.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from django.core.cache import cache
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext
from pydantic import TypeAdapter, ValidationError

from backoffice.core.encryption import DecryptionError, decrypt, encrypt
from backoffice.core.models import CachedReadRow
from backoffice.core.web.formatting import error_sentence
from payments_gateway import CredentialsError, GatewayError, RejectedError

Value = TypeVar("Value")


@dataclass(frozen=True)
class CachedValue(Generic[Value]):
    """The last value read and when; `error` says why it could not be refreshed, if so."""

    value: Value | None = None
    read_at: datetime | None = None
    error: str = ""

    @property
    def is_known(self) -> bool:
        """Whether any value is stored."""
        return self.read_at is not None


_NO_SUCCESS = 300  # HTTP statuses from here on report an error; below it, the error's text gives the cause


def failed_read_text(exc: GatewayError) -> str:
    """Why nothing new was read, in the reader's language; a refusal in the provider's own words."""
    match exc:
        case CredentialsError():
            return gettext("The provider refuses the API key. Ask an administrator to check it.")
        case RejectedError():
            return gettext("The provider refused the request: {message}").format(message=exc.message)
        case GatewayError(status=int(status)) if status >= _NO_SUCCESS:
            return gettext("The provider responded with an error (HTTP {status}).").format(status=exc.status)
        case GatewayError(__cause__=GatewayError()):
            return gettext("The provider cannot be reached, or does not respond in time.")
    return error_sentence(exc)


@dataclass(frozen=True)
class CachedRead(Generic[Value]):
    """One read whose last result is kept under `key`, as JSON of `type`.

    A value is used at all for `keep_for`, and without a request for `fresh_for`. After a request that brought
    no value, `get` makes no other for `retry_after`. A read that returns None leaves the last value in place.
    """

    key: str
    type: TypeAdapter[Value]
    keep_for: timedelta = timedelta(days=1)
    fresh_for: timedelta = timedelta()
    retry_after: timedelta = timedelta()

    def cached(self) -> CachedValue[Value]:
        """The last value read, without a request."""
        together = _TOGETHER.get()
        if together is None:
            return self._stored()
        if self.key not in together.values:
            together.values[self.key] = self._stored()
        return together.values[self.key]

    def get(self, read: Callable[[], Value | None]) -> CachedValue[Value]:
        """The last value if it is fresh; otherwise it is refreshed, at most once per `retry_after`.

        Never raises GatewayError.
        """
        cached = self.cached()
        return cached if self._is_fresh(cached) or not self._claim_attempt() else self.refresh(read)

    def fetch(self, read: Callable[[], Value]) -> Value:
        """The last value if it is fresh; otherwise it is read now. Raises GatewayError."""
        cached = self.cached()
        if cached.value is not None and self._is_fresh(cached):
            return cached.value
        value = read()
        if value is not None:
            self._store(value)
        return value

    def refresh(self, read: Callable[[], Value | None]) -> CachedValue[Value]:
        """Read from the provider now and store the result. If that fails, the last value read and the error.

        Never raises GatewayError.
        """
        try:
            value = read()
        except GatewayError as exc:
            cached = self.cached()
            return CachedValue(cached.value, cached.read_at, error=failed_read_text(exc))
        return self.cached() if value is None else self._store(value)

    def decode(self, row: CachedReadRow | None) -> CachedValue[Value]:
        """The stored value; an empty one if there is none, it is too old, or it cannot be decrypted or parsed
        here, for instance because another release stored it.
        """
        if row is None or row.read_at is None or row.read_at <= timezone.now() - self.keep_for:
            return CachedValue()
        try:
            text = decrypt(bytes(row.encrypted_value), bound_to=_binding(self.key, row.read_at))
            return CachedValue(self.type.validate_json(text), row.read_at)
        except (DecryptionError, ValidationError):
            return CachedValue()

    def _stored(self) -> CachedValue[Value]:
        return self.decode(CachedReadRow.objects.filter(pk=self.key).first())

    def _is_fresh(self, cached: CachedValue[Value]) -> bool:
        return cached.read_at is not None and cached.read_at > timezone.now() - self.fresh_for

    def _claim_attempt(self) -> bool:
        """Whether this caller may make a request: one caller of all processes, once per `retry_after`."""
        if not self.retry_after:
            return True
        now = timezone.now()
        CachedReadRow.objects.bulk_create(
            [CachedReadRow(key=self.key, expires_at=now + self.retry_after)], ignore_conflicts=True
        )
        is_due = Q(tried_at=None) | Q(tried_at__lte=now - self.retry_after)
        return CachedReadRow.objects.filter(is_due, pk=self.key).update(tried_at=now) == 1

    def _store(self, value: Value) -> CachedValue[Value]:
        now = timezone.now()
        text = self.type.dump_json(value, exclude_none=True).decode()
        row = CachedReadRow(
            key=self.key,
            encrypted_value=encrypt(text, bound_to=_binding(self.key, now)),
            read_at=now,
            expires_at=now + self.keep_for,
        )
        together = _TOGETHER.get()
        if together is None:
            _save([row])
        else:
            together.values[self.key] = CachedValue(value, now)
            together.unsaved[self.key] = row
        return CachedValue(value, now)


@dataclass(frozen=True)
class _ReadTogether:
    """The values that were read within `reads_together`, and those that are not stored yet, by key."""

    values: dict[str, CachedValue[Any]]
    unsaved: dict[str, CachedReadRow] = field(default_factory=dict)


_TOGETHER: ContextVar[_ReadTogether | None] = ContextVar("reads together", default=None)


@contextmanager
def reads_together(expected: Iterable[CachedRead[Any]] = ()) -> Iterator[None]:
    """Within the block, each value is read from the database once, and those expected in one query; what the provider
    answers is stored at the end of the block, in one statement.

    A value counts as fresh for as long as outside the block. For the work on some rows of a file, not for longer:
    other processes see no value before the block ends.
    """
    together = _ReadTogether(cached_values(expected))
    token = _TOGETHER.set(together)
    try:
        yield
    finally:
        _TOGETHER.reset(token)
        # Two processes lock in the same order.
        _save([together.unsaved[key] for key in sorted(together.unsaved)])


def _save(rows: Collection[CachedReadRow]) -> None:
    """Store these values, and delete those that are too old."""
    if not rows:
        return
    CachedReadRow.objects.filter(expires_at__lte=timezone.now()).delete()
    CachedReadRow.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["key"],
        update_fields=["encrypted_value", "read_at", "tried_at", "expires_at"],
    )


def cached_values(reads: Iterable[CachedRead[Value]]) -> dict[str, CachedValue[Value]]:
    """The last value of each of these reads, by its key, in one query."""
    reads = list(reads)
    rows = CachedReadRow.objects.in_bulk([read.key for read in reads])
    return {read.key: read.decode(rows.get(read.key)) for read in reads}


def cached_in_process(key: str, read: Callable[[], Value], seconds: float) -> Value:
    """What `read` returned at most so many seconds ago in this process: for queries that every page needs.

    Never for a decision about sending: another process may have changed it since. `cache.delete(key)` ends it early.
    """
    return cast(Value, cache.get_or_set(key, read, timeout=seconds))


def _binding(key: str, read_at: datetime) -> str:
    """Bound to its time, too: an old value cannot be passed off as a new one."""
    return f"cached read {key} of {read_at.isoformat()}"
