"""The provider's summary beside the figures of the mirror: equal, explained by the sync, or different."""

import gzip
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.ledger.models import Mirror
from backoffice.ledger.transactions.summary import SummaryComparison, SummaryQuery, refresh_summary
from tests.ledger.mirror.sync.steps import load
from tests.ledger.stored_transactions import add_up, store, unsaved
from tests.operations.steps import text_of
from tests.sandbox_process import API_KEY, API_USER, SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db
PAGE, NOW = "/transactions/summary/", "/transactions/summary/now/"
Comparison = Callable[..., SummaryComparison]


@pytest.fixture
def profile() -> str:
    return "specification"


@pytest.fixture
def synced(request: pytest.FixtureRequest, profile: str, settings: Settings) -> SandboxProcess:
    """The sandbox in this profile, its transactions in the mirror."""
    name = "sandbox_process" if profile == "specification" else "published_process"
    process: SandboxProcess = request.getfixturevalue(name)
    process.reset()
    settings.GATEWAY_URL, settings.GATEWAY_PROFILE = process.url, profile
    settings.GATEWAY_API_KEY, settings.GATEWAY_API_USER = API_KEY, API_USER
    load()
    return process


def compared(reader: Client, query: str = "") -> tuple[SummaryComparison, str]:
    answer: Any = reader.get(NOW + query)
    return answer.context["cached"].value, text_of(answer)


@pytest.mark.parametrize("profile", ["specification", "published"])
@pytest.mark.parametrize(
    "query",
    ["", "?currency=USD&duration=one+year", "?currency=NGN&type=conversion&duration=", "?duration=one+week"],
)
def test_the_figures_agree_with_those_of_the_provider(
    reader: Client, synced: SandboxProcess, query: str
) -> None:
    found, html = compared(reader, query)
    assert (found.reported_count, found.reported_volume) == (found.mirrored_count, found.mirrored_volume)
    assert "The provider and Countersign" in html
    assert "Reported by the provider:" in html


def test_all_time_has_every_transaction_and_no_volume_to_compare(
    reader: Client, synced: SandboxProcess
) -> None:
    found, html = compared(reader, "?currency=")
    assert found.mirrored_count == Mirror.objects.get().rows
    assert "Not compared" in html


def test_transactions_that_were_not_synced_yet_explain_the_difference(
    reader: Client, synced: SandboxProcess
) -> None:
    synced.deposit("NGN", "1250.50")
    found, html = compared(reader)
    assert (found.count_difference, found.volume_difference) == (Decimal(1), Decimal("1250.50"))
    assert "The difference is 1 transaction that had not been synced yet." in html
    assert "Possible causes" not in html


def test_a_difference_that_the_sync_does_not_explain_is_shown_with_its_causes(
    reader: Client, synced: SandboxProcess
) -> None:
    add_up(store([unsaved(occurred_at=timezone.now(), amount=Decimal("99.95"))]))
    found, html = compared(reader)
    assert (found.count_difference, found.volume_difference) == (Decimal(-1), Decimal("-99.95"))
    for shown in ("The figures differ.", "\N{MINUS SIGN}99.95", "Possible causes", "View reconciliation"):
        assert shown in html
    assert "is not finished" not in html


def entries() -> list[tuple[str, str, Any]]:
    found = Entry.objects.filter(action__startswith="summary_discrepancy.").order_by("position")
    return [(one.action.split(".")[1], one.target_label, one.detail["count_difference"]) for one in found]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let this many minutes pass, and the mirror be synced at their end."""
    begin, passed = clock.now(), 0

    def elapse(minutes: int, *, is_synced: bool = True) -> None:
        nonlocal passed
        passed += minutes
        now = begin + timedelta(minutes=passed)
        monkeypatch.setattr(clock, "_source", lambda: now)
        if is_synced:
            Mirror.objects.update(as_of=now)

    return elapse


def test_an_unexplained_difference_becomes_one_discrepancy_until_it_is_gone(
    reader: Client, synced: SandboxProcess, later: Callable[..., None]
) -> None:
    extra = store([unsaved(occurred_at=timezone.now(), amount=Decimal("99.95"))])
    add_up(extra)
    for minutes in (0, 1, 8):  # not yet ten minutes
        later(minutes)
        assert "Unexplained since" not in compared(reader)[1]
    assert entries() == []
    later(1)
    later(1)
    _, html = compared(reader)
    assert "Unexplained since" in html
    assert "recorded as a discrepancy in the audit log" in html
    target = "the provider's summary of NGN, one month"
    assert entries() == [("found", target, "-1")]
    add_up(store([unsaved(occurred_at=timezone.now(), amount=Decimal("5"))]))  # other figures, the same one
    for _ in range(3):
        later(20)
        compared(reader)
    assert entries() == [("found", target, "-1")]
    Mirror.objects.update(loaded_at=None)
    later(20)
    assert "Unexplained since" in compared(reader)[1]
    synced.deposit("NGN", "99.95")
    synced.deposit("NGN", "5")
    Mirror.objects.update(loaded_at=timezone.now())
    assert "The provider and Countersign agree." in compared(reader)[1]
    compared(reader)
    assert entries() == [("found", target, "-1"), ("closed", target, "0")]


@pytest.mark.parametrize("missing", ["sync", "load", "type"])
def test_no_discrepancy_is_recorded_without_a_complete_mirror_or_for_one_type(
    reader: Client, synced: SandboxProcess, later: Callable[..., None], missing: str
) -> None:
    add_up(store([unsaved(occurred_at=timezone.now(), amount=Decimal("99.95"), type="deposit")]))
    if missing == "load":
        Mirror.objects.update(loaded_at=None)
    query = "?currency=NGN&duration=one+month" + ("&type=deposit" if missing == "type" else "")
    for _ in range(3):
        found, _html = compared(reader, query)
        assert found.is_unexplained
        later(15, is_synced=missing != "sync")
    assert entries() == []


@pytest.mark.django_db(transaction=True)
def test_the_figures_of_the_mirror_are_read_in_one_snapshot(synced: SandboxProcess) -> None:
    with CaptureQueriesContext(connection) as captured:
        assert refresh_summary(SummaryQuery("NGN", duration="one month")).value is not None
    queries = [query["sql"] for query in captured.captured_queries]
    (begin,) = [at for at, sql in enumerate(queries) if sql.startswith(("BEGIN DEFERRED", "BEGIN ISOLATION"))]
    end = queries.index("ROLLBACK", begin)
    if connection.vendor == "postgresql":
        assert queries[begin] == "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    for table in ("ledger_daytotal", "ledger_transaction", "ledger_mirror"):
        assert any(f'FROM "{table}"' in sql for sql in queries[begin:end])
    assert not any('FROM "ledger_transaction"' in sql for sql in queries[:begin] + queries[end:])


def test_a_summary_that_contradicts_the_list_beside_it_and_an_unfinished_sync_are_named(
    reader: Client, provider: StubProvider
) -> None:
    _, html = compared(reader, "?currency=NGN")
    assert "The provider's summary and its own list disagree." in html
    assert "The first sync with the provider is not finished" in html


def test_binary_rounding_of_the_volume_is_no_difference() -> None:
    found = SummaryComparison(
        reported_count=2,
        mirrored_count=2,
        listed=2,
        unsynced_count=0,
        reported_volume=Decimal("0.30000000000000004"),
        mirrored_volume=Decimal("0.3"),
        unsynced_volume=Decimal(0),
        reported_duration=None,
        is_mirror_loaded=True,
        currency="NGN",
        since=None,
        read_at=timezone.now(),
        synced_at=None,
    )
    assert not found.differs


@pytest.mark.parametrize("query", ["", "?currency=&duration=one+week", "?currency=NGN&duration="])
def test_an_unreachable_provider_shows_the_figures_last_read(
    reader: Client, synced: SandboxProcess, settings: Settings, query: str
) -> None:
    found, _ = compared(reader, query)
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    again, html = compared(reader, query)
    assert again == found
    assert "Not refreshed: The provider cannot be reached" in html
    assert "Values last reported: <time" in html
    other, html = compared(reader, "?currency=USD")
    assert other is None
    assert "No earlier values are stored." in html


def test_the_first_answer_makes_no_request_and_takes_few_queries(
    reader: Client,
    synced: SandboxProcess,
    settings: Settings,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    compared(reader)
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    with django_assert_max_num_queries(6):
        answer: Any = reader.get(PAGE)
    html = text_of(answer)
    assert len(gzip.compress(answer.content)) <= 14 * 1024
    assert f'hx-get="{NOW}"' in html
    assert "The provider and Countersign agree." in html
    assert "Not refreshed" not in html


def test_a_link_reads_the_summary_without_javascript(reader: Client, synced: SandboxProcess) -> None:
    html = text_of(reader.get(f"{PAGE}?currency=USD&read=1"))
    assert "<!DOCTYPE html>" in html
    assert "The provider and Countersign agree." in html


@pytest.mark.parametrize("query", ["?currency=USDT", "?duration=one+decade", "?type=gift"])
@pytest.mark.parametrize("address", [PAGE, NOW])
def test_a_filter_that_the_specification_does_not_have_is_refused(
    reader: Client, address: str, query: str
) -> None:
    answer = reader.get(address + query)
    assert answer.status_code == 422
    assert "Select one of the options" in answer.content.decode() or address == NOW
