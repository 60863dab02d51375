"""The last day is read every hour whatever becomes of the whole list, and what was read before a failure is kept."""

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from backoffice.core import clock
from backoffice.core.models import LeaseRow
from backoffice.ledger.mirror import passes, sync
from backoffice.ledger.mirror.totals import total_discrepancies
from backoffice.ledger.models import ContinuityCheck, Mirror, Sighting, Transaction
from tests.ledger.long_list import LongList, member, numbered
from tests.ledger.sync_lease import acquired_sync_lease
from tests.stub_provider import serving

pytestmark = pytest.mark.django_db

HOUR, DAY = timedelta(hours=1.01), timedelta(days=1.01)


@pytest.fixture
def provider(settings: Settings) -> Iterator[LongList]:
    """With 300 records of today before 1,200 of long ago, all of them here."""
    with serving(LongList()) as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        stub.listed = [of_today(number) for number in range(300)] + numbered(1200)
        sync.load_all(lambda _: None)
        stub.asked.clear()
        yield stub
    assert list(map(str, total_discrepancies())) == []


def of_today(number: int, **members: str) -> dict[str, object]:
    """Of today still when the clock is a day further on."""
    return member(f"D{number}", createdAt=(timezone.now() + DAY).isoformat(), **members)


def sync_after(after: timedelta, *, turns: int = 20) -> None:
    with clock.use_clock(lambda: timezone.now() + after):
        for _ in range(turns):
            if not sync.sync_if_due():
                return


def status_of(name: str) -> str:
    return Transaction.objects.get(transaction_id=name).status


def mirror() -> Mirror:
    return Mirror.objects.get()


def test_a_stalled_full_pass_does_not_keep_the_last_day_from_being_read(
    provider: LongList,
) -> None:
    provider.spoilt = {12: (500, "{}")}
    sync_after(DAY)
    assert mirror().pass_page == 12
    provider.listed[290] = of_today(290, status="failed")

    sync_after(DAY + HOUR)

    assert status_of("D290") == "failed"
    assert (mirror().pass_depth, mirror().pass_page) == ("whole", 12)
    assert "500" in mirror().error["error"]


def test_a_last_day_that_cannot_be_read_does_not_keep_the_whole_list_from_being_read(
    provider: LongList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "TURN_SECONDS", 0.0)  # a page a turn
    removed = provider.listed.pop(1300)["transactionId"]
    sync_after(DAY, turns=5)
    assert mirror().pass_page > 4
    provider.spoilt = {3: (500, "{}")}
    with clock.use_clock(lambda: timezone.now() + DAY + HOUR):
        while mirror().pass_depth and not Sighting.objects.exists():
            Mirror.objects.update(error_at=None)
            sync.sync_if_due()

    assert mirror().day_page == 3  # where the last day does not advance
    assert removed in set(Transaction.objects.values_list("transaction_id", flat=True))
    assert mirror().pass_depth == "count"  # which is what came behind the end of the list


def test_continuity_is_checked_during_a_pass(provider: LongList, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "TURN_SECONDS", 0.0)
    sync_after(DAY, turns=1)
    assert mirror().pass_depth == "whole"
    assert ContinuityCheck.objects.get(currency="NGN").completed_at is not None


def test_a_last_day_pass_in_between_keeps_the_records_seen(
    provider: LongList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "TURN_SECONDS", 0.0)
    removed = provider.listed.pop(1300)["transactionId"]
    with clock.use_clock(lambda: timezone.now() + DAY):
        while mirror().pass_depth != "count" or mirror().pass_page < 5:
            sync.sync_if_due()
        Mirror.objects.update(
            day_pass_begun_at=timezone.now() - DAY
        )  # so it is due between two steps of the whole
        sync_after(DAY, turns=100)

    missing = Transaction.objects.filter(missing_since__isnull=False)
    assert [row.transaction_id for row in missing] == [removed]


def test_the_last_day_is_current_as_of_the_start_of_its_pass(provider: LongList) -> None:
    began = mirror().pass_begun_at
    assert mirror().day_pass_begun_at == began
    sync_after(HOUR)
    later = mirror().day_pass_begun_at
    assert later is not None
    assert began is not None
    assert later - began > timedelta(hours=1)
    assert mirror().day_begun_at is None


def test_the_start_of_a_full_pass_is_kept(provider: LongList, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sync, "TURN_SECONDS", 0.0)
    sync_after(DAY, turns=1)
    began, before = mirror().pass_begun_at, mirror().full_pass_begun_at
    assert (began != before, mirror().pass_depth) == (True, "whole")
    sync_after(DAY + DAY, turns=100)
    assert mirror().full_pass_begun_at == began


def test_a_long_full_pass_does_not_replace_the_last_day_pass(provider: LongList) -> None:
    begun = timezone.now() - DAY
    Mirror.objects.update(
        pass_depth="whole", pass_begun_at=begun, pass_page=14, day_pass_begun_at=None, pass_total=1500
    )
    provider.listed[290] = of_today(290, status="failed")

    sync_after(timedelta())

    assert status_of("D290") == "failed"
    assert max(provider.asked[: provider.asked.index(4) + 1]) == 4


def test_the_last_day_pass_resumes_where_it_stopped(
    provider: LongList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "TURN_SECONDS", 0.0)
    sync_after(HOUR, turns=1)
    assert mirror().day_page == 2
    assert mirror().day_begun_at is not None
    provider.asked.clear()
    sync_after(HOUR, turns=1)
    assert provider.asked == [1, 2]  # the page for overlap, and the next
    sync_after(HOUR)
    assert mirror().day_begun_at is None


@pytest.mark.parametrize("spoilt", [(500, "{}"), (200, "{"), (200, '{"data": {"data": [{}], "total": 1}}')])
def test_records_before_a_failing_page_are_kept(provider: LongList, spoilt: tuple[int, str]) -> None:
    provider.listed[490:500] = [member(f"N{number}") for number in range(10)]  # on the fifth page
    provider.spoilt = {6: spoilt}

    sync_after(DAY)

    assert Transaction.objects.filter(transaction_id__startswith="N").count() == 10
    assert mirror().pass_page == 6


def test_records_before_an_oversized_record_are_kept(provider: LongList) -> None:
    provider.listed[490] = member("N1")
    provider.listed[550] = member("N2", currency="N" * 3000)

    sync_after(DAY)

    assert Transaction.objects.filter(transaction_id="N1").exists()
    assert mirror().pass_page == 6
    assert "N2 cannot be stored" in mirror().error["error"]


def test_a_command_waits_for_other_readers_for_a_limited_time(
    provider: LongList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "MAX_WAIT_SECONDS", 0.5)
    lease, now = acquired_sync_lease(), LeaseRow.objects.get().acquired_at

    for arguments in ([], ["--full"]):
        with pytest.raises(CommandError, match=rf"since {now:%H:%M:%S} UTC\. It continues") as refused:
            call_command("mirror", *arguments)
        assert refused.value.returncode == 3

    lease.release()
    call_command("mirror")


def test_the_command_shows_progress_and_not_a_line_of_the_log_for_each_page(
    provider: LongList, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO):
        call_command("mirror", "--full")
    assert "100%  page" in capsys.readouterr().out
    assert len(provider.asked) > 1
    assert [record for record in caplog.records if record.name.startswith("payments_gateway")] == []


def test_the_last_day_pass_is_due_an_hour_after_the_previous_start() -> None:
    now = clock.now()
    assert not passes.is_day_pass_due(Mirror())
    assert not passes.is_day_pass_due(Mirror(pass_begun_at=now))
    assert passes.is_day_pass_due(Mirror(pass_begun_at=now - passes.DAY_PASS_INTERVAL))
    assert not passes.is_day_pass_due(
        Mirror(pass_begun_at=now - passes.DAY_PASS_INTERVAL, day_pass_begun_at=now)
    )
    assert passes.is_day_pass_due(Mirror(day_pass_begun_at=now, day_begun_at=now))
