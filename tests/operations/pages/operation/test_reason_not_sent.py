"""An operation that was released and not sent says why, and what to do."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.operations.approval import waiting
from backoffice.operations.batches import control
from backoffice.operations.delivery import release, send
from backoffice.operations.errors import (
    ContentChangedError,
    DatabaseRestoredError,
    OperationError,
    PossiblyExecutedError,
)
from backoffice.operations.lifecycle import incidents, pause
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, ResponseCode, coded
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Outcome
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.batches import payouts
from tests.operations.steps import do, put, show, text_of
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]


@pytest.fixture
def approved(preparer: User, approver: User) -> Operation:
    return factories.approved(preparer, approver)


@pytest.fixture
def released(approved: Operation, second_approver: User) -> Operation:
    """Another approver has released it, and no worker has claimed it yet."""
    return release.release_operation(
        approved.pk,
        actor=second_approver,
        digest=approved.digest,
        second_factor_at=timezone.now(),
        otp=SecretStr("123456"),
    )


def let_the_release_run_out(operation: Operation) -> None:
    Release.objects.filter(operation=operation).update(expires_at=timezone.now())


def test_an_operation_returned_to_approved_is_not_shown_as_failed(
    as_approver: Client, approver: User, operation: Operation
) -> None:
    approvals.approve_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now()
    )
    factories.attempt(
        operation,
        released_by=approver,
        outcome="otp_rejected",
        responses=[coded(ResponseCode.ERROR, error="token is not valid")],
        response_status=400,
        closed_at=timezone.now(),
    )
    html = text_of(show(as_approver, operation))
    assert "Not executed: the provider refused the one-time code (token is not valid)." in html
    assert ">Send<" in html


def test_an_expired_release_is_shown_as_none(as_approver: Client, released: Operation) -> None:
    seen = show(as_approver, released).context["seen"]
    assert "Released for sending" in text_of(show(as_approver, released))
    let_the_release_run_out(released)
    html = text_of(show(as_approver, released))
    assert "Released for sending" not in html
    assert "Not sent before the release expired" in html
    assert ">Send<" in html
    assert show(as_approver, released, "live/", seen=seen).status_code == 200


def test_an_operation_with_an_expired_release_waits_for_sending_again(
    approver: User, released: Operation
) -> None:
    assert released not in waiting.operations_waiting_for(approver)
    let_the_release_run_out(released)
    assert released in waiting.operations_waiting_for(approver)


def test_a_release_removed_by_the_sweeper_is_explained(as_approver: Client, released: Operation) -> None:
    let_the_release_run_out(released)
    assert release.expire_release(released.pk)
    html = text_of(show(as_approver, released))
    assert "Not sent before the release expired" in html
    assert "Choose “Send” again and enter a new one-time code." in html


def test_a_sender_who_may_no_longer_send_is_explained(
    as_approver: Client, released: Operation, second_approver: User, sandbox: SandboxProcess
) -> None:
    staff.set_roles(second_approver.pk, roles=[], actor=None)
    send.send_operation(released.pk)
    html = text_of(show(as_approver, released))
    assert "Not sent: the person who released it no longer has permission to send." in html
    assert ">Send<" in html


@pytest.mark.parametrize(
    "leave",
    [
        lambda person: staff.deactivate_staff(person.pk, actor=None),
        lambda person: staff.set_roles(person.pk, roles=[Role.AUDITOR], actor=None),
    ],
    ids=["deactivated", "without the role"],
)
def test_an_invalid_approval_is_explained_with_prepare_again(
    sign_in: SignIn,
    approver: User,
    second_approver: User,
    released: Operation,
    sandbox: SandboxProcess,
    leave: Callable[[User], User],
) -> None:
    leave(approver)
    send.send_operation(released.pk)
    html = text_of(show(sign_in(Client(), second_approver), released))
    assert "Approval no longer valid" in html
    assert "An approver no longer has permission to approve, so this operation is not sent." in html
    assert "Another person can approve instead" in html
    assert ">Send<" not in html


@pytest.mark.parametrize(
    ("refused", "shown"),
    [
        (PossiblyExecutedError("T-7"), "two people resolve the operation with that transaction."),
        (DatabaseRestoredError(), "Not sent: the database was restored to an earlier point in time"),
        (DatabaseRestoredError(Refusal.SENT_BEFORE_RESTORE), "shows that this operation may have been sent"),
        (
            ContentChangedError(Refusal.OTP_OF_OTHER_CONTENT),
            "Choose “Send” again and enter a new one-time code.",
        ),
    ],
    ids=["possibly executed", "restored", "sent before the restore", "code of other content"],
)
def test_what_may_be_paid_already_is_not_to_be_prepared_again(
    as_approver: Client,
    approver: User,
    released: Operation,
    second_approver: User,
    refused: OperationError,
    shown: str,
) -> None:
    release.withdraw_release(Release.objects.get(operation=released), refused)
    html = text_of(show(as_approver, released))
    assert shown in html
    assert "must cancel it and prepare it again" not in html


def test_an_attempt_whose_payment_may_exist_is_not_to_be_sent_again(
    as_approver: Client, approver: User, approved: Operation, sandbox: SandboxProcess
) -> None:
    factories.attempt(approved, released_by=approver, outcome=Outcome.NOT_SENT, closed_at=timezone.now())
    assert "Nothing was executed. Choose “Send” again" in text_of(show(as_approver, approved))
    incidents.raise_incident(
        approved, kind=IncidentKind.EXECUTED_DESPITE_PROOF, evidence={"transactions": ["T-7"]}
    )
    html = text_of(show(as_approver, approved))
    assert "According to the provider, this operation may already be paid." in html
    assert "Not sent: possibly paid already" in html
    assert "Choose “Send” again" not in html


def test_what_an_open_incident_calls_executed_is_released_only_once_it_is_acknowledged(
    as_approver: Client, approver: User, approved: Operation
) -> None:
    incident = incidents.raise_incident(
        approved, kind=IncidentKind.EXECUTED_AFTER_ALL, evidence={"transaction": "T-7"}
    )
    html = text_of(show(as_approver, approved))
    assert "acknowledge the incident first" in html
    assert "Send</button>" not in html
    with pytest.raises(OperationError) as refused:
        factories.release(approved, approver)
    assert refused.value.refusal["code"] == Refusal.OPEN_INCIDENT
    incidents.acknowledge_incident(incident.pk, actor=approver, note="Paid for another invoice")
    assert "Send</button>" in text_of(show(as_approver, approved))
    factories.release(approved, approver)
    assert Release.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_an_incident_that_calls_it_executed_stops_a_release_that_waits(
    provider: StubProvider, released: Operation
) -> None:
    incidents.raise_incident(released, kind=IncidentKind.LATE_RESPONSE, evidence={"transaction": "T-7"})
    send.send_operation(released.pk)
    assert provider.posts == []
    assert not Release.objects.exists()


def test_what_may_be_paid_already_is_not_announced_for_sending_while_paused(
    as_approver: Client, approver: User, approved: Operation
) -> None:
    pause.pause_payments(actor=approver, reason="A supplier's mailbox was taken over.")
    assert "This operation can be sent after that." in text_of(show(as_approver, approved))
    incidents.raise_incident(
        approved, kind=IncidentKind.EXECUTED_DESPITE_PROOF, evidence={"transactions": ["T-7"]}
    )
    html = text_of(show(as_approver, approved))
    assert "According to the provider, this operation may already be paid." in html
    assert "This operation can be sent after that." not in html


def test_a_row_is_not_offered_for_sending_while_its_batch_is_paused(
    as_approver: Client, preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    (row,) = payouts.row_operations(batch)
    control.pause_batch(batch.pk, actor=preparer)
    html = text_of(show(as_approver, row))
    assert "Not sent: the batch is paused" in html
    assert f"Tunde Bello paused batch {batch.reference}." in html
    assert "Send</button>" not in html
    control.resume_batch(batch.pk, actor=approver)
    assert "Send</button>" in text_of(show(as_approver, row))


@pytest.mark.parametrize(
    ("code", "note", "next_step"),
    [
        (
            ResponseCode.ERROR,
            "Not executed. The key is gone. It can be sent again with a new one-time code.",
            "Choose “Send” again and enter a new one-time code.",
        ),
        (
            ResponseCode.OUTDATED,
            "Not executed. The key is gone. If the operation must still be done, cancel it and prepare it again.",
            "Nothing was executed. Cancel this operation and prepare it again.",
        ),
    ],
)
def test_sending_again_is_not_advised_for_what_must_be_prepared_again(
    as_approver: Client,
    approver: User,
    approved: Operation,
    code: ResponseCode,
    note: str,
    next_step: str,
) -> None:
    ended = {"outcome": Outcome.NOT_SENT, "closed_at": timezone.now()}
    factories.attempt(
        approved, released_by=approver, responses=[coded(code, error="The key is gone.")], **ended
    )
    html = text_of(show(as_approver, approved))
    assert note in html
    assert next_step in html
    assert ("sent again" in html) == (code == ResponseCode.ERROR)


@pytest.mark.parametrize(
    "kind",
    [IncidentKind.EXECUTED_AFTER_ALL, IncidentKind.NOW_EXECUTED, IncidentKind.LATE_RESPONSE],
)
def test_a_failed_operation_that_was_executed_after_all_is_not_to_be_prepared_again(
    as_approver: Client, approver: User, operation: Operation, kind: IncidentKind
) -> None:
    put(operation, "approved", "sending", "failed")
    factories.attempt(operation, released_by=approver, outcome=Outcome.FAILED, closed_at=timezone.now())
    assert "Prepare it again if it must still be done." in text_of(show(as_approver, operation))
    incidents.raise_incident(operation, kind=kind, evidence={"transaction": "T-7"})
    html = text_of(show(as_approver, operation))
    assert html.count("According to the provider, this operation may already be paid.") == 2
    assert "Prepare it again if" not in html


def test_an_approval_that_lost_its_validity_does_not_hide_a_possible_payment(
    as_preparer: Client, approver: User, approved: Operation
) -> None:
    incidents.raise_incident(
        approved, kind=IncidentKind.EXECUTED_DESPITE_PROOF, evidence={"transactions": ["T-7"]}
    )
    staff.set_roles(approver.pk, roles=[], actor=None)
    html = text_of(show(as_preparer, approved))
    assert "Approval no longer valid" in html
    assert "According to the provider, this operation may already be paid." in html
    assert "must cancel it and prepare it again" not in html


def test_the_newest_release_is_the_one_explained(
    as_approver: Client, approver: User, released: Operation, second_approver: User, sandbox: SandboxProcess
) -> None:
    staff.set_roles(second_approver.pk, roles=[], actor=None)
    send.send_operation(released.pk)
    do(as_approver, released, "release", otp="654321")
    let_the_release_run_out(released)
    html = text_of(show(as_approver, released))
    assert "permission to send" not in html
    assert "Not sent before the release expired" in html


def test_tampered_content_is_not_sent_and_explained(
    as_approver: Client, released: Operation, sandbox: SandboxProcess
) -> None:
    with lifted(connection):
        Operation.objects.filter(pk=released.pk).update(payload={**released.payload, "memo": "forged"})
    send.send_operation(released.pk)
    html = text_of(show(as_approver, released))
    assert "The audit log shows other content or other people" in html
    assert "The preparer must cancel it and prepare it again." in html
