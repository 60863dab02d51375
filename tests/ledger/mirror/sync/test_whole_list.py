"""The mirror holds the whole list once it is loaded, whatever happens to the list while it is read."""

import pytest

from backoffice.ledger.mirror import sync
from backoffice.ledger.mirror.passes import begin_full_pass, continue_full_pass
from backoffice.ledger.models import Mirror, Transaction, TransactionChange
from tests.ledger.long_list import LongList, member, numbered
from tests.ledger.mirror.sync.steps import MINUTE, here, load, state, sync_after
from tests.ledger.sync_lease import acquired_sync_lease
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db


def test_the_whole_list_is_stored_after_the_first_load(provider: LongList) -> None:
    provider.listed = numbered(2345)
    steps = load()
    assert here() == provider.names()
    assert steps[:3] == [11, 21, 24]
    found = state()
    assert (found.rows, found.provider_count, found.missing, found.difference) == (2345, 2345, 0, 0)
    assert found.is_loaded
    assert not found.is_loading
    assert not found.is_late
    assert found.provider_time is not None


@pytest.mark.usefixtures("at_once")
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


def test_an_empty_list_is_loaded(provider: LongList) -> None:
    load()
    assert state().is_loaded
    provider.grow("A")
    sync_after(MINUTE)
    assert here() == {"A"}


def test_smaller_pages_than_requested_are_read_completely(provider: LongList) -> None:
    provider.listed, provider.per_page = numbered(345), 7
    load()
    assert here() == provider.names()


def test_records_that_arrive_during_the_load_hide_no_others(provider: LongList) -> None:
    provider.listed = numbered(1500)
    provider.before = lambda number: (
        provider.grow(*(f"N{len(provider.asked)}-{n}" for n in range(3)))
        if len(provider.asked) < 40
        else None
    )
    load()
    provider.before = lambda _: None
    sync_after(MINUTE)
    assert here() == provider.names()


def test_records_that_vanish_during_the_load_hide_no_others(provider: LongList) -> None:
    provider.listed = numbered(1500)

    def lose(number: int) -> None:
        if number in {3, 7, 12} and provider.asked.count(number) == 1:
            del provider.listed[:150]

    provider.before = lose
    load()
    assert provider.names() <= here()
    assert len(provider.names()) == 1050


def test_a_record_listed_twice_on_a_page_is_stored_once(provider: LongList) -> None:
    provider.listed = [member("A"), member("A"), member("B")]
    load()
    assert sorted(Transaction.objects.values_list("transaction_id", flat=True)) == ["A", "B"]
    assert state().difference == 1


def test_a_turn_without_time_left_reads_one_page(provider: LongList) -> None:
    provider.listed = numbered(400)
    Mirror.objects.create(pk=1)
    lease = acquired_sync_lease()
    begin_full_pass(lease, Mirror.Depth.WHOLE)
    turns = 0
    while Mirror.objects.get().pass_depth:
        continue_full_pass(lease, until=0.0, on_progress=lambda _: None)
        turns += 1
        assert turns < 10
    assert here() == provider.names()
    assert turns > 3


def test_a_repeated_pass_writes_nothing(provider: LongList) -> None:
    provider.listed = numbered(250)
    load()
    rows = list(Transaction.objects.order_by("pk").values())
    sync.restart_full_pass()
    load()
    assert list(Transaction.objects.order_by("pk").values()) == rows
    assert not TransactionChange.objects.exists()
