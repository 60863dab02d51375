"""Making and ending API keys. A key is told once, to who made it; afterwards the service knows its digest only.

* An invalidated key stops working at once and stays in the list, with the moment in `DeletedAt`.
* A deleted key leaves the list, and stops working if it still did.
* A merchant may end the key that it is using, and even the last one of scope Master, as nothing says otherwise:
  then only a reset of the simulation lets it in again.
"""

import calendar
import secrets
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.db.transaction import atomic

from payments_gateway.sandbox import clock, otp
from payments_gateway.sandbox.merchant.admission import digest_of
from payments_gateway.sandbox.merchant.models import ApiKey
from payments_gateway.sandbox.merchant.scopes import Scope
from payments_gateway.sandbox.wire.errors import RefusedError

SHORT_HASH_DIGITS = 8
LIFETIME_OF_CREATED = timedelta(days=365)
"""How long a key of POST /auth/api-key works."""


def all_keys() -> QuerySet[ApiKey]:
    """Every key that was not deleted, oldest first."""
    return ApiKey.objects.order_by("id")


@atomic(durable=True)
def create(token: otp.Token | None) -> tuple[str, datetime]:
    """Make a key of scope Master and return it with the moment it expires (POST /auth/api-key).

    Raises RefusedError 400 when the token is refused.
    """
    at = clock.now()
    expires_at = at + LIFETIME_OF_CREATED
    key = _issue(f"created {at:%Y-%m-%d}", Scope.MASTER, expires_at)
    otp.use(token, at=clock.wall())
    return key, expires_at


@atomic(durable=True)
def generate(
    name: str, scope: Scope, *, expires_at: datetime | None, replaced: str | None, code: str | None
) -> str:
    """Make a key and return it; `replaced`, an older one, is invalidated in the same commit (POST /user/api-key).

    Raises RefusedError 400 when there is no key to replace or the token is refused. The token is looked at last: a
    request refused for another reason does not use it up.
    """
    if replaced is not None:
        _end(replaced)
    key = _issue(name, scope, expires_at)
    otp.use(None if code is None else otp.untyped(code), at=clock.wall(), member="otp")
    return key


@atomic(durable=True)
def invalidate(key: str) -> str:
    """Let a key stop working, named in full or by its short hash, which is returned.

    Raises RefusedError 400 when there is no such key or it was invalidated before.
    """
    return _end(key).short_hash


@atomic(durable=True)
def delete(short_hash: str) -> None:
    """Take a key away, whether it still works or not; RefusedError 400 when there is none."""
    deleted, _ = ApiKey.objects.filter(short_hash=short_hash).delete()
    if not deleted:
        raise _invalid_key("apikeyHash", "is the short hash of no key")


def expiry(*, days: int, months: int) -> datetime | None:
    """So many calendar months and then days from now; None, which is never, when both are 0."""
    if not days and not months:
        return None
    return _months_later(clock.now(), months) + timedelta(days=days)


def keep(key: str, name: str, scope: Scope, expires_at: datetime | None) -> None:
    """Let this very key work from now on."""
    digest = digest_of(key)
    ApiKey.objects.create(
        digest=digest,
        short_hash=digest[:SHORT_HASH_DIGITS],
        name=name,
        scope=scope,
        expires_at=None if expires_at is None else int(expires_at.timestamp()),
    )


def _issue(name: str, scope: Scope, expires_at: datetime | None) -> str:
    key = _new_key()
    while ApiKey.objects.filter(short_hash=digest_of(key)[:SHORT_HASH_DIGITS]).exists():
        key = _new_key()  # a short hash names one key
    keep(key, name, scope, expires_at)
    return key


def _new_key() -> str:
    return f"sandbox-{secrets.token_urlsafe(32)}"


def _end(key: str) -> ApiKey:
    named = Q(digest=digest_of(key)) | Q(short_hash=key)
    found = ApiKey.objects.filter(named, invalidated_at=None).first()
    if found is None:
        raise _invalid_key("apikey", "is neither a key that works nor its short hash")
    found.invalidated_at = clock.now()
    found.save(update_fields=["invalidated_at"])
    return found


def _invalid_key(member: str, phrase: str) -> RefusedError:
    return RefusedError(400, "invalid key", [(member, phrase)])


def _months_later(at: datetime, months: int) -> datetime:
    """The same day of a later month, or its last day where the month is shorter."""
    years, month = divmod(at.month - 1 + months, 12)
    year = at.year + years
    last_day = calendar.monthrange(year, month + 1)[1]
    return at.replace(year=year, month=month + 1, day=min(at.day, last_day))
