"""The mirror holds what the service's list holds, whatever happens to the list, to the service and to the reader."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.core import clock
from backoffice.ledger import mirroring
from backoffice.ledger.mirror.lease import Lease
from backoffice.ledger.mirror.passes import begin_pass, go_on
from backoffice.ledger.mirror.state import MirrorState, mirror_state
from backoffice.ledger.mirror.totals import discrepancies
from backoffice.ledger.mirrored import Mirror, Sighting, Transaction, TransactionChange
from payments_gateway import GatewayError
from tests.ledger.long_list import LongList, member, numbered
from tests.sandbox_process import SandboxProcess
from tests.stub_service import serving

pytestmark = pytest.mark.django_db

MINUTE, HOUR, DAY = timedelta(minutes=1.01), timedelta(hours=1.01), timedelta(days=1.01)


@pytest.fixture
def service(settings: Settings) -> Iterator[LongList]:
    with serving(LongList()) as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub


@pytest.fixture(autouse=True)
def the_books_agree(db: None) -> Iterator[None]:
    """Whatever happens in a test."""
    yield
    assert list(map(str, discrepancies())) == []
    assert not Mirror.objects.exists() or Mirror.objects.get().rows == Transaction.objects.count()


def load() -> list[int]:
    """Read the whole list; the pages that stood in the mirror's own row at each step."""
    steps: list[int] = []
    mirroring.load(lambda mirror: steps.append(mirror.pass_page))
    return steps


def come_by(after: timedelta) -> None:
    """Somebody comes by so much later, again and again until nothing is due."""
    with clock.running_by(lambda: timezone.now() + after):
        turns = sum(1 for _ in iter(mirroring.mirror_due, 0) if not Mirror.objects.get().problem)
    assert turns < 20, "there is always something due"


def state(after: timedelta = timedelta()) -> MirrorState:
    return replace(mirror_state(), now=timezone.now() + after)


def here() -> set[str]:
    return set(Transaction.objects.values_list("transaction_id", flat=True))


def test_the_whole_list_is_here_after_a_load(service: LongList) -> None:
    service.listed = numbered(2345)
    steps = load()
    assert here() == service.names()
    assert steps[:3] == [11, 21, 24]
    found = state()
    assert (found.rows, found.listed, found.missing, found.difference) == (2345, 2345, 0, 0)
    assert found.is_loaded
    assert not found.is_loading
    assert not found.is_late
    assert found.service_time is not None


def test_the_simulated_service_is_mirrored_member_by_member(sandbox: SandboxProcess) -> None:
    load()
    with sandbox.books() as books:
        [(number,)] = books.execute("SELECT count(*) FROM sandbox_transaction").fetchall()
    assert number > 50
    assert Transaction.objects.count() == number
    name = sandbox.deposit("NGN", "1234567.89", sender="Halima Sule")
    assert mirroring.mirror_now() == 1
    arrived = Transaction.objects.get(transaction_id=name)
    assert (str(arrived.amount), arrived.currency, arrived.direction) == ("1234567.89", "NGN", "in")
    assert (arrived.counterparty, arrived.status) == ("Halima Sule", "fulfilled")


def test_a_list_without_any_record_is_loaded(service: LongList) -> None:
    load()
    assert state().is_loaded
    service.grow("A")
    come_by(MINUTE)
    assert here() == {"A"}


def test_a_service_that_gives_smaller_pages_than_asked_for_is_read_whole(service: LongList) -> None:
    service.listed, service.per_page = numbered(345), 7
    load()
    assert here() == service.names()


def test_what_arrives_while_it_is_read_pushes_nothing_out(service: LongList) -> None:
    service.listed = numbered(1500)
    service.before = lambda number: (
        service.grow(*(f"N{len(service.asked)}-{n}" for n in range(3))) if len(service.asked) < 40 else None
    )
    load()
    service.before = lambda _: None
    come_by(MINUTE)
    assert here() == service.names()


def test_what_vanishes_while_it_is_read_hides_none_of_the_others(service: LongList) -> None:
    service.listed = numbered(1500)

    def lose(number: int) -> None:
        if number in {3, 7, 12} and service.asked.count(number) == 1:
            del service.listed[:150]

    service.before = lose
    load()
    assert service.names() <= here()
    assert len(service.names()) == 1050


def test_a_list_that_got_shorter_between_two_turns_is_read_whole(service: LongList) -> None:
    service.listed = numbered(2500)
    service.spoilt = {14: (500, "{}")}
    with pytest.raises(GatewayError):
        load()
    assert Mirror.objects.get().pass_page == 11
    service.spoilt.clear()
    del service.listed[:450]
    load()
    assert service.names() <= here()


def test_a_reading_that_broke_off_goes_on_where_it_was(service: LongList) -> None:
    service.listed = numbered(2500)
    service.spoilt = {14: (500, "{}")}
    with pytest.raises(GatewayError):
        load()
    assert Transaction.objects.count() == 1000
    assert state().percent == 40
    assert "500" in state().problem
    service.spoilt.clear()
    service.asked.clear()
    load()
    assert here() == service.names()
    # The newest pages, then the page before the place that was reached, for overlap.
    assert service.asked[:4] == [1, 2, 10, 11]
    assert state().problem == ""


def test_new_records_are_here_within_a_minute_and_two_pages_are_enough(service: LongList) -> None:
    service.listed = numbered(900)
    load()
    service.grow("A", "B")
    service.asked.clear()
    come_by(timedelta())
    assert service.asked == []
    come_by(MINUTE)
    assert here() >= {"A", "B"}
    assert service.asked == [1, 2, 3]


def test_below_a_round_that_broke_off_nothing_is_left_unread(service: LongList) -> None:
    service.listed = numbered(900)
    load()
    service.grow(*(f"N{number}" for number in range(700)))
    service.spoilt = {5: (500, "{}")}
    come_by(MINUTE)
    assert Transaction.objects.count() == 900 + 400
    assert state().problem
    service.spoilt.clear()
    service.grow("newest")
    come_by(2 * MINUTE)
    assert here() == service.names()


def test_a_record_that_changes_is_changed_here_and_its_past_is_kept(service: LongList) -> None:
    service.listed = [member("A", status="processing", fee=None), *numbered(50)]
    load()
    before = Transaction.objects.get(transaction_id="A")
    service.listed[0] = member("A", status="fullfiled", fee="1.50", updatedAt="2026-03-04T07:00:00Z")
    come_by(MINUTE)
    after = Transaction.objects.get(transaction_id="A")
    assert (after.pk, after.first_seen_at, after.status) == (before.pk, before.first_seen_at, "fulfilled")
    change = TransactionChange.objects.get()
    assert change.transaction == after
    assert change.before == {"status": "processing", "fee": None, "updated_at": None}
    assert change.after == {"status": "fulfilled", "fee": "1.5", "updated_at": "2026-03-04T07:00:00+00:00"}
    assert after.changed_at == change.seen_at > before.first_seen_at


@pytest.mark.parametrize(("age", "promise"), [(timedelta(hours=20), HOUR), (timedelta(days=90), DAY)])
def test_a_late_change_is_here_within_its_promise(
    service: LongList, age: timedelta, promise: timedelta
) -> None:
    moment = (timezone.now() - age).isoformat()
    old = [member(f"D{number}", createdAt=moment) for number in range(300)]
    service.listed = old + numbered(300)
    load()
    service.listed[290] = member("D290", createdAt=moment, status="failed")
    come_by(2 * MINUTE)
    assert Transaction.objects.get(transaction_id="D290").status == "fulfilled"
    come_by(promise)
    assert Transaction.objects.get(transaction_id="D290").status == "failed"


def test_a_pass_of_a_day_reads_no_further_than_a_page_that_is_older(service: LongList) -> None:
    moment = timezone.now().isoformat()
    service.listed = [member(f"D{number}", createdAt=moment) for number in range(250)] + numbered(2000)
    load()
    service.asked.clear()
    come_by(HOUR)
    assert max(service.asked) == 4


def test_a_record_that_leaves_the_list_stays_and_says_since_when(service: LongList) -> None:
    service.listed = numbered(400)
    load()
    gone = service.listed.pop(350)
    come_by(DAY)
    row = Transaction.objects.get(transaction_id=gone["transactionId"])
    assert row.missing_since is not None
    assert (state().missing, state().difference) == (1, 0)
    assert [change.after for change in row.changes.all()] == [
        {"missing_since": row.missing_since.isoformat()}
    ]
    assert not Sighting.objects.exists()

    service.listed.insert(0, gone)
    come_by(DAY + MINUTE)
    row.refresh_from_db()
    assert row.missing_since is None
    assert row.changes.count() == 2
    assert state().missing == 0


def test_a_record_without_a_time_keeps_the_moment_at_which_it_was_first_seen(service: LongList) -> None:
    service.listed = [member("A", createdAt=None), *numbered(3)]
    load()
    first = Transaction.objects.get(transaction_id="A")
    assert first.occurred_at == first.first_seen_at
    service.listed[0] = member("A", createdAt=None, status="failed")
    come_by(MINUTE)
    second = Transaction.objects.get(transaction_id="A")
    assert (second.status, second.occurred_at) == ("failed", first.occurred_at)
    service.listed[0] = member("A", createdAt="2025-01-01T00:00:00Z", status="failed")
    come_by(2 * MINUTE)
    third = Transaction.objects.get(transaction_id="A")
    assert third.occurred_at.isoformat() == "2025-01-01T00:00:00+00:00"


def test_a_record_that_comes_twice_on_a_page_is_here_once(service: LongList) -> None:
    service.listed = [member("A"), member("A"), member("B")]
    load()
    assert sorted(Transaction.objects.values_list("transaction_id", flat=True)) == ["A", "B"]
    assert state().difference == 1


def test_a_service_that_shows_one_page_for_ever_is_told_as_a_problem(service: LongList) -> None:
    service.listed = numbered(300)
    page = service.answer_get("/v2/transaction?page=1")
    service.spoilt = {1: page, 2: page, 3: page}
    with pytest.raises(GatewayError, match="once more"):
        load()
    assert "once more" in state().problem
    assert not state().is_loaded


def test_a_service_that_cannot_be_reached_leaves_what_is_here_and_is_asked_once_a_minute(
    service: LongList, settings: Settings
) -> None:
    service.listed = numbered(10)
    load()
    moments: set[object] = set()
    address, settings.GATEWAY_URL = settings.GATEWAY_URL, "http://127.0.0.1:9/v2"
    with clock.running_by(lambda: timezone.now() + MINUTE):
        for _ in range(2):
            assert mirroring.mirror_due() == 0
            moments.add(Mirror.objects.get().problem_at)
    found = state(MINUTE)
    assert len(moments) == 1
    assert found.problem
    assert found.rows == 10
    assert not found.is_late
    assert state(timedelta(minutes=5)).is_late
    settings.GATEWAY_URL = address
    come_by(3 * MINUTE)
    assert state().problem == ""


@pytest.mark.parametrize("answer", [(200, "{"), (200, '{"data": {"data": [{}], "total": 1}}'), (403, "{}")])
def test_a_page_that_cannot_be_read_whole_is_a_problem_and_the_newest_go_on(
    service: LongList, answer: tuple[int, str]
) -> None:
    service.listed = numbered(700)
    load()
    service.spoilt = {6: answer}
    service.grow("A")
    come_by(DAY)
    assert "A" in here()
    assert state().problem
    assert not state(DAY).is_late
    service.spoilt.clear()
    come_by(DAY + MINUTE)
    assert state().problem == ""


def test_a_record_that_the_tables_have_no_room_for_is_named(service: LongList) -> None:
    service.listed = [member("A", currency="N" * 3000), *numbered(3)]
    come_by(timedelta())
    assert (
        state().problem
        == "Transaction A cannot be kept: its id, or its currency, type and status, are too long"
    )
    assert here() == set()


def test_a_turn_that_is_over_before_it_began_reads_a_page_all_the_same(service: LongList) -> None:
    service.listed = numbered(400)
    Mirror.objects.create(pk=1)
    lease = Lease.take()
    assert lease is not None
    begin_pass(lease, Mirror.Depth.WHOLE)
    turns = 0
    while Mirror.objects.get().pass_depth:
        go_on(lease, until=0.0, tell=lambda _: None)
        turns += 1
        assert turns < 10
    assert here() == service.names()
    assert turns > 3


def test_what_comes_between_a_round_and_a_pass_is_counted_as_well_as_here(service: LongList) -> None:
    service.listed = numbered(400)
    load()
    service.asked.clear()
    service.before = lambda number: service.grow("A") if service.asked.count(1) == number + 1 == 2 else None
    come_by(HOUR)
    assert "A" in here()
    assert state().difference == 0


def test_a_repeated_reading_writes_nothing(service: LongList) -> None:
    service.listed = numbered(250)
    load()
    rows = list(Transaction.objects.order_by("pk").values())
    mirroring.begin_again()
    load()
    assert list(Transaction.objects.order_by("pk").values()) == rows
    assert not TransactionChange.objects.exists()
