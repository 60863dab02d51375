"""One person at a shell of the server makes accounts for every role: no money leaves, and everybody sees it."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.accounts.rights import BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.operations.delivery import send
from backoffice.operations.errors import AccountRestrictedError
from backoffice.operations.models.operations import Approval, Attempt, Release
from backoffice.operations.monitoring.inspection import system_health
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.faults.harness import operations
from tests.operations.steps import status_of
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def two_administrators(administrator: User) -> None:
    """From here on every right that the command line gives is a break-glass change."""
    factories.person("Ibrahim Sani", Role.ADMINISTRATOR)


def create(name: str, role: str, *why: str) -> User:
    email = f"{name.split()[0].lower()}@countersign.example"
    call_command("staff", "create", email, "--name", name, "--role", role, *why)
    return User.objects.get(email=email)


def test_two_accounts_of_one_person_move_no_money(sandbox: SandboxProcess) -> None:
    before = sandbox.balance("USDT")
    preparer = create("Ada Obi", "Preparer", "--break-glass", "Ticket 42")
    approver = create("Kola Bello", "Approver", "--break-glass", "Ticket 42")
    content = operations.payload("wallet_transfer")
    operation = factories.prepared_of_kind("wallet_transfer", content, preparer)
    decision: dict[str, Any] = {
        "actor": approver,
        "digest": operation.digest,
        "second_factor_at": timezone.now(),
    }
    with pytest.raises(AccountRestrictedError):
        approvals.approve_operation(operation.pk, **decision)
    with pytest.raises(AccountRestrictedError):
        approvals.approve_and_release_operation(
            operation.pk, **decision, otp=operations.otp_for(operation, sandbox)
        )
    send.send_operation(operation.pk)
    assert (sandbox.balance("USDT"), status_of(operation)) == (before, Status.PENDING)
    assert [model.objects.count() for model in (Approval, Release, Attempt)] == [0, 0, 0]
    assert system_health().open_break_glass == 2


def test_an_approval_of_another_person_is_not_sent_by_an_account_made_alone(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    before = sandbox.balance("USDT")
    operation = operations.approved("wallet_transfer", preparer, approver)
    with pytest.raises(AccountRestrictedError):
        operations.release(operation, create("Kola Bello", "Approver", "--break-glass", "Ticket 42"), sandbox)
    send.send_operation(operation.pk)
    assert (sandbox.balance("USDT"), status_of(operation)) == (before, Status.APPROVED)
    assert not Attempt.objects.exists()


def test_without_break_glass_no_account_is_made() -> None:
    with pytest.raises(CommandError, match="use --break-glass REASON"):
        create("Kola Bello", "Approver")
    assert not User.objects.filter(full_name="Kola Bello").exists()
    assert not BreakGlassChange.objects.exists()
