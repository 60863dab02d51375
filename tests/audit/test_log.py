"""An entry is kept with the change it belongs to, or neither is; and writers never break the chain."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.db import connection, transaction

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.canonical import GENESIS, NotRecordableError
from backoffice.audit.log import (
    ChainMovedError,
    HeadMissingError,
    OutsideTransactionError,
    advance_head,
    record,
)
from backoffice.audit.models import ChainHead, Entry
from backoffice.audit.verification import verify_chain
from backoffice.core import clock
from backoffice.core.web import request_context
from tests.append_only.triggers import lifted

WRITERS, EACH = 8, 10


@pytest.mark.django_db
def test_an_entry_has_actor_action_time_and_address(preparer: User) -> None:
    before = clock.now()
    with request_context.call_context(request_id="3f2a", address="10.0.0.9"):
        record(Action.OPERATION_PREPARED, actor=preparer, target=preparer, why="test")

    entry = Entry.objects.get()
    assert before <= entry.at <= clock.now()
    assert entry.action == Action.OPERATION_PREPARED
    assert (entry.actor_id, entry.actor_label) == (preparer.pk, str(preparer))
    assert (entry.address, entry.request_id) == ("10.0.0.9", "3f2a")
    assert (entry.target_type, entry.target_id, entry.target_label) == (
        "accounts.user",
        str(preparer.pk),
        str(preparer),
    )
    assert entry.detail == {"why": "test"}
    assert str(entry) == f"{preparer} prepared {preparer}"


@pytest.mark.django_db
def test_each_entry_links_to_the_previous_one_and_moves_the_head(preparer: User) -> None:
    first = record(Action.OPERATION_PREPARED, actor=preparer)
    second = record(Action.OPERATION_CANCELLED, actor=preparer)

    assert (first.position, first.previous_hash) == (1, GENESIS)
    assert (second.position, second.previous_hash) == (2, first.hash)
    assert str(ChainHead.objects.get()) == f"2:{second.hash}"


@pytest.mark.django_db
def test_the_system_and_anonymous_users_are_distinguished() -> None:
    by_program = record(Action.OPERATION_EXPIRED, actor=None, target="W-1")
    with request_context.call_context(request_id="sweep-1"):
        by_job = record(Action.OPERATION_EXPIRED, actor=None, target="W-2")
    with request_context.call_context(request_id="r", by_request=True):
        by_stranger = record(Action.OPERATION_ACTION_REFUSED, actor=None)

    assert str(by_program) == "Countersign recorded the expiry of W-1"
    assert str(by_job) == "Countersign recorded the expiry of W-2"
    assert by_stranger.actor_label == "Someone not signed in"


@pytest.mark.django_db(transaction=True)
def test_nothing_is_recorded_outside_a_transaction() -> None:
    with pytest.raises(OutsideTransactionError):
        record(Action.OPERATION_PREPARED, actor=None)

    assert not Entry.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_rolled_back_leaves_no_entry_and_no_gap() -> None:
    with transaction.atomic():
        record(Action.OPERATION_PREPARED, actor=None)
        transaction.set_rollback(True)
    with transaction.atomic():
        kept = record(Action.OPERATION_PREPARED, actor=None)

    assert kept.position == 1
    assert verify_chain().is_intact


@pytest.mark.django_db
def test_an_entry_with_an_invalid_detail_does_not_move_the_head() -> None:
    with pytest.raises(NotRecordableError):
        record(Action.OPERATION_PREPARED, actor=None, ratio=0.1)

    assert ChainHead.objects.get().position == 0


@pytest.mark.django_db
def test_nothing_is_appended_to_a_log_without_its_head() -> None:
    with lifted(connection):
        ChainHead.objects.all().delete()

    with pytest.raises(HeadMissingError):
        record(Action.OPERATION_PREPARED, actor=None)


@pytest.mark.django_db
def test_two_entries_cannot_follow_the_same_entry() -> None:
    seen_before = ChainHead.objects.get()
    record(Action.OPERATION_PREPARED, actor=None)

    with pytest.raises(ChainMovedError):
        advance_head([Entry(position=1, previous_hash=seen_before.hash, hash="f" * 64)])

    assert verify_chain().is_intact


def test_an_action_removed_in_a_later_release_is_still_displayed() -> None:
    assert (
        str(Entry(actor_label="Ada", action="coin.tossed", target_label="a coin")) == "Ada coin.tossed a coin"
    )


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_keep_the_chain_intact() -> None:
    start = threading.Barrier(WRITERS)

    def write(writer: int) -> None:
        start.wait(timeout=60)
        with closing(connection):
            for number in range(EACH):
                with transaction.atomic():
                    record(Action.OPERATION_PREPARED, actor=None, writer=writer, number=number)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(WRITERS)))

    assert str(verify_chain()) == f"{WRITERS * EACH} entries verified; their chain is intact"
