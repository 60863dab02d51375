"""Payday under faults (fault 19): a batch is released together and sent while processes die and connections are cut."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.kinds.otp_secret import OtpSecretPayload
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.otp import TotpSecret
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow import bulk_release, prepare
from tests import factories
from tests.faults.harness.connection_cuts import Side
from tests.faults.harness.figures import compare_with_provider
from tests.faults.harness.operations import PATHS
from tests.faults.harness.processes import MakeProcesses, ProductProcesses, wait_until
from tests.faults.harness.stage import FaultStage
from tests.operations.batches import payouts
from tests.requirements import REDIS

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

ROWS = 60
# How many operations were sent when this process is killed.
KILLED_AFTER = {
    3: "worker",
    9: "sweeper-one",
    15: "worker",
    22: "sweeper-two",
    30: "worker",
    38: "sweeper-one",
}
# Amounts that two rows have, and their numbers. The request of whichever is sent first is lost on its way.
TWINS = {777: (12, 26), 888: (34, 50)}
CODES = 3
SETTLED = {Status.SUCCEEDED, Status.FAILED, Status.UNKNOWN, Status.REVIEW}
MANAGED = {"COUNTERSIGN_OTP_MODE": "managed", "COUNTERSIGN_SEND_DEADLINE_SECONDS": "5"}
TRANSFER = PATHS["transfer"]


@pytest.fixture
def profile(tmp_path: Path, settings: Settings) -> Callable[[bool], dict[str, str]]:
    """The environment of processes that make the codes, for a provider that takes a code once, or several times."""

    def environment(works_once: bool) -> dict[str, str]:
        path = tmp_path / "managed.toml"
        path.write_text(f'otp_type = "totp"\notp_single_use = {str(works_once).lower()}\n')
        settings.GATEWAY_PROFILE, settings.OTP_MODE = str(path), "managed"
        return {**MANAGED, "COUNTERSIGN_GATEWAY_PROFILE": str(path)}

    return environment


def store_secret(stage: FaultStage, administrator: User) -> None:
    """Two people store the secret of the provider's authenticator."""
    secret = TotpSecret.parse(stage.provider.authenticator_secret())
    payload = OtpSecretPayload(fingerprint=secret.fingerprint(), algorithm="SHA1", digits=6, period=30)
    operation = prepare.prepare_operation(
        uuid4(), actor=administrator, kind="otp_secret", payload=payload, otp_secret=secret
    )
    factories.approve(operation, stage.approver)


def approved_batch(stage: FaultStage, count: int) -> Operation:
    """Transfers of different amounts, except twins; what is done next is left to the product's processes."""
    amounts = {number: amount for amount, numbers in TWINS.items() for number in numbers}
    rows = [f"NGN,{amounts.get(number, 100 + number)}.00,person.{number},payday," for number in range(count)]
    return payouts.approve(payouts.prepared(stage.preparer, rows), stage.approver)


def release_all(stage: FaultStage, batch: Operation) -> BulkRelease:
    return bulk_release.start_bulk_release(
        uuid4(), payouts.row_operations(batch), actor=stage.approver, second_factor_at=timezone.now()
    )


def counts(batch: Operation) -> Counter[str]:
    return Counter(Operation.objects.filter(batch_row__batch=batch).values_list("status", flat=True))


def have_begun(batch: Operation, number: int) -> bool:
    """Whether so many operations of the batch are sent or being sent."""
    return ROWS - counts(batch)[Status.APPROVED] >= number


def have_succeeded(batch: Operation, number: int) -> bool:
    """Whether so many operations of the batch are confirmed."""
    return counts(batch)[Status.SUCCEEDED] >= number


def statuses_of_twins(batch: Operation) -> list[list[str]]:
    """Of the two operations of each amount, in alphabetical order."""
    rows = Operation.objects.filter(batch_row__batch=batch)
    return [sorted(rows.filter(amount=amount).values_list("status", flat=True)) for amount in TWINS]


def restart(product: ProductProcesses, name: str) -> None:
    product.kill(name)
    product.start_sweeper(name) if name.startswith("sweeper") else product.start_worker(name)


def test_a_payday_under_kills_and_cut_wires_accounts_for_every_row(
    stage: FaultStage,
    make_product: MakeProcesses,
    administrator: User,
    profile: Callable[[bool], dict[str, str]],
) -> None:
    product = make_product(REDIS, **profile(False))
    store_secret(stage, administrator)
    batch = approved_batch(stage, ROWS)
    product.start_sweeper("sweeper-one")
    product.start_sweeper("sweeper-two")
    product.start_worker("worker")
    product.wait_for_journals("sweeper-one", "sweeper-two")
    wait_until(lambda: sum(counts(batch).values()) == ROWS, "all rows are operations")
    order = release_all(stage, batch)
    cuts = [
        stage.wire.cut(TRANSFER, b"\r\n\r\n", after=14),
        stage.wire.cut(TRANSFER, side=Side.ANSWER, after=10),
        stage.wire.cut(TRANSFER, side=Side.ANSWER, after=260),
        *(stage.wire.cut(TRANSFER, b'"amount"', f'"{amount}'.encode(), after=2) for amount in TWINS),
    ]
    for sent, name in KILLED_AFTER.items():
        wait_until(partial(have_begun, batch, sent), f"{sent} are sent")
        restart(product, name)

    def is_over() -> bool:
        """Nothing is on its way, what came back unsent was ordered again, and only twins wait."""
        if bulk_release.waiting_without_code(order).exists() and not BulkRelease.objects.get().is_pending:
            bulk_release.continue_bulk_release(order, actor=stage.approver, second_factor_at=timezone.now())
        found = counts(batch)
        return found.keys() <= {*SETTLED, Status.APPROVED} and found[Status.APPROVED] == len(TWINS)

    wait_until(
        is_over, "each row has its outcome, except those that could be mistaken for another", every=0.5
    )
    assert all(cut.reached.is_set() for cut in cuts)
    executed = len(stage.provider.ledger()["orders"])
    wait_until(
        lambda: counts(batch)[Status.SUCCEEDED] == executed, "the provider's list closes what was executed"
    )
    assert statuses_of_twins(batch) == [[Status.APPROVED, Status.UNKNOWN]] * len(TWINS)
    compare_with_provider(stage.provider, "payday")
    # The provider never got the first transfer, one of each amount, and those that a kill hit as they were leaving.
    unknown = counts(batch)[Status.UNKNOWN]
    assert 1 + len(TWINS) <= unknown <= 1 + len(TWINS) + len(KILLED_AFTER)
    assert executed == ROWS - unknown - len(TWINS)


def test_managed_codes_that_work_once_pay_one_operation_each_although_processes_die(
    stage: FaultStage,
    make_product: MakeProcesses,
    administrator: User,
    profile: Callable[[bool], dict[str, str]],
) -> None:
    stage.provider.options(token_reuse=False)
    product = make_product(REDIS, **profile(True))
    store_secret(stage, administrator)
    batch = approved_batch(stage, CODES)
    product.start_sweeper("sweeper")
    product.start_worker("worker")
    product.wait_for_journals("sweeper")
    wait_until(lambda: sum(counts(batch).values()) == CODES, "all rows are operations")
    release_all(stage, batch)
    for paid in range(1, CODES + 1):
        wait_until(partial(have_succeeded, batch, paid), f"{paid} are paid")
        restart(product, "worker")
        restart(product, "sweeper")
    assert not Attempt.objects.filter(outcome=Outcome.OTP_REJECTED).exists()
    assert counts(batch) == {Status.SUCCEEDED: CODES}
    compare_with_provider(stage.provider, "managed codes that work once")
