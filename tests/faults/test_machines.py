"""Two machines that share a database, a broker and an object store, and nothing else; one of them is killed."""

import hashlib
from uuid import UUID

import pytest
import requests
from django.conf import settings
from django.test import Client
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.reports.exports import services
from backoffice.reports.models import ExportJob, ExportState
from tests import factories
from tests.faults.conftest import BROKERS
from tests.faults.harness.clocks import SLEEPS
from tests.faults.harness.figures import compare_with_provider, records_of
from tests.faults.harness.operations import MONEY
from tests.faults.harness.processes import TIMEOUT, MakeProcesses, ProductProcesses, wait_until
from tests.faults.harness.stage import FaultStage, is_left_open, is_settled
from tests.object_store import environment_of_bucket
from tests.reports.export_requests import requested_export

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.stack,
    pytest.mark.faults,
    pytest.mark.faketime,
]

ROUNDS = 4  # each with an operation of every kind
HELD_AT_MOST = 5 * TIMEOUT
"""What the killed machine was sending holds its balance until its time is over and every record of it is listed."""


class Machine:
    """The processes of one machine: web, worker and sweeper with a clock, data folders and journals of their own."""

    def __init__(self, product: ProductProcesses, name: str, environment: dict[str, str]) -> None:
        self.product, self.environment = product, environment
        self.worker, self.sweeper, self.web = f"worker-{name}", f"sweeper-{name}", f"web-{name}"

    def start(self) -> None:
        """Start worker and sweeper, and return once both have a journal."""
        self.product.start_sweeper(self.sweeper, **self.environment)
        self.product.start_worker(self.worker, points="", children=3, **self.environment)
        self.product.wait_for_journals(self.sweeper, self.worker)

    def start_web(self) -> None:
        self.product.start_web(self.web, **self.environment | SLEEPS)

    def kill(self) -> None:
        self.product.kill(self.worker)
        self.product.kill(self.sweeper)


def downloaded(product: ProductProcesses, person: User, pk: UUID) -> bytes:
    """The file of an export, as the web process sends it to the browser of this person."""
    session = factories.sign_in(Client(), person).cookies[settings.SESSION_COOKIE_NAME].value
    response = requests.get(
        product.web + reverse("reports:download", args=[pk]),
        cookies={settings.SESSION_COOKIE_NAME: session},
        allow_redirects=False,
        timeout=TIMEOUT,
    )
    assert response.status_code == 200, response.headers
    assert hashlib.sha256(response.content).hexdigest() == ExportJob.objects.get(pk=pk).sha256
    return response.content


def are_dealt_with(operations: list[Operation], stage: FaultStage) -> bool:
    """Whether each is settled. One that the killed machine had claimed, and of which the provider has nothing, stays
    open and holds those behind it.
    """
    ledger = stage.provider.ledger()
    rest = [one for one in operations if not is_settled(one)]
    open_ones = [one for one in rest if one.attempts.exists()]
    if not all(is_left_open(one) and not records_of(one, ledger) for one in open_ones):
        return False
    return len(rest) == len(open_ones) or bool(open_ones)


def is_made(pk: UUID) -> bool:
    return ExportJob.objects.get(pk=pk).state == ExportState.DONE


@pytest.mark.parametrize("broker", BROKERS)
def test_a_machine_killed_under_load_leaves_everything_to_the_other(
    stage: FaultStage,
    make_product: MakeProcesses,
    broker: str,
    bucket: str,
    clock_of: dict[str, dict[str, str]],
    auditor: User,
) -> None:
    product = make_product(broker, **environment_of_bucket(bucket))
    one, two = (Machine(product, name, own) for name, own in zip("12", clock_of.values(), strict=True))
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
    wait_until(
        lambda: are_dealt_with(operations, stage), "the second machine goes on", within=HELD_AT_MOST, every=1
    )
    compare_with_provider(stage.provider, "a machine killed under load")
    wait_until(lambda: is_made(begun.pk), "the second machine makes what the first one left")
    two.start_web()
    for made in (first, begun):
        assert downloaded(product, auditor, made.pk).startswith(b"Position,Actor,Action")
    folders = [product.folder / name / "exports" for name in (two.sweeper, two.worker, two.web)]
    assert [path for folder in folders if folder.is_dir() for path in folder.iterdir()] == []
    services.remove_export(first.pk, actor=auditor)
    services.remove_export(begun.pk, actor=auditor)
