"""What every answer carries, whatever page it is and whoever asks; and how cookies travel in production."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from tests import factories
from tests.accounts import steps
from tests.core.environments import PRODUCTION, STAGING, settings_in

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
NOWHERE = "/operations/00000000-0000-4000-8000-000000000000/"
SIGNED_IN = {
    "overview": ("get", "/", 200),
    "list": ("get", "/operations/", 200),
    "rows for htmx": ("htmx", "/operations/", 200),
    "filter that is wrong": ("get", "/operations/?since=yesterday", 422),
    "form": ("get", "/operations/prepare/withdrawal/", 200),
    "form that is wrong": ("post", "/operations/prepare/withdrawal/", 422),
    "one operation": ("get", "operation", 200),
    "nothing new": ("get", "live", 204),
    "cancelled": ("post", "cancel", 302),
    "reports": ("get", "/reports/", 200),
    "file": ("get", "/reports/operations.csv", 200),
    "my account": ("get", "/account/", 200),
    "second factor": ("get", "/account/second-factor/", 200),
    "new authenticator": ("get", "/account/authenticator/", 200),
    "recovery codes": ("get", "/account/recovery-codes/", 200),
    "not allowed": ("get", "/settings/audit/", 403),
    "not there": ("get", NOWHERE, 404),
    "no such address": ("get", "/nowhere/", 404),
    "wrong method": ("get", "/account/sign-out/", 405),
    "error of our own": ("post", "/account/second-factor/", 500),
}
STRANGER = {
    "sign-in": ("get", "/account/sign-in/", 200),
    "sign-in refused": ("post", "/account/sign-in/", 422),
    "sent to sign-in": ("get", "/operations/", 302),
    "sent to sign-in by htmx": ("htmx", "/operations/", 200),
    "not there": ("get", "/nowhere/", 404),
}
DIRECTIVES = {
    "default-src": "'none'",
    "script-src": "'self'",
    "object-src": "'none'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


def ask(client: Client, how: str, address: str) -> Any:
    if how == "htmx":
        return client.get(address, headers={"HX-Request": "true"})
    return client.post(address, {"code": "123456"}) if how == "post" else client.get(address)


def assert_guarded(answer: Any) -> None:
    """The headers that no answer may lack."""
    policy = dict(part.strip().partition(" ")[::2] for part in answer["Content-Security-Policy"].split(";"))
    assert policy.items() >= DIRECTIVES.items()
    assert not [source for source in ("unsafe", "*", "http:", "blob:") if source in str(policy)]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer["Cross-Origin-Resource-Policy"] == "same-origin"
    assert {"camera=()", "geolocation=()", "payment=()"} <= set(answer["Permissions-Policy"].split(", "))
    assert len(answer["X-Request-ID"]) == 12
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("kind", SIGNED_IN)
def test_every_response_when_signed_in_has_security_headers(
    client: Client, sign_in: SignIn, preparer: User, settings: Settings, kind: str
) -> None:
    how, address, status = SIGNED_IN[kind]
    sign_in(client, preparer)
    client.raise_request_exception = False
    if not address.startswith("/"):
        operation = factories.prepared(preparer)
        seen = client.get(operation.get_absolute_url()).context["seen"]
        parts = {"operation": "", "live": f"live/?seen={seen}", "cancel": "cancel/"}
        address = f"{operation.get_absolute_url()}{parts[address]}"
    if status == 500:
        settings.ENCRYPTION_KEYS = ["broken"]
    answer = ask(client, how, address)
    assert answer.status_code == status
    assert_guarded(answer)


@pytest.mark.parametrize("kind", STRANGER)
def test_every_response_when_signed_out_has_security_headers(client: Client, kind: str) -> None:
    how, address, status = STRANGER[kind]
    answer = ask(client, how, address)
    assert answer.status_code == status
    assert_guarded(answer)


def test_a_csrf_failure_has_security_headers(preparer: User, sign_in: SignIn) -> None:
    client = sign_in(Client(enforce_csrf_checks=True), preparer)
    answer = client.post("/account/preferences/", {"theme": "dark"})
    assert answer.status_code == 403
    assert_guarded(answer)
    assert User.objects.get(pk=preparer.pk).theme == "auto"


def test_an_unknown_host_is_refused(client: Client) -> None:
    assert client.get("/account/sign-in/", headers={"Host": "countersign.evil.example"}).status_code == 400


def test_cookies_are_http_only_and_same_site(client: Client, preparer: User) -> None:
    client.get("/account/sign-in/")
    steps.give_password(client, preparer)
    assert set(client.cookies) == {"countersign_session", "countersign_csrf"}
    for cookie in client.cookies.values():
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
        assert cookie["path"] == "/"
        assert cookie["domain"] == ""


@pytest.fixture(scope="module", params=[STAGING, PRODUCTION], ids=["staging", "production"])
def deployed(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How cookies and transport are set where money is at stake, as that process itself has it."""
    values = settings_in(request.param)
    return {
        name: value for name, value in values.items() if name.startswith(("SESSION_", "CSRF_", "SECURE_"))
    }


@pytest.fixture
def over_tls(deployed: dict[str, Any], settings: Settings) -> Client:
    """A browser at such a deployment."""
    for name, value in deployed.items():
        setattr(settings, name, value)
    return Client(raise_request_exception=False)


def test_deployed_cookies_are_secure_and_host_prefixed(over_tls: Client, preparer: User) -> None:
    over_tls.get("/account/sign-in/", secure=True)
    typed = {"email": preparer.email, "password": factories.PASSWORD}
    over_tls.post("/account/sign-in/", typed, secure=True)
    code = steps.code_of(steps.authenticator(preparer))
    over_tls.post("/account/second-factor/", {"code": code}, secure=True)
    assert over_tls.get("/", secure=True).status_code == 200
    assert set(over_tls.cookies) == {"__Host-session", "__Host-csrf"}
    for cookie in over_tls.cookies.values():
        assert cookie["secure"]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Lax"
        assert cookie["path"] == "/"  # with Secure and without Domain: what browsers demand of `__Host-`
        assert cookie["domain"] == ""


def test_a_deployed_response_has_hsts_for_a_year_and_for_subdomains(over_tls: Client) -> None:
    answer = over_tls.get("/account/sign-in/", secure=True)
    assert answer["Strict-Transport-Security"] == "max-age=31536000; includeSubDomains"
    assert_guarded(answer)


def test_a_deployment_redirects_http_to_https(over_tls: Client, preparer: User) -> None:
    typed = {"email": preparer.email, "password": factories.PASSWORD}
    for answer in (over_tls.get("/account/sign-in/"), over_tls.post("/account/sign-in/", typed)):
        assert answer.status_code == 301
        assert answer["Location"].startswith("https://")
        assert not answer.cookies


def test_the_proxys_tls_header_is_trusted_only_behind_a_proxy() -> None:
    behind = {**PRODUCTION, "COUNTERSIGN_BEHIND_PROXY": "true"}
    assert settings_in(PRODUCTION)["SECURE_PROXY_SSL_HEADER"] is None
    assert settings_in(behind)["SECURE_PROXY_SSL_HEADER"] == ["HTTP_X_FORWARDED_PROTO", "https"]
