"""The endpoint: requests with the secret in the URL are accepted within limits; others are not found."""

from itertools import count

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.webhooks import endpoint, processing
from backoffice.webhooks.endpoint import (
    MAX_BODY_BYTES,
    MAX_HEADERS,
    MAX_NAME_LENGTH,
    MAX_VALUE_LENGTH,
    headers_to_store,
)
from backoffice.webhooks.models import Delivery
from tests.webhooks.steps import ADDRESS, SECRET, deliver, forged, only_delivery, status_delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver")]


def test_a_signed_delivery_is_stored_and_answered_without_content() -> None:
    body = status_delivery("T-1")
    assert deliver(body) == 200
    stored = only_delivery()
    assert (stored.verdict, stored.event, stored.transaction_id) == ("valid", "Transaction updated", "T-1")
    assert (bytes(stored.body), stored.received_count) == (body, 1)


def test_an_unsigned_delivery_is_stored_and_refused() -> None:
    assert deliver(forged()) == 400
    assert (only_delivery().verdict, only_delivery().check_due_at) == ("invalid", None)


def test_a_delivery_takes_one_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    deliver(status_delivery("before"))
    body = status_delivery("T-1")
    for _ in range(2):
        with django_assert_num_queries(1):
            assert deliver(body) == 200


@pytest.mark.parametrize(
    "address",
    [
        "/hooks/",
        "/hooks/x/",
        f"/hooks/{SECRET[:-1]}/",
        f"/hooks/{SECRET}0/",
        f"/hooks/{SECRET.upper()}/",
        f"/hooks/{SECRET}/further/",
        "/hooks/%ff%00é/",
    ],
)
def test_a_wrong_secret_in_the_url_is_not_found_and_not_stored(
    address: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert deliver(status_delivery(), to=address) == 404
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("method", ["get", "head", "put", "delete", "options", "patch"])
def test_another_method_is_not_found(method: str) -> None:
    right, wrong = (getattr(Client(), method)(to) for to in (ADDRESS, "/hooks/wrong/"))
    assert (right.status_code, right.content) == (404, wrong.content)
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("secret", ["", "short", SECRET[:31], f"{SECRET} ", f"{SECRET}é"])
def test_the_endpoint_is_disabled_without_a_secret(settings: Settings, secret: str) -> None:
    settings.WEBHOOK_SECRET = secret
    assert deliver(status_delivery(), to=f"/hooks/{secret}/") == 404
    assert not Delivery.objects.exists()


def test_bodies_are_read_up_to_the_size_limit() -> None:
    assert deliver(b"x" * MAX_BODY_BYTES) == 400
    assert only_delivery().verdict == "malformed"
    assert deliver(b"x" * (MAX_BODY_BYTES + 1)) == 413
    assert deliver(b" " * 5_000_000 + status_delivery()) == 413
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize("length", ["", "10", "nonsense", "-1"])
def test_a_wrong_content_length_is_no_error(length: str) -> None:
    assert deliver(b"x" * 100, CONTENT_LENGTH=length) == 400


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00",
        b"\xff\xfe{}",
        b'{"event":"\xff","data":{},"signature":""}',
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"9" * 60_000,
        b'{"event":"a","data":{"n":1e999999999},"signature":"x"}',
        b'{"event":1,"data":{},"signature":""}',
        b'{"event":"a\\u0000b","data":{},"signature":""}',
        b'{"event":"\\ud800","data":{},"signature":""}',
        b'{"event":"' + b"e" * 5000 + b'","data":{},"signature":"AAAA"}',
    ],
)
def test_any_unsigned_body_is_stored_and_starts_nothing(body: bytes) -> None:
    assert deliver(body) == 400
    stored = only_delivery()
    assert (bytes(stored.body), stored.verdict != "valid", stored.check_due_at) == (body, True, None)


def test_an_oversized_id_is_not_truncated() -> None:
    assert deliver(status_delivery("T" * 501)) == 200
    assert only_delivery().transaction_id == ""


def test_the_headers_and_the_answer_are_stored() -> None:
    deliver(status_delivery("T-1"), HTTP_USER_AGENT="provider/2", HTTP_X_FORWARDED_FOR="203.0.113.7")
    stored = only_delivery()
    assert stored.headers["User-Agent"] == "provider/2"
    assert stored.headers["X-Forwarded-For"] == "203.0.113.7"
    assert stored.headers["Content-Type"] == "application/json"
    assert stored.response_status == 200
    assert stored.response_ms is not None
    deliver(forged())
    assert Delivery.objects.get(verdict="invalid").response_status == 400


def test_no_credential_in_a_header_is_stored() -> None:
    deliver(
        status_delivery("T-1"),
        HTTP_COOKIE="sessionid=canary",
        HTTP_AUTHORIZATION="Bearer canary",
        HTTP_PROXY_AUTHORIZATION="Basic canary",
        HTTP_X_API_KEY="canary",
        HTTP_X_CSRF_TOKEN="canary",
        HTTP_X_ORIGINAL_URI=f"{ADDRESS}?canary=1",
    )
    headers = only_delivery().headers
    assert {name for name, value in headers.items() if value is None} == {
        "Cookie",
        "Authorization",
        "Proxy-Authorization",
        "X-Api-Key",
        "X-Csrf-Token",
        "X-Original-Uri",
    }
    assert "canary" not in str(headers)
    assert SECRET not in str(headers)


@pytest.mark.parametrize(
    "name",
    [
        "X-Amzn-Oidc-Data",
        "X-Amzn-Oidc-Accesstoken",
        "X-Amzn-Oidc-Identity",
        "X-MS-Client-Principal",
        "X-MS-Client-Principal-Name",
        "X-MS-Token-Aad-Id-Token",
        "X-Goog-Iap-Jwt-Assertion",
        "X-Goog-Authenticated-User-Email",
        "Cf-Access-Jwt-Assertion",
        "X-Forwarded-Access-Token",
        "X-Forwarded-User",
        "X-Forwarded-Client-Cert",
        "X-Auth-Request-Access-Token",
        "Remote-User",
        "X-Never-Heard-Of",
    ],
)
def test_of_an_identity_added_by_a_proxy_only_the_name_is_stored(name: str) -> None:
    deliver(status_delivery("T-1"), **{f"HTTP_{name.upper().replace('-', '_')}": "canary"})
    headers = only_delivery().headers
    assert [value for stored, value in headers.items() if stored.lower() == name.lower()] == [None]
    assert "canary" not in str(headers)


def test_headers_that_help_to_find_a_problem_are_stored() -> None:
    found = {
        "Date": "Tue, 24 Nov 2026 00:00:00 GMT",
        "Host": "office.example",
        "Via": "1.1 proxy",
        "X-Forwarded-Host": "office.example",
        "X-Forwarded-Proto": "https",
        "X-Request-Id": "r-1",
        "Traceparent": "00-1-1-01",
        "Content-Length": "400",
    }
    assert headers_to_store(found) == found


def test_the_secret_of_the_url_is_not_stored_with_a_header() -> None:
    assert headers_to_store({"Via": f"1.1 proxy {ADDRESS}"}) == {"Via": "1.1 proxy /hooks/***/"}


def test_stored_headers_are_bounded() -> None:
    many = {f"X-{number}-{'n' * 100}": "v" for number in range(100)}
    stored = headers_to_store(many)
    assert len(stored) == MAX_HEADERS
    assert {len(name) for name in stored} == {MAX_NAME_LENGTH}
    (value,) = headers_to_store({"User-Agent": "v" * 1000 + "\x00"}).values()
    assert len(value or "") == MAX_VALUE_LENGTH


def test_a_null_character_in_a_header_is_stored() -> None:
    assert deliver(status_delivery("T-1"), HTTP_VIA="a\x00b") == 200
    assert only_delivery().headers["Via"] == "a\ufffdb"


def test_a_slow_write_corrects_the_time_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count(100, 2)  # each look at the clock is two seconds after the last one
    monkeypatch.setattr(endpoint, "monotonic", lambda: 100.0)
    monkeypatch.setattr(processing, "monotonic", lambda: float(next(seconds)))
    deliver(status_delivery("T-1"))
    assert only_delivery().response_ms == 4000


def test_a_delivery_passes_the_middleware_of_pages() -> None:
    answer = Client().post(ADDRESS, status_delivery(), content_type="application/json")
    assert (answer.status_code, answer["Content-Length"], answer["Cache-Control"]) == (200, "0", "no-store")
    assert "X-Request-ID" in answer
    assert "Content-Language" not in answer  # of the middleware that knows people


def test_a_delivery_for_another_host_is_refused_and_not_stored() -> None:
    assert (
        Client()
        .post(ADDRESS, status_delivery(), content_type="application/json", HTTP_HOST="elsewhere.example")
        .status_code
        == 400
    )
    assert not Delivery.objects.exists()


def test_a_delivery_without_tls_is_refused_and_not_redirected(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    body = status_delivery()
    answer = client.post(ADDRESS, body, content_type="application/json")
    assert answer.status_code == 403
    assert "Location" not in answer.headers
    assert not Delivery.objects.exists()
    assert client.post(ADDRESS, body, content_type="application/json", secure=True).status_code == 200
