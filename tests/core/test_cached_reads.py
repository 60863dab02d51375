"""What the provider reported last, kept for every process and for when the provider cannot be reached."""

from datetime import timedelta
from decimal import Decimal

import pytest
from pydantic import TypeAdapter
from pytest_django import DjangoAssertNumQueries

from backoffice.core.cached_reads import CachedRead, cached_values, failed_read_text, reads_together
from backoffice.core.models import CachedReadRow
from backoffice.ledger import accounts as ledger
from backoffice.ledger import callback_url
from payments_gateway import (
    Asset,
    CredentialsError,
    GatewayError,
    NotSentError,
    RateLimitedError,
    ReadFailedError,
)
from tests.cached_reads import Elapse
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
COUNT = CachedRead("count", TypeAdapter(int))
HOURLY = CachedRead("hourly", TypeAdapter(int), fresh_for=HOUR, retry_after=MINUTE)


@pytest.fixture
def elapse(monkeypatch: pytest.MonkeyPatch) -> Elapse:
    return Elapse(monkeypatch)


def away() -> int:
    raise ReadFailedError("The provider could not be reached.")


def never() -> int:
    raise AssertionError("the provider was asked")


def test_the_last_value_is_used_while_the_provider_is_unreachable() -> None:
    first = COUNT.refresh(lambda: 7)
    later = COUNT.refresh(away)
    assert (later.value, later.read_at, later.error) == (
        7,
        first.read_at,
        "The provider could not be reached.",
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            CredentialsError("no such key", 401),
            "The provider refuses the API key. Ask an administrator to check it.",
        ),
        (RateLimitedError("slow down", 429), "The provider refused the request: slow down"),
        (ReadFailedError("a page of HTML", 502), "The provider responded with an error (HTTP 502)."),
        (ReadFailedError("Too many reads."), "Too many reads."),
    ],
)
def test_a_failed_read_says_why(error: GatewayError, text: str) -> None:
    assert failed_read_text(error) == text


def test_a_failed_connection_says_that_the_provider_cannot_be_reached() -> None:
    error = ReadFailedError("GET /balance: connection refused")
    error.__cause__ = NotSentError("connection refused")
    assert failed_read_text(error) == "The provider cannot be reached, or does not respond in time."


def test_the_newest_value_is_kept() -> None:
    COUNT.refresh(lambda: 7)
    COUNT.refresh(lambda: 8)
    assert COUNT.cached().value == 8


def test_there_is_no_value_before_the_first_read() -> None:
    assert not COUNT.cached().is_known
    assert COUNT.refresh(away).value is None


def test_a_failed_read_keeps_the_last_value() -> None:
    COUNT.refresh(lambda: 7)
    assert COUNT.refresh(lambda: None).value == 7


def test_a_value_expires_after_a_day(elapse: Elapse) -> None:
    COUNT.refresh(lambda: 7)
    elapse(DAY)
    assert not COUNT.cached().is_known
    CachedRead("other", TypeAdapter(int)).refresh(lambda: 1)
    assert not CachedReadRow.objects.filter(pk="count").exists()


def test_a_fresh_value_needs_no_request(elapse: Elapse) -> None:
    assert HOURLY.get(lambda: 7).value == 7
    elapse(HOUR - MINUTE)
    assert HOURLY.get(never).value == 7
    assert HOURLY.fetch(never) == 7
    elapse(MINUTE)
    assert HOURLY.get(lambda: 8).value == 8


def test_a_failed_read_is_not_repeated_at_once(elapse: Elapse) -> None:
    HOURLY.get(lambda: 7)
    elapse(HOUR)
    assert HOURLY.get(away).value == 7
    elapse(MINUTE / 2)
    assert HOURLY.get(never).value == 7
    elapse(MINUTE / 2)
    assert HOURLY.get(lambda: 8).value == 8


def test_a_failed_first_read_is_not_repeated_at_once(elapse: Elapse) -> None:
    assert HOURLY.get(away).error
    assert not HOURLY.get(never).is_known
    elapse(MINUTE)
    assert HOURLY.get(lambda: 8).value == 8


def test_a_required_read_raises_the_error() -> None:
    with pytest.raises(ReadFailedError):
        HOURLY.fetch(away)
    assert HOURLY.fetch(lambda: 7) == 7


def test_a_value_of_an_unknown_shape_is_ignored() -> None:
    CachedRead("count", TypeAdapter(dict[str, str])).refresh(lambda: {"shape": "of another release"})
    assert not COUNT.cached().is_known


def test_a_value_tampered_with_in_the_database_is_ignored() -> None:
    """A value in clear, one of another key, and an old one with a new time."""
    read_at = COUNT.refresh(lambda: 7).read_at
    assert read_at
    other = CachedRead("other", TypeAdapter(int))
    other.refresh(lambda: 8)
    rows, row = CachedReadRow.objects.filter(pk="count"), CachedReadRow.objects.get(pk="count")
    for changes in (
        {"encrypted_value": b"8"},
        {"encrypted_value": bytes(CachedReadRow.objects.get(pk="other").encrypted_value)},
        {"read_at": read_at + MINUTE},
    ):
        rows.update(**changes)
        assert not COUNT.cached().is_known
        rows.update(encrypted_value=bytes(row.encrypted_value), read_at=read_at)
    assert COUNT.cached().value == 7
    assert bytes(row.encrypted_value) != b"7"


def test_several_values_are_read_in_one_query() -> None:
    COUNT.refresh(lambda: 7)
    values = cached_values([COUNT, HOURLY])
    assert (values["count"].value, values["hourly"].is_known) == (7, False)


def test_each_value_round_trips(sandbox: SandboxProcess) -> None:
    for now, known in (
        (ledger.refresh_wallet(), ledger.cached_wallet()),
        (ledger.refresh_own_accounts(), ledger.cached_own_accounts()),
        (callback_url.refresh_callback_url(), callback_url.cached_callback_url()),
    ):
        assert now.is_known
        assert known == now


@pytest.mark.parametrize("text", ["0.00000000", "0.00000001", "12345678901234567890.12345678"])
def test_an_amount_keeps_its_exact_digits(text: str) -> None:
    read = CachedRead("assets", TypeAdapter(Asset))
    read.refresh(lambda: Asset(currency="USDT", address="T9yD", balance=Decimal(text)))
    kept = read.cached().value
    assert kept is not None
    assert kept.balance == Decimal(text)


def test_reads_together_ask_the_database_once_and_are_stored_at_the_end(
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    HOURLY.refresh(lambda: 1)
    with reads_together([HOURLY, COUNT]):
        with django_assert_num_queries(0):
            assert (HOURLY.get(never).value, COUNT.cached().value) == (1, None)
            assert COUNT.fetch(lambda: 7) == 7
            assert COUNT.cached().value == 7
        assert not CachedReadRow.objects.filter(pk="count").exists()
    assert COUNT.cached().value == 7


def test_what_was_read_together_is_stored_also_after_an_error() -> None:
    def read_and_fail() -> None:
        with reads_together():
            COUNT.fetch(lambda: 7)
            away()

    with pytest.raises(ReadFailedError):
        read_and_fail()
    assert COUNT.cached().value == 7


def test_what_is_read_together_ages_as_elsewhere(elapse: Elapse) -> None:
    HOURLY.refresh(lambda: 1)
    with reads_together([HOURLY]):
        elapse(2 * HOUR)
        assert HOURLY.fetch(lambda: 2) == 2
