"""A valid delivery has the provider read again, once, and only what the provider then shows closes anything."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.leases import acquire_lease
from backoffice.ledger.mirror import sync
from backoffice.ledger.models import Mirror
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import schedule
from backoffice.operations.outcome.schedule import check_due
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.operations.states import Status
from backoffice.webhooks.models import Delivery
from backoffice.webhooks.processing import (
    CHECK_LEASE,
    MIN_INTERVAL,
    RUNS_KEPT,
    _schedule_checks,
    process_again,
    process_due_deliveries,
    receive_delivery,
)
from tests.operations.conftest import provider as provider
from tests.operations.provider_list import NAMED, NAMELESS, record, sent, shows
from tests.payments_gateway.vectors.make_vectors import RECORD, written
from tests.stub_provider import StubProvider
from tests.webhooks.steps import deliver, forged, only_delivery, status_delivery

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver")]


@pytest.fixture
def processing(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """One that the provider works on, and is not due for a check for hours."""
    operation = sent(provider, preparer, approver, NAMED)
    shows(provider, record("T-1", "processing"))
    Attempt.objects.update(next_check_at=clock.now() + timedelta(hours=5))
    return operation


def status(operation: Operation) -> str:
    return Operation.objects.get(pk=operation.pk).status


def reads(provider: StubProvider) -> int:
    """How often the provider was asked so far."""
    return len(provider.keys_shown)


def a_second_later(monkeypatch: pytest.MonkeyPatch) -> None:
    later = clock.now() + MIN_INTERVAL
    monkeypatch.setattr(clock, "_source", lambda: later)


def test_a_delivery_triggers_a_read_that_closes_the_operation(
    processing: Operation, provider: StubProvider
) -> None:
    shows(provider, record("T-1"))
    assert deliver(status_delivery("T-1")) == 200
    assert status(processing) == Status.PROCESSING
    assert process_due_deliveries() == 1
    assert status(processing) == Status.SUCCEEDED
    assert (only_delivery().check_due_at, only_delivery().checked_at is None) == (None, False)
    assert Mirror.objects.get().sync_requested_at is not None


@pytest.mark.parametrize("status_text", ["fullfiled", "failed", "reversed"])
def test_the_content_of_a_delivery_changes_nothing(processing: Operation, status_text: str) -> None:
    receive_delivery(status_delivery("T-1", status_text))
    process_due_deliveries()
    assert status(processing) == Status.PROCESSING
    assert not Entry.objects.filter(action__in=[Action.OPERATION_SUCCEEDED, Action.OPERATION_FAILED]).exists()


def test_an_unrecognised_transaction_checks_operations_without_one(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = sent(provider, preparer, approver, NAMELESS)
    Attempt.objects.update(next_check_at=clock.now() + timedelta(hours=5))
    shows(provider, record("of no operation"))
    receive_delivery(status_delivery("of no operation"))
    process_due_deliveries()
    assert status(operation) == Status.SUCCEEDED


def test_an_unrecognised_transaction_makes_all_open_attempts_due(
    processing: Operation, provider: StubProvider
) -> None:
    shows(provider, record("T-1"))
    before = reads(provider)
    receive_delivery(status_delivery("of no operation"))
    process_due_deliveries()
    assert reads(provider) == before
    assert check_due() == 1
    assert status(processing) == Status.SUCCEEDED


@pytest.mark.parametrize(
    "body",
    [forged(), written(RECORD, b""), b"nonsense", b'{"event":"a"}'],
    ids=["forged", "unsigned", "", "cut"],
)
def test_an_unsigned_delivery_triggers_nothing(
    processing: Operation, provider: StubProvider, body: bytes
) -> None:
    shows(provider, record("T-1"))
    before = (reads(provider), Attempt.objects.values().get())
    receive_delivery(body)
    assert process_due_deliveries() == 0
    assert (reads(provider), Attempt.objects.values().get()) == before
    assert status(processing) == Status.PROCESSING


def test_a_repeated_delivery_triggers_nothing_even_after_a_month(
    processing: Operation, provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = status_delivery("T-1")
    receive_delivery(body)
    process_due_deliveries()
    before = reads(provider)
    Delivery.objects.update(received_at=timezone.now() - timedelta(days=31))
    a_second_later(monkeypatch)
    receive_delivery(body)
    assert (process_due_deliveries(), reads(provider)) == (0, before)


def test_deliveries_trigger_at_most_one_read_a_second(
    processing: Operation, provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        receive_delivery(status_delivery(f"T-{number}"))
    assert process_due_deliveries() == 20
    before = reads(provider)
    receive_delivery(status_delivery("T-1", "failed"))
    assert (process_due_deliveries(), reads(provider)) == (0, before)
    a_second_later(monkeypatch)
    assert process_due_deliveries() == 1
    assert reads(provider) > before


def test_deliveries_that_arrive_during_a_check_trigger_another(
    processing: Operation, provider: StubProvider
) -> None:
    """The check under way has read the list already, and would put the next one off by hours."""

    def settle_and_deliver() -> None:
        provider.before_get = lambda: None
        receive_delivery(status_delivery("T-1"))
        connection.close()  # that of the thread in which the provider answers

    provider.before_get = settle_and_deliver
    Attempt.objects.update(next_check_at=clock.now())
    check_due()
    shows(provider, record("T-1"))
    process_due_deliveries()
    assert status(processing) == Status.SUCCEEDED


def test_deliveries_processed_during_a_check_trigger_another(
    processing: Operation, provider: StubProvider
) -> None:
    def settle_and_deliver() -> None:
        provider.before_get = lambda: None
        receive_delivery(status_delivery("T-1"))
        _schedule_checks()
        connection.close()  # that of the thread in which the provider answers

    provider.before_get = settle_and_deliver
    Attempt.objects.update(next_check_at=clock.now())
    assert check_due() == 1
    assert status(processing) == Status.PROCESSING
    shows(provider, record("T-1"))
    assert check_due() == 1
    assert status(processing) == Status.SUCCEEDED


def test_only_one_check_runs_and_named_attempts_stay_due(
    processing: Operation, provider: StubProvider
) -> None:
    shows(provider, record("T-1"))
    before = reads(provider)
    receive_delivery(status_delivery("T-1"))
    with acquire_lease(CHECK_LEASE, timedelta(minutes=1)) or pytest.fail("is free"):
        assert (process_due_deliveries(), reads(provider)) == (1, before)
    assert check_due() == 1
    assert status(processing) == Status.SUCCEEDED


def test_the_sweeper_makes_the_check_of_a_dead_process(
    processing: Operation, provider: StubProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def die(_named: set[str]) -> int:
        raise KilledError

    shows(provider, record("T-1"))
    receive_delivery(status_delivery("T-1"))
    with monkeypatch.context() as patched:
        patched.setattr(schedule, "run_scheduled_checks", die)
        with pytest.raises(KilledError):
            process_due_deliveries()
    assert check_due() == 1
    assert status(processing) == Status.SUCCEEDED


def test_a_contradiction_of_a_closed_operation_is_found_by_reconciliation(
    processing: Operation, provider: StubProvider
) -> None:
    shows(provider, record("T-1"))
    receive_delivery(status_delivery("T-1"))
    process_due_deliveries()
    Delivery.objects.all().delete()
    shows(provider, record("T-1", "failed"))
    Mirror.objects.update(sync_requested_at=None)
    receive_delivery(status_delivery("T-1", "failed"))
    _schedule_checks()
    assert Mirror.objects.get().sync_requested_at is not None
    sync.sync_now()
    reconcile()
    assert Incident.objects.get().operation == processing
    assert status(processing) == Status.SUCCEEDED


def test_an_unreachable_provider_changes_nothing_and_the_check_stays_due(
    processing: Operation, settings: Settings
) -> None:
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = "http://127.0.0.1:9/v2", "http://127.0.0.1:9/v4"
    receive_delivery(status_delivery("T-1"))
    process_due_deliveries()
    assert status(processing) == Status.PROCESSING
    assert Attempt.objects.get().next_check_at is not None


@pytest.mark.parametrize("body", [status_delivery("T-1"), forged()], ids=["valid", "forged"])
def test_a_user_can_request_a_check_for_any_delivery(
    processing: Operation, provider: StubProvider, approver: User, body: bytes
) -> None:
    receive_delivery(body)
    Delivery.objects.update(check_due_at=None)
    shows(provider, record("T-1"))
    process_again(only_delivery().pk, actor=approver)
    assert process_due_deliveries() == 1
    check_due()  # the forged one names nothing
    assert status(processing) == Status.SUCCEEDED
    entry = Entry.objects.get(action=Action.DELIVERY_RECHECKED)
    assert (entry.actor, entry.detail) == (approver, {"verdict": only_delivery().verdict})


def test_processing_again_changes_nothing_by_itself_and_once_however_often_requested(
    processing: Operation, provider: StubProvider, approver: User
) -> None:
    receive_delivery(status_delivery("T-1", "failed"))
    process_due_deliveries()
    before = Operation.objects.values().get()
    for _ in range(3):
        process_again(only_delivery().pk, actor=approver)
    assert Entry.objects.filter(action=Action.DELIVERY_RECHECKED).count() == 1
    assert Operation.objects.values().get() == before


def test_a_delivery_stores_what_it_started(processing: Operation, provider: StubProvider) -> None:
    receive_delivery(status_delivery("T-1"))
    process_due_deliveries()
    (run,) = only_delivery().started
    assert run["reads"] == [
        {"code": "sync"},
        {"code": "status_check", "operations": [str(processing.pk)]},
    ]


def test_a_delivery_that_names_nothing_stores_the_checks_it_brought_forward(
    processing: Operation, provider: StubProvider
) -> None:
    receive_delivery(status_delivery("of no operation"))
    _schedule_checks()
    (run,) = only_delivery().started
    assert run["reads"] == [{"code": "sync"}, {"code": "other_checks", "count": 1}]


def test_operations_without_a_transaction_are_stored_as_possibly_meant(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = sent(provider, preparer, approver, NAMELESS)
    Attempt.objects.update(next_check_at=clock.now() + timedelta(hours=5))
    receive_delivery(status_delivery("of no operation"))
    _schedule_checks()
    (run,) = only_delivery().started
    assert {"code": "unmatched_checks", "operations": [str(operation.pk)]} in run["reads"]


def test_the_last_runs_are_kept_the_newest_first(
    processing: Operation, provider: StubProvider, approver: User
) -> None:
    receive_delivery(status_delivery("T-1"))
    for _ in range(RUNS_KEPT + 1):
        _schedule_checks()
        process_again(only_delivery().pk, actor=approver)
    times = [run["at"] for run in only_delivery().started]
    assert len(times) == RUNS_KEPT
    assert times == sorted(times, reverse=True)
