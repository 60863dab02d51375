"""Real workers behind real brokers: the message may come a hundred times, or never."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from celery import Celery
from django.db import connection
from django.utils import timezone
from kombu import Connection, Exchange, Queue
from kombu.pools import producers
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.celery import app, broker_options
from backoffice.ledger.accounts import resolve_account_holder
from backoffice.operations.delivery import release
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from tests import factories
from tests.requirements import RABBITMQ, REDIS
from tests.sandbox_process import ISSUED_CODES, ROOT, SandboxProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack]
WITHIN = 300.0  # a busy machine takes its time; what comes sooner is not waited for
BROKERS = [
    pytest.param("filesystem://localhost//", id="local", marks=pytest.mark.any_engine),
    pytest.param(REDIS, id="redis", marks=[pytest.mark.redis, pytest.mark.any_engine]),
    pytest.param(RABBITMQ, id="rabbitmq", marks=pytest.mark.rabbitmq),
]


def wait_until(condition: Callable[[], bool]) -> None:
    """Return once it is true; fail after the deadline."""
    deadline, pause = time.monotonic() + WITHIN, threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "It did not happen in time"
        pause.wait(0.05)


@contextmanager
def process(arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    """A process of the product against this test's database, ended with the block.

    Killed, because everything is proven by then: a worker that waits at RabbitMQ notices a gentle signal only
    when its poll comes round, ten seconds later.
    """
    with log.open("wb") as output:
        running = subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield
        finally:
            running.kill()
            running.wait(60)


@contextmanager
def task_sender(broker: str, folder: Path, queue: str) -> Iterator[Callable[[str], object]]:
    """Rings for one operation, at a queue that is gone from the broker after the block."""
    with Celery(broker=broker) as ringing:
        ringing.conf.broker_transport_options = broker_options(broker, folder)
        yield lambda operation: ringing.send_task("operations.send", args=[operation], queue=queue)
        with ringing.connection_for_write() as connected:
            Queue(queue, channel=connected.default_channel).delete()
            Exchange(queue, channel=connected.default_channel).delete()


@pytest.fixture
def environment(sandbox: SandboxProcess, tmp_path: Path) -> dict[str, str]:
    """What a worker needs to work on this test's database and sandbox."""
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
        "COUNTERSIGN_DATABASE_URL": database_url(),
        "COUNTERSIGN_DATA_DIR": str(tmp_path),
        "COUNTERSIGN_GATEWAY_URL": sandbox.url,
        "COUNTERSIGN_GATEWAY_PROFILE": str(ISSUED_CODES),
    }


@pytest.fixture
def released(sandbox: SandboxProcess, preparer: User, approver: User, settings: Settings) -> Operation:
    """Approved and released without a message to a worker, with a one-time code that stays valid long enough."""
    settings.GATEWAY_PROFILE = str(ISSUED_CODES)
    settings.OTP_LIFETIME_SECONDS = 60 * settings.RELEASE_LIFETIME_MINUTES
    sandbox.options(token_reuse=True)
    holder = resolve_account_holder("0123456789", "044").account_name
    operation = factories.approved(preparer, approver, account_name=holder, typed_name=holder)
    with mock.patch.object(app.amqp, "_producer_pool", producers[Connection("memory://")]):
        return release.release_operation(
            operation.pk,
            actor=approver,
            digest=operation.digest,
            second_factor_at=timezone.now(),
            otp=SecretStr(sandbox.issued_otp()),
        )


@pytest.mark.parametrize("broker", BROKERS)
def test_a_task_delivered_a_hundred_times_to_real_workers_makes_one_debit(
    released: Operation, sandbox: SandboxProcess, environment: dict[str, str], broker: str, tmp_path: Path
) -> None:
    environment["COUNTERSIGN_BROKER_URL"] = broker
    queue = f"test-{released.pk}"
    worker = ["-m", "celery", "-A", "backoffice.celery", "worker", "--pool", "threads", "--concurrency", "4"]
    worker += ["--without-gossip", "--without-mingle", "--without-heartbeat", "-Q", queue, "-l", "info"]
    log = tmp_path / "worker.log"
    with (
        task_sender(broker, tmp_path, queue) as enqueue,
        process([*worker, "-n", "one"], environment, log),
        process([*worker, "-n", "two"], environment, tmp_path / "2"),
    ):
        for _ in range(100):
            enqueue(str(released.pk))
        wait_until(lambda: (log.read_text() + (tmp_path / "2").read_text()).count("succeeded in") == 100)
        wait_until(lambda: has_left(released) or not enqueue(str(released.pk)))  # as the sweeper would
    assert_one_debit(sandbox, released)


def test_the_sweeper_sends_without_a_broker(
    released: Operation, sandbox: SandboxProcess, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["COUNTERSIGN_BROKER_URL"] = "redis://127.0.0.1:9/0"
    sweeper = ["manage.py", "sweep", "--every", "0.2"]
    with process(sweeper, environment, tmp_path / "1"), process(sweeper, environment, tmp_path / "2"):
        wait_until(lambda: Operation.objects.get(pk=released.pk).status == Status.SUCCEEDED)
    assert_one_debit(sandbox, released)


def has_left(operation: Operation) -> bool:
    return Operation.objects.get(pk=operation.pk).status not in {Status.APPROVED, Status.SENDING}


def assert_one_debit(sandbox: SandboxProcess, operation: Operation) -> None:
    confirmation.confirm_operation(operation.pk)
    [withdrawal] = sandbox.ledger()["withdrawals"]
    assert Decimal(withdrawal["amount"]) == operation.amount
    assert Operation.objects.get(pk=operation.pk).status == Status.SUCCEEDED


def database_url() -> str:
    """The address of the database that this test uses."""
    values: dict[str, Any] = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{values['NAME']}"
    return f"postgres://{values['USER']}@{values['HOST']}:{values['PORT']}/{values['NAME']}"
