"""PUT and GET /callbackurl."""

import pytest
import requests

from tests.sandbox.conftest import SandboxClient

URL = "https://hooks.meridian.example/payments?source=service#top"


def put(provider: SandboxClient, body: object) -> requests.Response:
    return provider.session.put(f"{provider.process.url}/callbackurl", json=body, timeout=30)


def present(provider: SandboxClient) -> object:
    return provider.get("/callbackurl").json()["data"]["callbackUrl"]


def test_the_callback_url_is_empty_until_set(provider: SandboxClient) -> None:
    response = provider.get("/callbackurl")
    assert response.status_code == 200
    assert response.json() == {
        "success": True,
        "message": "Callback URL retrieved",
        "data": {"callbackUrl": ""},
    }


def test_the_callback_url_is_returned_exactly(provider: SandboxClient) -> None:
    response = put(provider, {"callbackUrl": URL})
    assert response.status_code == 200
    assert response.json() == {"success": True, "message": "Callback URL updated"}
    assert present(provider) == URL


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:8000/hook",
        "http://[::1]:8000/hook",
        "HTTPS://hooks:443",
        "http://localhost/a%20b/@c",
        "https://hooks.example/" + "x" * (2048 - len("https://hooks.example/")),
    ],
)
def test_any_web_address_is_accepted(provider: SandboxClient, url: str) -> None:
    assert put(provider, {"callbackUrl": url}).status_code == 200
    assert present(provider) == url


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "must be an http or https URL"),
        ("hooks.example", "must be an http or https URL"),
        ("ftp://hooks.example", "must be an http or https URL"),
        ("javascript:alert(1)", "must be an http or https URL"),
        ("http:hooks.example", "must be an http or https URL"),
        ("http://", "must be an http or https URL"),
        ("http:///path", "must be an http or https URL"),
        ("http://hooks.example:70000", "must be an http or https URL"),
        ("http://hooks.example:port", "must be an http or https URL"),
        ("http://[::1", "must be an http or https URL"),
        (" http://hooks.example", "must be an http or https URL"),
        ("http://hooks.example/a b", "must be an http or https URL"),
        ("http://hooks.example/\r\nX-Injected: 1", "must be an http or https URL"),
        ("http:\\\\hooks.example", "must be an http or https URL"),
        ("http://hooks.example/\x00", "must be an http or https URL"),
        ("https://крючок.example", "must be an http or https URL"),
        ("https://ada@hooks.example", "must not contain a user name or password"),
        ("https://ada:secret@hooks.example", "must not contain a user name or password"),
        ("https://@hooks.example", "must not contain a user name or password"),
        ("https://hooks.example/" + "x" * 2048, "must have at most 2048 characters"),
        ("\ud800", "must be text in valid Unicode"),
        (5, "must be a string"),
        (["https://hooks.example"], "must be a string"),
    ],
)
def test_other_addresses_are_refused_and_change_nothing(
    provider: SandboxClient, url: object, problem: str
) -> None:
    put(provider, {"callbackUrl": URL})
    response = put(provider, {"callbackUrl": url})
    assert response.status_code == 400
    assert response.json()["message"] == f"callbackUrl {problem}"
    assert present(provider) == URL


def test_a_reset_clears_the_callback_url(provider: SandboxClient) -> None:
    put(provider, {"callbackUrl": URL})
    provider.process.reset()
    assert present(provider) == ""
