"""Processes killed one by one and all at once, frozen for long, and started twice (faults 1 to 3 and 16)."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from django.conf import settings as configured
from django.db import connection
from django.test import Client
from pytest_django import Settings

from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import Status
from tests import factories
from tests.faults.conftest import BROKERS
from tests.faults.harness import operations
from tests.faults.harness.figures import compare_with_provider, records_of
from tests.faults.harness.operations import MONEY, ONE_PER_BALANCE, approved
from tests.faults.harness.processes import TIMEOUT, MakeProcesses, ProductProcesses, wait_until
from tests.faults.harness.recovery import recovered
from tests.faults.harness.stage import FaultStage, came_back
from tests.operations.steps import status_of
from tests.requirements import REDIS
from tests.sandbox_process import SandboxProcess

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

ENDED = frozenset(Status) - {Status.APPROVED, Status.SENDING}
SHORT = 2.0  # seconds for a worker that is frozen for longer


@pytest.mark.parametrize("broker", BROKERS)
def test_all_processes_killed_at_once_recover(
    stage: FaultStage, make_product: MakeProcesses, broker: str
) -> None:
    product = make_product(broker)
    product.start_sweeper()
    product.start_worker()
    product.kill("sweeper")
    product.kill("worker")
    operations = stage.released(*ONE_PER_BALANCE)
    product.enqueue(*[operation.pk for operation in operations])
    began = time.monotonic()
    product.start_sweeper()
    product.start_worker()
    recovered("all killed at once", operations, since=began)
    compare_with_provider(stage.provider, "all killed at once")


def test_two_instances_of_every_process_send_once(stage: FaultStage, make_product: MakeProcesses) -> None:
    product = make_product(REDIS if connection.vendor == "postgresql" else "filesystem://localhost//")
    for name in ("one", "two"):
        product.start_sweeper(f"sweeper-{name}")
    product.start_worker("worker")
    product.wait_for_journals("sweeper-one", "sweeper-two")
    operations = stage.released(*MONEY)
    product.enqueue(*[operation.pk for operation in operations] * 20)
    recovered("two of everything", operations)
    compare_with_provider(stage.provider, "two of everything")


def test_a_web_process_killed_before_it_enqueues_keeps_the_release(
    stage: FaultStage, make_product: MakeProcesses
) -> None:
    product = make_product()
    product.start_web(points="kill")
    operations = [approved(kind, stage.preparer, stage.approver) for kind in ONE_PER_BALANCE]
    browser = signed_in(stage)
    for operation in operations:
        page = page_of(operation, product)
        wait_until(lambda: answers(browser, page), "the web process is back")  # noqa: B023 - called at once
        product.arm("web", "release.committed")
        with pytest.raises(requests.ConnectionError):
            submit_release(operation, browser, page, stage.provider)
        assert product.has_reached("web", "release.committed")
    assert Release.objects.count() == len(ONE_PER_BALANCE)
    began = time.monotonic()
    product.start_sweeper()
    recovered("web killed before the doorbell", operations, since=began)
    compare_with_provider(stage.provider, "web killed at release.committed")


def test_a_release_is_sent_although_its_web_process_froze_before_enqueueing(
    stage: FaultStage, make_product: MakeProcesses
) -> None:
    product = make_product()
    product.start_web(points="stop")
    product.start_sweeper()
    operations = [approved(kind, stage.preparer, stage.approver) for kind in ONE_PER_BALANCE]
    browser = signed_in(stage)
    with ThreadPoolExecutor(1) as waits:
        for operation in operations:
            page = page_of(operation, product)
            assert answers(browser, page)
            product.arm("web", "release.committed")
            answer = waits.submit(submit_release, operation, browser, page, stage.provider)
            frozen = product.wait_for_the_freeze("web", "release.committed")
            recovered("web frozen before the doorbell", [operation])
            frozen.resume()
            assert answer.result(TIMEOUT).ok
    stage.enqueue(*operations)  # the message of the resumed process
    compare_with_provider(stage.provider, "web frozen at release.committed")


def page_of(operation: Operation, product: ProductProcesses) -> str:
    """The URL of its page."""
    return f"{product.web}/operations/{operation.pk}/"


def submit_release(
    operation: Operation, browser: requests.Session, page: str, provider: SandboxProcess
) -> requests.Response:
    """Submit the Send form on its page."""
    otp = operations.otp_for(operation, provider)
    typed = {
        "digest": operation.digest,
        "csrfmiddlewaretoken": browser.cookies[configured.CSRF_COOKIE_NAME],
        **({"otp": otp.get_secret_value()} if otp else {}),
    }
    return browser.post(f"{page}release/", data=typed, headers={"Referer": page}, timeout=TIMEOUT)


def signed_in(stage: FaultStage) -> requests.Session:
    """A session of the approver with a fresh second factor."""
    browser = requests.Session()
    for name, cookie in factories.sign_in(Client(), stage.approver).cookies.items():
        browser.cookies.set(name, cookie.value)
    return browser


def answers(browser: requests.Session, page: str) -> bool:
    """Whether the page responds."""
    try:
        return browser.get(page, timeout=TIMEOUT).status_code == 200
    except requests.RequestException:
        return False


@pytest.mark.parametrize(
    "point", ["send.claimed", "send.before_request", "send.connected", "send.begun", "send.response_received"]
)
def test_a_worker_frozen_for_longer_than_any_lease_sends_at_most_once(
    stage: FaultStage, settings: Settings, point: str
) -> None:
    settings.SEND_DEADLINE_SECONDS = settings.SEND_WITHIN_SECONDS = SHORT
    operations = stage.released(*ONE_PER_BALANCE)
    frozen = [stage.freeze(point, operation, patience=SHORT) for operation in operations]
    stage.sweep_until(
        lambda: all(status_of(one) in ENDED or came_back(one) for one in operations),
        "silence is noticed",
        patiently=True,
    )
    for child in frozen:
        stage.thaw(child)
    ledger = stage.provider.ledger()
    if point != "send.response_received":
        assert ledger["orders"] == ledger["payments"] == []
    stage.sweep_until_settled([one for one in operations if records_of(one, ledger)])
    compare_with_provider(stage.provider, f"frozen for long at {point}")
