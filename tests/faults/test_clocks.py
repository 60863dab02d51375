"""Clocks that disagree: the provider's, this machine's, and those of two machines on one database."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backoffice.core import clock
from backoffice.operations.models.operations import Attempt
from tests import factories
from tests.faults.harness import operations
from tests.faults.harness.clocks import FASTER, SLOWER
from tests.faults.harness.figures import compare_with_provider
from tests.faults.harness.forked_workers import ForkedWorkers
from tests.faults.harness.operations import ONE_PER_BALANCE
from tests.faults.harness.processes import MakeProcesses, wait_until
from tests.faults.harness.recovery import recovered
from tests.faults.harness.stage import FaultStage, is_settled, skip_waiting_time
from tests.operations.steps import status_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]


@pytest.mark.parametrize("zone", ["Pacific/Apia", "America/St_Johns"])
def test_sending_works_with_any_provider_clock_and_local_time_zone(
    stage: FaultStage, make_product: MakeProcesses, zone: str
) -> None:
    stage.provider.advance(24 * 3600)
    operations = stage.released(*ONE_PER_BALANCE)
    for operation in operations:
        stage.strike("send.response_received", operation)
    product = make_product(TZ=zone)
    product.start_sweeper()

    def are_settled_by_the_sweeper() -> bool:
        skip_waiting_time()
        return all(map(is_settled, operations))

    wait_until(are_settled_by_the_sweeper, "their end is known", every=1)
    compare_with_provider(stage.provider, "clocks disagree")


AN_HOUR = timedelta(hours=1)
LONG = 600.0  # seconds for a sender that must not be given up


@pytest.mark.faketime
@pytest.mark.parametrize(("off", "hours"), [(FASTER, 5), (SLOWER, -5)])
def test_the_skewed_clock_is_off_by_its_hours(
    clock_of: dict[str, dict[str, str]], off: str, hours: int
) -> None:
    command = [sys.executable, "-c", "import time; print(time.time())"]
    output = subprocess.run(command, env=clock_of[off], check=True, capture_output=True, text=True).stdout
    ahead = datetime.fromtimestamp(float(output), UTC) - clock.now()
    assert abs(ahead - timedelta(hours=hours)) < AN_HOUR


@pytest.mark.faketime
def test_two_machines_with_skewed_clocks_send_once_and_not_early(
    stage: FaultStage, make_product: MakeProcesses, clock_of: dict[str, dict[str, str]]
) -> None:
    product = make_product()
    for off, environment in clock_of.items():
        product.start_sweeper(off, **environment)
    product.wait_for_journals(*clock_of)
    for off in clock_of:
        product.kill(off)
    stage.provider.options(settle_after=None)
    held, looked_at_later = stage.released("withdrawal", "transfer")
    frozen = stage.freeze("send.claimed", held, patience=LONG)
    stage.enqueue(looked_at_later)
    Attempt.objects.filter(operation=looked_at_later).update(next_check_at=clock.now() + AN_HOUR)
    undecided = factories.prepared_of_kind("conversion", operations.payload("conversion"), stage.preparer)
    stage.provider.options(settle_after=0)
    before = list(Attempt.objects.order_by("pk").values())
    sent = []
    for off, environment in clock_of.items():
        product.start_sweeper(off, **environment)
        sent += stage.released("wallet_transfer")
        recovered("clocks of machines hours apart", sent)
    product.kill(FASTER)  # each has sent with and without the other running
    sent += stage.released("wallet_transfer")
    recovered("clocks of machines hours apart", sent)
    assert list(Attempt.objects.exclude(operation__in=sent).order_by("pk").values()) == before
    assert [status_of(one) for one in (held, looked_at_later, undecided)] == [
        "sending",
        "processing",
        "pending",
    ]
    stage.thaw(frozen)
    stage.sweep_until_settled([held, looked_at_later])
    compare_with_provider(stage.provider, "clocks of machines hours apart")


@pytest.fixture
def machines(
    stage: FaultStage, clock_of: dict[str, dict[str, str]], tmp_path: Path
) -> Iterator[list[ForkedWorkers]]:
    """Workers on each machine."""
    made = []
    for off, environment in clock_of.items():
        made.append(ForkedWorkers(tmp_path / off, {**stage.forked_workers.environment, **environment}))
        made[-1].folder.mkdir()
        made[-1].start()
    yield made
    for machine in made:
        machine.stop()


@pytest.mark.faketime
def test_two_workers_with_skewed_clocks_send_once(stage: FaultStage, machines: list[ForkedWorkers]) -> None:
    operations = stage.released(*ONE_PER_BALANCE)
    workers = [machine.run("send", str(one.pk)) for one in operations for machine in machines * 5]
    wait_until(lambda: all(worker.is_gone for worker in workers), "the workers end")
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, "clocks of workers hours apart")
