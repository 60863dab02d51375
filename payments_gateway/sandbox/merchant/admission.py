"""Whether a presented API key opens anything. Asked before every request, so one indexed lookup and no ORM."""

import hashlib

from django.db import connection

from payments_gateway.sandbox import clock
from payments_gateway.sandbox.merchant.scopes import Scope
from payments_gateway.sandbox.wire.errors import RefusedError

_FIND = "SELECT scope, expires_at, invalidated_at FROM merchant_api_key WHERE digest = %s"


def digest_of(key: str) -> str:
    """What is kept of a key: its SHA-256 in hexadecimal digits."""
    return hashlib.sha256(key.encode()).hexdigest()


def admitted_scope(key: str) -> Scope:
    """The scope of a key that works; RefusedError 401 for one that is unknown, deleted, invalidated or expired."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [digest_of(key)])
        row = cursor.fetchone()
    if row is None:
        raise RefusedError(401, "X-Api-Key is not valid")
    scope, expires_at, invalidated_at = row
    if invalidated_at is not None:
        raise RefusedError(401, "X-Api-Key has been invalidated")
    if expires_at is not None and expires_at <= clock.now().timestamp():
        raise RefusedError(401, "X-Api-Key has expired")
    return Scope(scope)
