"""Brokers that are unavailable, lose messages or repeat them: a message only wakes a worker."""

import signal
from collections.abc import Iterator

import pytest
from redis import Redis

from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests.faults.conftest import BROKERS
from tests.faults.harness.figures import compare_with_provider
from tests.faults.harness.operations import ONE_PER_BALANCE
from tests.faults.harness.processes import TIMEOUT, MakeProcesses, ProductProcesses, wait_until
from tests.faults.harness.proxy import proxied
from tests.faults.harness.recovery import recovered
from tests.faults.harness.stage import FaultStage
from tests.operations.steps import status_of
from tests.requirements import RABBITMQ, REDIS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

A_THOUSAND_TIMES = 1000


@pytest.fixture
def forgetful(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker that may lose everything: RabbitMQ, where a test purges its own queue, or an unused Redis
    database.
    """
    if request.param == RABBITMQ:
        yield RABBITMQ
        return
    address = next(
        filter(is_empty, [f"{REDIS.rpartition('/')[0]}/{number}" for number in range(15, 9, -1)]), None
    )
    if address is None:
        pytest.fail("The last six databases of this Redis are all in use, and none of them is to be flushed")
    yield address
    with Redis.from_url(address) as database:
        database.flushdb()


def is_empty(address: str) -> bool:
    """Whether this Redis database is unused."""
    with Redis.from_url(address) as database:
        return bool(database.dbsize() == 0)


@pytest.mark.parametrize("broker", BROKERS)
def test_the_sweeper_sends_while_the_broker_is_down_and_the_worker_afterwards(
    stage: FaultStage, make_product: MakeProcesses, broker: str
) -> None:
    with proxied(broker) as (wire, behind):
        product = make_product(behind)
        product.start_worker()
        product.start_sweeper()
        with wire.away():
            operations = stage.released(*ONE_PER_BALANCE)
            recovered("broker away: the sweeper sends", operations)
        the_worker_sends_again(stage, product)
        compare_with_provider(stage.provider, "broker away")
        product.stop()


@pytest.mark.parametrize("forgetful", BROKERS, indirect=True)
def test_the_sweeper_finds_work_whose_message_the_broker_lost(
    forgetful: str, stage: FaultStage, make_product: MakeProcesses
) -> None:
    product = make_product(forgetful)
    product.start_worker()
    product.signal("worker", signal.SIGSTOP)  # so that messages wait
    operations = stage.released(*ONE_PER_BALANCE)
    enqueued = [operation.pk for operation in operations] * 20
    product.enqueue(*enqueued)
    wait_until(lambda: product.waiting() > 0, "messages wait at the broker")
    product.flush()
    product.start_sweeper()
    recovered("broker flushed", operations)
    product.signal("worker", signal.SIGCONT)
    the_worker_sends_again(stage, product)
    assert product.taken("worker") < len(enqueued)
    compare_with_provider(stage.provider, "broker flushed")


def the_worker_sends_again(stage: FaultStage, product: ProductProcesses) -> None:
    """It sends without a sweeper, as soon as the broker accepts a message."""
    product.kill("sweeper")
    [operation] = stage.released("withdrawal")
    wait_until(lambda: is_accepted_by_broker(product, operation), "the broker takes messages again")
    wait_until(
        lambda: status_of(operation) not in {Status.APPROVED, Status.SENDING},
        "the worker is back at its queue",
    )
    stage.sweep_until_settled([operation])


def is_accepted_by_broker(product: ProductProcesses, operation: Operation) -> bool:
    """Whether the broker accepted the message."""
    try:
        product.enqueue(operation.pk)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("broker", BROKERS)
def test_a_message_delivered_a_thousand_times_makes_one_debit(
    stage: FaultStage, make_product: MakeProcesses, broker: str
) -> None:
    product, workers = make_product(broker), ("one", "two")
    for name in workers:
        product.start_worker(name)
    [operation] = stage.released("withdrawal")
    product.enqueue(*[operation.pk] * A_THOUSAND_TIMES)
    wait_until(
        lambda: product.done(*workers) == A_THOUSAND_TIMES,
        "all messages are worked off",
        within=5 * TIMEOUT,
        every=0.2,
    )
    assert all(product.done(name) > 0 for name in workers)
    assert operation.attempts.count() == 1
    stage.sweep_until_settled([operation])
    compare_with_provider(stage.provider, "a message a thousand times")
