"""The endpoint: requests with the secret in the URL are accepted within limits; others are not found."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.webhooks.endpoint import MAX_BODY_BYTES
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
