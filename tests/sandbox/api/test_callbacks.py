"""PUT and GET /callbackurl."""

import pytest
import requests

from tests.sandbox.conftest import Service

URL = "https://hooks.meridian.example/payments?source=service#top"


def put(service: Service, body: object) -> requests.Response:
    return service.session.put(f"{service.process.url}/callbackurl", json=body, timeout=30)


def present(service: Service) -> object:
    return service.get("/callbackurl").json()["data"]["callbackUrl"]


def test_the_callback_url_is_empty_until_set(service: Service) -> None:
    response = service.get("/callbackurl")
    assert response.status_code == 200
    assert response.json() == {
        "success": True,
        "message": "Callback URL retrieved",
        "data": {"callbackUrl": ""},
    }


def test_the_callback_url_is_returned_exactly(service: Service) -> None:
    response = put(service, {"callbackUrl": URL})
    assert response.status_code == 200
    assert response.json() == {"success": True, "message": "Callback URL updated"}
    assert present(service) == URL


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
def test_any_web_address_is_accepted(service: Service, url: str) -> None:
    assert put(service, {"callbackUrl": url}).status_code == 200
    assert present(service) == url


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
def test_other_addresses_are_refused_and_change_nothing(service: Service, url: object, problem: str) -> None:
    put(service, {"callbackUrl": URL})
    response = put(service, {"callbackUrl": url})
    assert response.status_code == 400
    assert response.json()["message"] == f"callbackUrl {problem}"
    assert present(service) == URL


def test_a_reset_clears_the_callback_url(service: Service) -> None:
    put(service, {"callbackUrl": URL})
    service.process.reset()
    assert present(service) == ""
