"""Processes killed alone and all at once, and brokers and databases that go away (faults 13 to 16).

What is measured is the time from the moment at which it is back until the right thing is under way.
"""

import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests
from django.conf import settings as configured
from django.db import DatabaseError, connection
from django.test import Client
from pytest_django import Settings

from backoffice.operations import services
from backoffice.operations.models import Operation, Release
from backoffice.operations.states import Status
from tests import factories
from tests.faults import orders
from tests.faults.conftest import addresses
from tests.faults.figures import FIGURES, held_against_the_ledger
from tests.faults.nursery import Nursery
from tests.faults.orders import APART, MONEY
from tests.faults.product import WITHIN, Product, wait_until
from tests.faults.proxy import Proxy, Side
from tests.faults.stage import (
    Stage,
    came_back,
    is_left_open,
    is_settled,
    let_pass_what_is_waited_for,
    statuses,
)
from tests.operations.steps import status_of
from tests.requirements_of_tests import RABBITMQ, REDIS
from tests.stack.test_brokers import database_url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

BROKERS = [
    pytest.param(REDIS, id="redis", marks=pytest.mark.redis),
    pytest.param(RABBITMQ, id="rabbitmq", marks=pytest.mark.rabbitmq),
]
MakeProduct = Callable[..., Product]
SHORT = 2.0  # seconds that a worker is given which stands still for longer


@pytest.fixture
def make_product(tmp_path: Path, wire: Proxy) -> Iterator[MakeProduct]:
    """A product of this test's own."""
    made: list[Product] = []

    def make(broker: str = "filesystem://localhost//", **environment: str) -> Product:
        ours = {"COUNTERSIGN_DATABASE_URL": database_url(), **addresses(wire), **environment}
        made.append(Product(tmp_path, ours, broker=broker, queue=f"faults-{uuid.uuid4()}"))
        return made[-1]

    yield make
    for product in made:
        product.stop()


@contextmanager
def proxied(address: str) -> Iterator[tuple[Proxy, str]]:
    """A wire before a server of this machine, and the server's address behind it."""
    port = urlsplit(address).port
    assert port is not None
    with Proxy(port) as proxy:
        yield proxy, address.replace(f":{port}", f":{proxy.port}", 1)


@pytest.fixture
def database() -> Iterator[tuple[Proxy, str]]:
    """A wire before PostgreSQL."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite is no server")
    with proxied(database_url()) as behind:
        yield behind


def have_begun(operations: list[Operation]) -> bool:
    """Whether each was claimed."""
    return all(status_of(one) != Status.APPROVED or came_back(one) for one in operations)


def recovered(what: str, operations: list[Operation], since: float | None = None) -> None:
    """Note how long it takes, from now on or since then, until all are under way, and let them end."""
    began = time.monotonic() if since is None else since
    wait_until(lambda: have_begun(operations), f"{what}: they are under way")
    FIGURES.recovered(what, time.monotonic() - began)
    wait_until(lambda: all(map(is_settled, operations)), f"{what}: their end is known")


@pytest.mark.parametrize("broker", BROKERS)
def test_all_killed_at_once_and_started_again(stage: Stage, make_product: MakeProduct, broker: str) -> None:
    product = make_product(broker)
    product.start_sweeper()
    product.start_worker()
    product.kill("sweeper")
    product.kill("worker")
    operations = stage.released(*APART)
    product.ring(*[operation.pk for operation in operations])
    began = time.monotonic()
    product.start_sweeper()
    product.start_worker()
    recovered("all killed at once", operations, since=began)
    held_against_the_ledger(stage.service, "all killed at once")


@pytest.mark.parametrize("broker", BROKERS)
def test_while_the_broker_is_away_the_sweeper_sends_and_afterwards_the_worker(
    stage: Stage, make_product: MakeProduct, broker: str
) -> None:
    with proxied(broker) as (wire, behind):
        product = make_product(behind)
        product.start_worker()
        product.start_sweeper()
        with wire.away():
            operations = stage.released(*APART)
            recovered("broker away: the sweeper sends", operations)
        product.kill("sweeper")
        [operation] = stage.released("withdrawal")
        wait_until(lambda: rang(product, operation), "the broker takes messages again")
        wait_until(
            lambda: status_of(operation) not in {Status.APPROVED, Status.SENDING},
            "the worker is back at its queue",
        )
        stage.sweep_until_settled([operation])
        held_against_the_ledger(stage.service, "broker away")
        product.stop()


def rang(product: Product, operation: Operation) -> bool:
    """Whether the broker took the message."""
    try:
        product.ring(operation.pk)
    except OSError:
        return False
    return True


def test_the_database_comes_back(
    stage: Stage, make_product: MakeProduct, database: tuple[Proxy, str]
) -> None:
    wire, behind = database
    product = make_product(COUNTERSIGN_DATABASE_URL=behind)
    product.start_sweeper()
    [first] = stage.released("withdrawal")
    wait_until(lambda: is_settled(first), "the sweeper is at work")
    with wire.away():
        operations = stage.released(*APART)
        wait_until(lambda: "did not allow" in product.log("sweeper"), "the sweeper misses it")
    recovered("database away", operations)
    held_against_the_ledger(stage.service, "database away")


CLAIM, RECORD = b'INSERT INTO "operations_attempt"', b'UPDATE "operations_attempt"'


@pytest.fixture
def behind_the_wire(
    stage: Stage, database: tuple[Proxy, str], tmp_path: Path
) -> Iterator[tuple[Proxy, Nursery]]:
    """Workers whose connection to the database can be cut."""
    wire, behind = database
    workers = Nursery(tmp_path, {**stage.nursery.environment, "COUNTERSIGN_DATABASE_URL": behind})
    workers.start()
    yield wire, workers
    workers.stop()


@pytest.mark.parametrize("kind", MONEY)
def test_a_claim_that_was_not_committed_sends_nothing(
    stage: Stage, behind_the_wire: tuple[Proxy, Nursery], kind: str
) -> None:
    wire, workers = behind_the_wire
    [operation] = stage.released(kind)
    cut = wire.cut(CLAIM, b"COMMIT")
    worker = workers.run("send", str(operation.pk))
    cut.wait()
    wait_until(lambda: worker.is_gone, "the worker gives up")
    assert status_of(operation) == Status.APPROVED
    assert stage.service.ledger()["orders"] == stage.service.ledger()["payments"] == []
    stage.sweep_until_settled([operation])
    held_against_the_ledger(stage.service, "database cut before the claim's commit")


@pytest.mark.parametrize("kind", MONEY)
def test_a_claim_whose_commit_was_not_confirmed_is_never_sent(
    stage: Stage, behind_the_wire: tuple[Proxy, Nursery], kind: str
) -> None:
    wire, workers = behind_the_wire
    [operation] = stage.released(kind)
    cut = wire.cut(CLAIM, b"COMMIT", side=Side.ANSWER)
    worker = workers.run("send", str(operation.pk))
    cut.wait()
    wait_until(lambda: worker.is_gone, "the worker gives up")
    assert status_of(operation) == Status.SENDING
    stage.sweep_until(lambda: is_left_open(operation), "its silence is noticed")
    stage.assert_never_sent([operation])
    held_against_the_ledger(stage.service, "database cut after the claim's commit")


@pytest.mark.parametrize("kind", MONEY)
def test_an_answer_that_cannot_be_recorded_at_once_is_recorded_later(
    stage: Stage, behind_the_wire: tuple[Proxy, Nursery], kind: str
) -> None:
    wire, workers = behind_the_wire
    [operation] = stage.released(kind)
    cut = wire.cut(RECORD, b"COMMIT")
    worker = workers.run("send", str(operation.pk))
    cut.wait()
    wait_until(lambda: worker.is_gone, "the worker waits for the database and records it")
    assert operation.attempts.get().answer.startswith("Accepted")
    stage.sweep_until_settled([operation])
    held_against_the_ledger(stage.service, "database cut while the answer is recorded")


def test_a_database_that_only_reads_sends_nothing(stage: Stage, tmp_path: Path) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("of SQLite the next test says it")
    reads_only = f"{database_url()}?options=-c%20default_transaction_read_only%3Don"
    workers = Nursery(tmp_path, {**stage.nursery.environment, "COUNTERSIGN_DATABASE_URL": reads_only})
    workers.start()
    operations = stage.released(*APART)
    for operation in operations:
        worker = workers.run("send", str(operation.pk))
        wait_until(lambda: worker.is_gone, "the worker gives up")  # noqa: B023 - called at once
    assert "read-only transaction" in workers.log()
    workers.stop()
    assert statuses(operations) == {Status.APPROVED}
    stage.sweep_until_settled(operations)
    held_against_the_ledger(stage.service, "database read-only")


def test_a_file_that_cannot_be_written_sends_nothing(stage: Stage) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no such file")
    operations = stage.released(*APART)
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    for operation in operations:
        with pytest.raises(DatabaseError, match="readonly"):
            services.send_operation(operation.pk)
    connection.close()
    assert stage.service.ledger()["orders"] == stage.service.ledger()["payments"] == []
    stage.sweep_until_settled(operations)
    held_against_the_ledger(stage.service, "file not writable")


def test_a_locked_file_sends_nothing(stage: Stage) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL has no such file")
    operations = stage.released(*APART)
    name = connection.settings_dict["NAME"]
    with closing(sqlite3.connect(name, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="locked"):
            services.send_operation(operations[0].pk)
        assert stage.service.ledger()["orders"] == []
        other.execute("ROLLBACK")
    stage.sweep_until_settled(operations)
    held_against_the_ledger(stage.service, "file locked")


def test_two_of_everything_send_once(stage: Stage, make_product: MakeProduct) -> None:
    product = make_product(REDIS if connection.vendor == "postgresql" else "filesystem://localhost//")
    for name in ("one", "two"):
        product.start_sweeper(f"sweeper-{name}")
        product.start(f"beat-{name}", "-m", "celery", "-A", "backoffice.celery", "beat", "--pidfile=")
    product.start_worker("worker")
    operations = stage.released(*MONEY)
    product.ring(*[operation.pk for operation in operations] * 20)
    recovered("two of everything", operations)
    held_against_the_ledger(stage.service, "two of everything")


def test_a_web_process_killed_before_it_rings_leaves_the_word_to_send(
    stage: Stage, make_product: MakeProduct
) -> None:
    product = make_product()
    product.start_web(points="kill")
    operations = [orders.approved(kind, stage.maker, stage.checker) for kind in APART]
    browser = signed_in(stage)
    for operation in operations:
        page = f"{product.web}/operations/{operation.pk}/"
        wait_until(lambda: answers(browser, page), "the web process is back")  # noqa: B023 - called at once
        product.arm("web", "release.committed")
        token = orders.token_for(operation, stage.service)
        typed = {
            "digest": operation.digest,
            "csrfmiddlewaretoken": browser.cookies[configured.CSRF_COOKIE_NAME],
        }
        if token is not None:
            typed["token"] = token.get_secret_value()
        with pytest.raises(requests.ConnectionError):
            browser.post(f"{page}release/", data=typed, headers={"Referer": page}, timeout=WITHIN)
        assert product.has_reached("web", "release.committed")
    assert Release.objects.count() == len(APART)
    began = time.monotonic()
    product.start_sweeper()
    recovered("web killed before the doorbell", operations, since=began)
    held_against_the_ledger(stage.service, "web killed at release.committed")


def signed_in(stage: Stage) -> requests.Session:
    """The checker's session, with the second factor given a moment ago."""
    browser = requests.Session()
    for name, cookie in factories.sign_in(Client(), stage.checker).cookies.items():
        browser.cookies.set(name, cookie.value)
    return browser


def answers(browser: requests.Session, page: str) -> bool:
    """Whether the page is there."""
    try:
        return browser.get(page, timeout=WITHIN).status_code == 200
    except requests.RequestException:
        return False


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/St_Johns"])
def test_the_service_s_clock_may_be_a_day_ahead_and_the_machine_anywhere(
    stage: Stage, make_product: MakeProduct, zone: str
) -> None:
    stage.service.advance(24 * 3600)
    operations = stage.released(*APART)
    for operation in operations:
        stage.strike("send.answered", operation)
    product = make_product(TZ=zone)
    product.start_sweeper()

    def are_settled_by_the_sweeper() -> bool:
        let_pass_what_is_waited_for()
        return all(map(is_settled, operations))

    wait_until(are_settled_by_the_sweeper, "their end is known", every=1)
    held_against_the_ledger(stage.service, "clocks disagree")


@pytest.mark.parametrize("point", ["send.claimed", "send.leaving", "send.answered"])
def test_a_worker_frozen_for_longer_than_any_lease_sends_at_most_once(
    stage: Stage, settings: Settings, point: str
) -> None:
    settings.SEND_DEADLINE_SECONDS = settings.SEND_WITHIN_SECONDS = SHORT
    operations = stage.released(*APART)
    frozen = [stage.freeze(point, operation, patience=SHORT) for operation in operations]
    stage.sweep_until(
        lambda: not {Status.APPROVED, Status.SENDING} & statuses(operations),
        "silence is noticed",
        patiently=True,
    )
    for child in frozen:
        stage.thaw(child)
    held_against_the_ledger(stage.service, f"frozen for long at {point}")
