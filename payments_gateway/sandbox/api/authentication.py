"""Allowed methods of a path, the credential headers, and the scope of the API key (Authentication 1 and 2).

Runs before every request, so the key is read with one indexed query and without the ORM.
"""

from collections.abc import Callable
from functools import wraps
from secrets import compare_digest
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse

from payments_gateway.sandbox import API_USER, USER_VERSIONS, clock
from payments_gateway.sandbox.api.http import V4, error_response, operation_at
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.merchant.keys import allows, digest_of
from payments_gateway.sandbox.models import Scope

_FIND_KEY = "SELECT scope, expires_at, invalidated_at FROM sandbox_apikey WHERE digest = %s"


def scope_of_valid_key(key: str) -> Scope:
    """The scope of a valid key. RefusedError 401 if it is unknown, deleted, invalidated or expired."""
    with connection.cursor() as cursor:
        cursor.execute(_FIND_KEY, [digest_of(key)])
        row = cursor.fetchone()
    if row is None:
        raise RefusedError(401, "X-Api-Key is not valid")
    scope, expires_at, invalidated_at = row
    if invalidated_at is not None:
        raise RefusedError(401, "X-Api-Key has been invalidated")
    if expires_at is not None and expires_at <= clock.now().timestamp():
        raise RefusedError(401, "X-Api-Key has expired")
    return Scope(scope)


View = Callable[..., HttpResponse]


def api_view(*methods: str, credentials: bool = True) -> Callable[[View], View]:
    """Declare the methods of a view, and whether it requires the credential headers."""

    def declare(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, **path: Any) -> HttpResponse:
            if request.method not in methods:
                return _wrong_method(request, ", ".join(methods))
            if credentials:
                check_credentials(request)
            return view(request, **path)

        return checked

    return declare


def check_credentials(request: HttpRequest) -> None:
    """Check the credential headers and the scope of the key. Raises RefusedError.

    401 names the missing or wrong header: three are required on v2, two on v4. 403: the key is valid, and its
    scope does not include this operation.
    """
    scope = scope_of_valid_key(_required_header(request, "X-Api-Key"))
    _check_header(request, "X-Api-User", (API_USER,))
    if not request.path_info.startswith(f"{V4}/"):
        _check_header(request, "X-User-Version", USER_VERSIONS)
    _check_scope(request, scope)


def _wrong_method(request: HttpRequest, allowed: str) -> HttpResponse:
    response = error_response(RefusedError(405, f"{request.method} is not allowed here; use {allowed}"))
    response["Allow"] = allowed
    return response


def _required_header(request: HttpRequest, header: str) -> str:
    given = request.headers.get(header)
    if not given:
        raise RefusedError(401, f"{header} is missing")
    return given


def _check_header(request: HttpRequest, header: str, accepted: tuple[str, ...]) -> None:
    given = _required_header(request, header)
    if not any(compare_digest(given.encode(), value.encode()) for value in accepted):
        raise RefusedError(401, f"{header} is not valid")


def _check_scope(request: HttpRequest, scope: Scope) -> None:
    # None for a read beyond the specification.
    operation = operation_at(request.method or "", request.path_info)
    if operation is not None and not allows(scope, operation):
        raise RefusedError(403, f"the scope of this X-Api-Key, {scope}, does not allow {operation.name}")
