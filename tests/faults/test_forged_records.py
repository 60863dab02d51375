"""Rows written by someone who has the whole database and no key: no money leaves, and an incident is raised."""

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.delivery import send
from backoffice.operations.errors import AlteredRecordError
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.states import Status
from tests import factories
from tests.faults.harness import impostors, operations
from tests.faults.harness.refusals import assert_nothing_left as assert_nothing_was_sent
from tests.faults.harness.refusals import balances, payment
from tests.operations.forgeries import alter_content, forge
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_cached_reads() -> None:
    cache.clear()


def assert_nothing_left(sandbox: SandboxProcess, before: Decimal, operation: Operation) -> None:
    assert (sandbox.balance("USDT"), Attempt.objects.count(), Release.objects.count()) == (before, 0, 0)
    incident = Incident.objects.get()
    assert (incident.operation, incident.kind) == (operation, IncidentKind.ALTERED_RECORD)
    assert "altered_record" in inspect(full=False).violations


def test_an_inserted_operation_moves_no_money(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    """Operation, approval, release and audit entries are consistent, and the triggers are left in place."""
    before = sandbox.balance("USDT")
    forged = forge("wallet_transfer", operations.payload("wallet_transfer"), preparer, approver)
    send.send_operation(forged.pk)
    assert_nothing_left(sandbox, before, forged)


def test_content_altered_after_its_approval_moves_no_money(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    """Payload, digest and the digests of the approvals were altered alike, after a person released it."""
    before = sandbox.balance("USDT")
    operation = operations.approved("wallet_transfer", preparer, approver)
    operations.release(operation, approver, sandbox)
    alter_content(operation, amount="900")
    send.send_operation(operation.pk)
    assert_nothing_left(sandbox, before, operation)


def test_content_altered_before_its_release_is_not_released(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    before = sandbox.balance("USDT")
    operation = operations.approved("wallet_transfer", preparer, approver)
    alter_content(operation, amount="900")
    with pytest.raises(AlteredRecordError):
        operations.release(Operation.objects.get(pk=operation.pk), approver, sandbox)
    assert_nothing_left(sandbox, before, operation)


@pytest.mark.parametrize("attempt", impostors.ATTEMPTS, ids=lambda attempt: attempt.__name__)
def test_a_preparer_does_not_become_an_approver_too(
    sandbox: SandboxProcess,
    preparer: User,
    approver: User,
    attempt: Callable[[User, User], Client],
) -> None:
    """No row that a preparer writes alone gives a session in which an approver approves and sends."""
    before, operation = balances(sandbox), payment(preparer)
    browser = attempt(preparer, approver)
    impostors.decide(browser, operation, operations.otp_for(operation, sandbox))
    assert not Approval.objects.exists()
    assert_nothing_was_sent(sandbox, before, operation)


def test_what_the_impostors_try_is_what_an_approver_does(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    operation = payment(preparer)
    browser = factories.sign_in(Client(), approver)
    impostors.decide(browser, operation, operations.otp_for(operation, sandbox))
    assert Approval.objects.get().approver == approver
    assert Operation.objects.get().status == Status.APPROVED
    assert Release.objects.exists()
