"""A real process that is stopped in its last moment, before its request begins, and goes on later."""

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from backoffice.core import clock
from backoffice.operations.delivery.record import record_timeout, sender_grace
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Outcome, Status
from tests.faults.harness.forked_workers import ForkedWorkers
from tests.faults.harness.processes import TIMEOUT, wait_until
from tests.operations.steps import status_of
from tests.stub_provider import StubProvider
from tests.tools.test_brokers import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack]


@pytest.fixture
def workers(provider: StubProvider, settings: Settings, tmp_path: Path) -> Iterator[ForkedWorkers]:
    """Processes on this test's database and provider."""
    ours = {
        "COUNTERSIGN_DATABASE_URL": database_url(),
        "COUNTERSIGN_BROKER_URL": "memory://",
        "COUNTERSIGN_GATEWAY_URL": provider.url,
        "COUNTERSIGN_GATEWAY_URL_V4": provider.url_v4,
    }
    made = ForkedWorkers(tmp_path, ours)
    made.start()
    yield made
    made.stop()


def test_a_frozen_sender_sends_nothing_when_it_resumes(
    workers: ForkedWorkers, provider: StubProvider, released: Operation, settings: Settings
) -> None:
    sender = workers.run(
        "send",
        str(released.pk),
        fault_points={"send.before_request": "stop"},
        patience=settings.SEND_WITHIN_SECONDS,
    )
    wait_until(lambda: sender.is_frozen, "it is frozen")
    begin_by = Attempt.objects.get().started_at + timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    wait_until(lambda: clock.now() > begin_by, "it is too late to begin")
    sender.process.send_signal(signal.SIGCONT)
    wait_until(lambda: sender.is_gone, "it goes on to its end")
    assert provider.posts == []
    assert (status_of(released), Attempt.objects.get().outcome) == (Status.APPROVED, Outcome.NOT_SENT)


def test_a_frozen_sender_sends_nothing_once_its_operation_was_returned(
    workers: ForkedWorkers, provider: StubProvider, released: Operation
) -> None:
    """Its connection is ready and, by every clock, it is still in time."""
    sender = workers.run("send", str(released.pk), fault_points={"send.connected": "stop"}, patience=TIMEOUT)
    wait_until(lambda: sender.is_frozen, "it is frozen")
    attempt = Attempt.objects.get()
    assert attempt.begin_by is not None
    record_timeout(attempt.pk, now=attempt.begin_by + sender_grace() + timedelta(seconds=1))
    assert status_of(released) == Status.APPROVED
    sender.process.send_signal(signal.SIGCONT)
    wait_until(lambda: sender.is_gone, "it goes on to its end")
    attempt.refresh_from_db()
    assert provider.posts == []
    assert (status_of(released), attempt.outcome, attempt.begun_at) == (
        Status.APPROVED,
        Outcome.NOT_SENT,
        None,
    )
    assert len(attempt.responses) == 2  # why it was returned, and what the sender found
