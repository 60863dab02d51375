"""Two machines that share a database, a broker and an object store, and nothing else; one of them is killed."""

import hashlib
from uuid import UUID

import pytest
from django.db import connection

from backoffice.accounts.models import User
from backoffice.core.storage.files import EXPORTS, file_store
from backoffice.operations.models.operations import Operation
from backoffice.reports.exports import services
from backoffice.reports.models import ExportJob, ExportState
from tests.faults.harness.clocks import skewed_clocks
from tests.faults.harness.figures import compare_with_provider
from tests.faults.harness.operations import MONEY
from tests.faults.harness.processes import MakeProcesses, ProductProcesses, wait_until
from tests.faults.harness.recovery import recovered
from tests.faults.harness.stage import FaultStage
from tests.object_store import environment_of_bucket
from tests.reports.export_requests import requested_export
from tests.requirements import RABBITMQ, REDIS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

ROUNDS = 4  # each with an operation of every kind


@pytest.fixture(params=[REDIS, RABBITMQ], ids=["redis", "rabbitmq"])
def broker(request: pytest.FixtureRequest) -> str:
    if connection.vendor != "postgresql":
        pytest.skip("With SQLite there is one machine")
    return str(request.param)


class Machine:
    """The processes of one machine: a worker and a sweeper with a clock, data folders and journals of their own."""

    def __init__(self, product: ProductProcesses, name: str, environment: dict[str, str]) -> None:
        self.product, self.environment = product, environment
        self.worker, self.sweeper = f"worker-{name}", f"sweeper-{name}"

    def start(self) -> None:
        self.product.start_sweeper(self.sweeper, **self.environment)
        self.product.start_worker(self.worker, points="", children=3, **self.environment)

    def kill(self) -> None:
        self.product.kill(self.worker)
        self.product.kill(self.sweeper)


def content_of(pk: UUID) -> bytes:
    """The file of an export, read on the machine of this test."""
    job = ExportJob.objects.get(pk=pk)
    with file_store(EXPORTS).read(job.stored_as) as file:
        content = file.read()
    assert hashlib.sha256(content).hexdigest() == job.sha256
    return content


def is_made(pk: UUID) -> bool:
    return ExportJob.objects.get(pk=pk).state == ExportState.DONE


def test_a_machine_killed_under_load_leaves_everything_to_the_other(
    stage: FaultStage,
    make_product: MakeProcesses,
    broker: str,
    bucket: str,
    auditor: User,
) -> None:
    product = make_product(broker, **environment_of_bucket(bucket))
    one, two = (Machine(product, name, own) for name, own in zip("12", skewed_clocks().values(), strict=True))
    one.start()
    first = requested_export(auditor)
    wait_until(lambda: is_made(first.pk), "the first machine makes an export")
    two.start()
    operations: list[Operation] = []
    for number in range(ROUNDS):
        operations += stage.released(*MONEY)
        product.enqueue(*[operation.pk for operation in operations[-len(MONEY) :]])
        if number == ROUNDS // 2:
            begun = requested_export(auditor)
            one.kill()
    recovered("a machine killed under load", operations)
    compare_with_provider(stage.provider, "a machine killed under load")
    wait_until(lambda: is_made(begun.pk), "the second machine makes what the first one left")
    assert content_of(first.pk).startswith(b"Position,Actor,Action")
    assert content_of(begun.pk).startswith(b"Position,Actor,Action")
    folders = [product.folder / name / "exports" for name in (two.sweeper, two.worker)]
    assert [path for folder in folders if folder.is_dir() for path in folder.iterdir()] == []
    services.remove_export(first.pk, actor=auditor)
    services.remove_export(begun.pk, actor=auditor)
