"""The mirror holds the whole list once it is loaded, whatever happens to the list while it is read."""

import pytest

from backoffice.ledger.mirror import sync
from backoffice.ledger.mirror.passes import begin_full_pass, continue_full_pass
from backoffice.ledger.models import Mirror, Transaction, TransactionChange
from tests.ledger.long_list import LongList, member, numbered
from tests.ledger.mirror.sync.steps import MINUTE, come_by, here, load, state
from tests.ledger.sync_lease import acquired_sync_lease
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db


def test_the_whole_list_is_stored_after_the_first_load(service: LongList) -> None:
    service.listed = numbered(2345)
    steps = load()
    assert here() == service.names()
    assert steps[:3] == [11, 21, 24]
    found = state()
    assert (found.rows, found.provider_count, found.missing, found.difference) == (2345, 2345, 0, 0)
    assert found.is_loaded
    assert not found.is_loading
    assert not found.is_late
    assert found.provider_time is not None


def test_the_sandbox_is_mirrored_field_by_field(sandbox: SandboxProcess) -> None:
    load()
    with sandbox.books() as books:
        [(number,)] = books.execute("SELECT count(*) FROM sandbox_transaction").fetchall()
    assert number > 50
    assert not Transaction.objects.filter(direction="").exists()
    assert Transaction.objects.count() == number
    name = sandbox.deposit("NGN", "1234567.89", sender="Halima Sule")
    assert sync.sync_now() == 1
    arrived = Transaction.objects.get(transaction_id=name)
    assert (str(arrived.amount), arrived.currency, arrived.direction) == ("1234567.89", "NGN", "in")
    assert (arrived.counterparty, arrived.status) == ("Halima Sule", "fulfilled")


def test_an_empty_list_is_loaded(service: LongList) -> None:
    load()
    assert state().is_loaded
    service.grow("A")
    come_by(MINUTE)
    assert here() == {"A"}


def test_smaller_pages_than_requested_are_read_completely(service: LongList) -> None:
    service.listed, service.per_page = numbered(345), 7
    load()
    assert here() == service.names()


def test_records_that_arrive_during_the_load_hide_no_others(service: LongList) -> None:
    service.listed = numbered(1500)
    service.before = lambda number: (
        service.grow(*(f"N{len(service.asked)}-{n}" for n in range(3))) if len(service.asked) < 40 else None
    )
    load()
    service.before = lambda _: None
    come_by(MINUTE)
    assert here() == service.names()


def test_records_that_vanish_during_the_load_hide_no_others(service: LongList) -> None:
    service.listed = numbered(1500)

    def lose(number: int) -> None:
        if number in {3, 7, 12} and service.asked.count(number) == 1:
            del service.listed[:150]

    service.before = lose
    load()
    assert service.names() <= here()
    assert len(service.names()) == 1050


def test_a_record_listed_twice_on_a_page_is_stored_once(service: LongList) -> None:
    service.listed = [member("A"), member("A"), member("B")]
    load()
    assert sorted(Transaction.objects.values_list("transaction_id", flat=True)) == ["A", "B"]
    assert state().difference == 1


def test_a_turn_without_time_left_reads_one_page(service: LongList) -> None:
    service.listed = numbered(400)
    Mirror.objects.create(pk=1)
    lease = acquired_sync_lease()
    begin_full_pass(lease, Mirror.Depth.WHOLE)
    turns = 0
    while Mirror.objects.get().pass_depth:
        continue_full_pass(lease, until=0.0, on_progress=lambda _: None)
        turns += 1
        assert turns < 10
    assert here() == service.names()
    assert turns > 3


def test_a_repeated_pass_writes_nothing(service: LongList) -> None:
    service.listed = numbered(250)
    load()
    rows = list(Transaction.objects.order_by("pk").values())
    sync.restart_full_pass()
    load()
    assert list(Transaction.objects.order_by("pk").values()) == rows
    assert not TransactionChange.objects.exists()
