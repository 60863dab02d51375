"""The one demo merchant of the simulation, and the check of the credential headers (Authentication 1 and 2).

These are not secrets: they open a simulation, are printed in its banner, and are the same everywhere. `API_KEY` is the
key that exists at the start; more are made by the operations for keys.
"""

from secrets import compare_digest

from django.http import HttpRequest

from payments_gateway.sandbox.merchant.admission import admitted_scope
from payments_gateway.sandbox.merchant.scopes import Scope, allows
from payments_gateway.sandbox.wire.errors import RefusedError
from payments_gateway.sandbox.wire.operations import V4, operation_at

API_KEY = "sandbox-key-of-the-simulation"
API_USER = "countersign-demo"
USER_VERSIONS = ("v2",)
BUSINESS_ID = "b5f1c2d94a7e4f0ba1c83d56"
BUSINESS_NAME = "Meridian Foods Limited"


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
