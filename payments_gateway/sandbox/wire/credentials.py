"""The one demo merchant of the simulation, and the check of the three credential headers.

These are not secrets: they open a simulation, are printed in its banner, and are the same everywhere.
"""

from secrets import compare_digest

from django.http import HttpRequest

from payments_gateway.sandbox.wire.errors import RefusedError

API_KEY = "sandbox-key-of-the-simulation"
API_USER = "countersign-demo"
USER_VERSIONS = ("v2",)
BUSINESS_ID = "b5f1c2d94a7e4f0ba1c83d56"
BUSINESS_NAME = "Meridian Foods Limited"


def check_credentials(request: HttpRequest) -> None:
    """Let the request pass, or raise RefusedError 401 naming the header that is missing or wrong."""
    _check(request, "X-Api-Key", (API_KEY,))
    _check(request, "X-Api-User", (API_USER,))
    _check(request, "X-User-Version", USER_VERSIONS)


def _check(request: HttpRequest, header: str, accepted: tuple[str, ...]) -> None:
    given = request.headers.get(header)
    if not given:
        raise RefusedError(401, f"{header} is missing")
    if not any(compare_digest(given.encode(), value.encode()) for value in accepted):
        raise RefusedError(401, f"{header} is not valid")
