"""A sync that breaks off goes on where it was, and what is wrong with the provider is reported."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.core import clock
from backoffice.ledger.mirror import sync
from backoffice.ledger.models import Mirror, Transaction
from payments_gateway import GatewayError
from tests.ledger.long_list import LongList, member, numbered
from tests.ledger.mirror.sync.steps import DAY, MINUTE, here, load, state, sync_after

pytestmark = pytest.mark.django_db


def test_a_list_that_shrank_between_two_turns_is_read_completely(provider: LongList) -> None:
    provider.listed = numbered(2500)
    provider.spoilt = {14: (500, "{}")}
    with pytest.raises(GatewayError):
        load()
    assert Mirror.objects.get().pass_page == 14
    provider.spoilt.clear()
    del provider.listed[:450]
    load()
    assert provider.names() <= here()


def test_an_interrupted_pass_resumes_where_it_stopped(provider: LongList) -> None:
    provider.listed = numbered(2500)
    provider.spoilt = {14: (500, "{}")}
    with pytest.raises(GatewayError):
        load()
    assert Transaction.objects.count() == 1300  # those too that stood before the page that failed
    assert state().percent == 52
    assert "500" in state().error
    provider.spoilt.clear()
    provider.asked.clear()
    load()
    assert here() == provider.names()
    # The newest pages, then the page before the place that was reached, for overlap.
    assert provider.asked[:4] == [1, 2, 13, 14]
    assert state().error == ""


def test_an_interrupted_newest_pass_leaves_no_gap_below_it(provider: LongList) -> None:
    provider.listed = numbered(900)
    load()
    provider.grow(*(f"N{number}" for number in range(700)))
    provider.spoilt = {5: (500, "{}")}
    sync_after(MINUTE)
    assert Transaction.objects.count() == 900 + 400
    assert state().error
    provider.spoilt.clear()
    provider.grow("newest")
    sync_after(2 * MINUTE)
    assert here() == provider.names()


def test_a_provider_that_repeats_one_page_is_reported(provider: LongList) -> None:
    provider.listed = numbered(300)
    page = provider.answer_get("/v2/transaction?page=1")
    provider.spoilt = {1: page, 2: page, 3: page}
    with pytest.raises(GatewayError, match="instead of page 2"):
        load()
    assert "instead of page 2" in state().error
    assert not state().is_loaded


def test_an_unreachable_provider_is_retried_once_a_minute_and_the_mirror_kept(
    provider: LongList, settings: Settings
) -> None:
    provider.listed = numbered(10)
    load()
    moments: set[object] = set()
    address, settings.GATEWAY_URL = settings.GATEWAY_URL, "http://127.0.0.1:9/v2"
    with clock.use_clock(lambda: timezone.now() + MINUTE):
        for _ in range(2):
            assert sync.sync_if_due() == 0
            moments.add(Mirror.objects.get().error_at)
    found = state(MINUTE)
    assert len(moments) == 1
    assert found.error
    assert found.rows == 10
    assert not found.is_late
    assert state(timedelta(minutes=5)).is_late
    settings.GATEWAY_URL = address
    sync_after(3 * MINUTE)
    assert state().error == ""


@pytest.mark.parametrize("answer", [(200, "{"), (200, '{"data": {"data": [{}], "total": 1}}'), (403, "{}")])
def test_an_unreadable_page_is_reported_and_the_newest_records_still_sync(
    provider: LongList, answer: tuple[int, str]
) -> None:
    provider.listed = numbered(700)
    load()
    provider.spoilt = {6: answer}
    provider.grow("A")
    sync_after(DAY)
    assert "A" in here()
    assert state().error
    assert not state(DAY).is_late
    provider.spoilt.clear()
    sync_after(DAY + MINUTE)
    assert state().error == ""


def test_a_record_too_large_for_the_columns_is_named(provider: LongList) -> None:
    provider.listed = [member("A", currency="N" * 3000), *numbered(3)]
    sync_after(timedelta())
    assert state().error == "Transaction A cannot be stored: its ID, currency, type or status is too long."
    assert here() == set()
