"""A real process that is stopped in its last moment, its connection to the service not yet made, and goes on later."""

import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pytest_django import Settings

from backoffice.core import clock
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.states import Outcome, Status
from tests.faults.nursery import Nursery
from tests.faults.product import wait_until
from tests.operations.steps import status_of
from tests.stack.test_brokers import database_url
from tests.stub_service import StubService

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack]


@pytest.fixture
def workers(service: StubService, settings: Settings, tmp_path: Path) -> Iterator[Nursery]:
    """Processes on this test's database and service."""
    ours = {
        "COUNTERSIGN_DATABASE_URL": database_url(),
        "COUNTERSIGN_BROKER_URL": "memory://",
        "COUNTERSIGN_GATEWAY_URL": service.url,
        "COUNTERSIGN_GATEWAY_URL_V4": service.url_v4,
    }
    made = Nursery(tmp_path, ours)
    made.start()
    yield made
    made.stop()


def test_it_sends_nothing_when_it_goes_on(
    workers: Nursery, service: StubService, released: Operation, settings: Settings
) -> None:
    sender = workers.run(
        "send",
        str(released.pk),
        fault_points={"send.leaving": "stop"},
        patience=settings.SEND_WITHIN_SECONDS,
    )
    wait_until(lambda: sender.is_frozen, "it stands still")
    begin_by = Attempt.objects.get().started_at + timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    wait_until(lambda: clock.now() > begin_by, "it is too late to begin")
    sender.process.send_signal(signal.SIGCONT)
    wait_until(lambda: sender.is_gone, "it goes on to its end")
    assert service.posts == []
    assert (status_of(released), Attempt.objects.get().outcome) == (Status.APPROVED, Outcome.NOT_SENT)
