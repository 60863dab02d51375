"""Who may ask: the methods of a path, and the check of the credential headers (Authentication 1 and 2)."""

from collections.abc import Callable
from functools import wraps
from secrets import compare_digest
from typing import Any

from django.http import HttpRequest, HttpResponse

from payments_gateway.sandbox.merchant.admission import admitted_scope
from payments_gateway.sandbox.merchant.scopes import Scope, allows
from payments_gateway.sandbox.wire.answers import refusal
from payments_gateway.sandbox.wire.credentials import API_USER, USER_VERSIONS
from payments_gateway.sandbox.wire.errors import RefusedError
from payments_gateway.sandbox.wire.operations import V4, operation_at

View = Callable[..., HttpResponse]


def operation(*methods: str, credentials: bool = True) -> Callable[[View], View]:
    """Declare what answers at a path: its methods, and whether it wants the credential headers."""

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
    """Let the request pass, or raise RefusedError.

    401 names the header that is missing or wrong: three of them at v2, two at v4. 403: the key works, and its scope
    does not reach this operation.
    """
    scope = admitted_scope(_given(request, "X-Api-Key"))
    _check(request, "X-Api-User", (API_USER,))
    if not request.path_info.startswith(f"{V4}/"):
        _check(request, "X-User-Version", USER_VERSIONS)
    _check_scope(request, scope)


def _wrong_method(request: HttpRequest, allowed: str) -> HttpResponse:
    response = refusal(RefusedError(405, f"{request.method} is not allowed here; use {allowed}"))
    response["Allow"] = allowed
    return response


def _given(request: HttpRequest, header: str) -> str:
    given = request.headers.get(header)
    if not given:
        raise RefusedError(401, f"{header} is missing")
    return given


def _check(request: HttpRequest, header: str, accepted: tuple[str, ...]) -> None:
    given = _given(request, header)
    if not any(compare_digest(given.encode(), value.encode()) for value in accepted):
        raise RefusedError(401, f"{header} is not valid")


def _check_scope(request: HttpRequest, scope: Scope) -> None:
    operation = operation_at(request.method or "", request.path_info)  # None: a read beyond the specification
    if operation is not None and not allows(scope, operation):
        raise RefusedError(403, f"the scope of this X-Api-Key, {scope}, does not allow {operation.name}")
