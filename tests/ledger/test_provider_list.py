"""The one reader of the provider's list."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from pytest_django import Settings

from backoffice.ledger.provider_list import (
    ListPosition,
    ListReading,
    UnstableListError,
    read_pages,
    recent_transactions,
    transactions_since,
)
from payments_gateway import GatewayError
from tests.ledger.long_list import LongList, member
from tests.stub_provider import serving

pytestmark = pytest.mark.django_db
LONG_AGO, LATELY = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 4, tzinfo=UTC)


@pytest.fixture
def provider(settings: Settings) -> Iterator[LongList]:
    with serving(LongList()) as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        stub.grow(*(f"T{number:03}" for number in range(450)))
        yield stub


def make_older(provider: LongList, first: int, *, than: datetime = LATELY) -> None:
    """Everything from this place on is older."""
    before = (than - timedelta(hours=1)).isoformat()
    provider.listed[first:] = [
        member(one["transactionId"], createdAt=before) for one in provider.listed[first:]
    ]


def test_pages_are_requested_lazily(provider: LongList) -> None:
    page = next(read_pages())
    assert (len(page.records), page.position, provider.asked) == (100, ListPosition(2, 450), [1])


def test_reading_ends_after_a_full_page_of_older_records(provider: LongList) -> None:
    make_older(provider, 150)
    provider.listed[190] = member("T-late")
    found = [record.transaction_id for record in recent_transactions("NGN", back_to=LATELY)]
    assert "T-late" in found
    assert provider.asked == [1, 2, 3]


def test_a_resumed_reading_repeats_one_page(provider: LongList) -> None:
    pages = list(read_pages(start=ListPosition(4, 450)))
    assert provider.asked == [3, 4, 5]
    assert [page.is_last for page in pages] == [False, False, True]


def test_a_resumed_reading_of_a_shorter_list_begins_earlier(provider: LongList) -> None:
    del provider.listed[:150]
    found = [
        record.transaction_id for page in read_pages(start=ListPosition(4, 450)) for record in page.records
    ]
    assert provider.asked == [3, 1, 2, 3]
    assert len(found) == 300


def test_the_lease_is_renewed_before_every_request(provider: LongList) -> None:
    order: list[str] = []
    provider.before = lambda number: order.append(str(number))
    list(read_pages(start=ListPosition(4, 450), before_request=lambda: order.append("renewed")))
    assert order == ["renewed", "3", "renewed", "4", "renewed", "5"]


def test_a_page_gets_records_not_older_than_the_limit(provider: LongList) -> None:
    make_older(provider, 150)
    listed = transactions_since("NGN", LATELY)
    assert (len(listed.records), listed.is_complete) == (150, True)


def test_two_passes_are_compared_by_the_relevant_records_only(provider: LongList) -> None:
    provider.before = lambda number: provider.grow(f"N{len(provider.asked)}")
    found = ListReading("NGN", back_to=LONG_AGO).stable(lambda record: record.transaction_id == "T007")
    assert [record.transaction_id for record in found] == ["T007"]


def test_a_list_that_changes_in_every_pass_is_unstable(provider: LongList) -> None:
    provider.before = lambda number: provider.grow(f"N{len(provider.asked)}")
    with pytest.raises(UnstableListError):
        ListReading("NGN", back_to=LONG_AGO).stable(lambda record: record.transaction_id.startswith("N"))


def test_a_transaction_is_looked_for_only_as_far_as_it_is_listed(provider: LongList) -> None:
    reading = ListReading("NGN", back_to=LONG_AGO)
    assert reading.find("T449") is not None
    assert provider.asked == [1]
    assert reading.find("T200") is not None
    assert reading.find("T440") is not None
    assert provider.asked == [1, 2, 3]
    assert reading.find("T-other") is None
    assert provider.asked == [1, 2, 3, 4, 5]


def test_a_reading_that_failed_is_not_taken_for_a_whole_one(provider: LongList) -> None:
    provider.spoilt[2] = (503, "")
    reading = ListReading("NGN", back_to=LONG_AGO)
    for _ in range(2):
        with pytest.raises(GatewayError):
            reading.find("T200")
    with pytest.raises(GatewayError):
        reading.stable(lambda record: record.transaction_id == "T200")
    assert reading.find("T449") is not None
    assert provider.asked.count(1) == 1


def test_a_reading_that_was_interrupted_is_not_taken_for_a_whole_one(provider: LongList) -> None:
    before_request = Mock(side_effect=[None, TimeoutError("out of time")])
    reading = ListReading("NGN", back_to=LONG_AGO, before_request=before_request)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            reading.find("T200")
    assert provider.asked == [1]
