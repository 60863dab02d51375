"""A real process that is stopped in its last moment, its connection to the provider not yet made, and goes on later."""

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from backoffice.core import clock
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Outcome, Status
from tests.faults.harness.forked_workers import ForkedWorkers
from tests.faults.harness.processes import wait_until
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
    wait_until(lambda: sender.is_frozen, "it stands still")
    begin_by = Attempt.objects.get().started_at + timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    wait_until(lambda: clock.now() > begin_by, "it is too late to begin")
    sender.process.send_signal(signal.SIGCONT)
    wait_until(lambda: sender.is_gone, "it goes on to its end")
    assert provider.posts == []
    assert (status_of(released), Attempt.objects.get().outcome) == (Status.APPROVED, Outcome.NOT_SENT)
