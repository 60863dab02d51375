"""The last check before money is sent: what may have changed since the approval and the release."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import do, show, status_of, text_of
from tests.stub_provider import StubProvider

SignIn = Callable[[Client, User], Client]

pytestmark = pytest.mark.django_db(transaction=True)

leaves = pytest.mark.parametrize(
    "leave",
    [
        lambda person: staff.deactivate_staff(person.pk, actor=None),
        lambda person: staff.set_roles(person.pk, roles=[Role.AUDITOR], actor=None),
    ],
    ids=["deactivated", "without the role"],
)


def refusal() -> str:
    return str(
        Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED)
        .latest("position")
        .detail["refusal"]["code"]
    )


@leaves
def test_nothing_is_sent_if_the_preparer_lost_the_permission(
    provider: StubProvider, released: Operation, preparer: User, leave: Callable[[User], User]
) -> None:
    leave(preparer)
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts, Attempt.objects.count()) == (Status.APPROVED, [], 0)
    assert refusal() == Refusal.PREPARER_NOT_ENTITLED


def test_a_change_is_not_sent_if_the_preparer_may_only_prepare_payments_now(
    provider: StubProvider, administrator: User, approver: User
) -> None:
    change = factories.prepared_of_kind("bank_account", SAMPLES["bank_account"], administrator)
    operation = factories.release(factories.approve(change, approver), approver)
    staff.set_roles(administrator.pk, roles=[Role.PREPARER], actor=None)
    send.send_operation(operation.pk)
    assert (status_of(operation), provider.changes) == (Status.APPROVED, [])


@leaves
def test_the_page_says_why_it_is_not_sent_and_what_to_do(
    as_approver: Client,
    provider: StubProvider,
    released: Operation,
    preparer: User,
    leave: Callable[[User], User],
) -> None:
    leave(preparer)
    send.send_operation(released.pk)
    html = text_of(show(as_approver, released))
    assert "Approval no longer valid" in html
    assert str(Refusal.PREPARER_NOT_ENTITLED.label) in html
    assert ">Send<" not in html


def test_an_open_page_shows_that_the_preparer_was_deactivated(
    as_approver: Client, operation: Operation, preparer: User
) -> None:
    seen = show(as_approver, operation).context["seen"]
    assert show(as_approver, operation, "live/", seen=seen).status_code == 204
    staff.deactivate_staff(preparer.pk, actor=None)
    assert show(as_approver, operation, "live/", seen=seen).status_code == 200


@leaves
def test_an_operation_of_a_deactivated_preparer_can_only_be_rejected(
    as_approver: Client, operation: Operation, preparer: User, leave: Callable[[User], User]
) -> None:
    leave(preparer)
    html = text_of(show(as_approver, operation))
    assert str(Refusal.PREPARER_NOT_ENTITLED.label) in html
    assert (">Approve<" in html, "Can approve" in html, ">Reject<" in html) == (False, False, True)
    answer = do(as_approver, operation, "approve")
    assert (answer.status_code, status_of(operation)) == (422, Status.PENDING)
    assert do(as_approver, operation, "reject", reason="Its preparer has left").status_code == 302
    assert status_of(operation) == Status.REJECTED


def test_another_preparer_can_cancel_after_the_preparer_was_deactivated(
    sign_in: SignIn, released: Operation, preparer: User
) -> None:
    colleague = factories.person("Kemi Balogun", Role.PREPARER)
    as_colleague = sign_in(Client(), colleague)
    assert "Cancel operation" not in text_of(show(as_colleague, released))
    do(as_colleague, released, "cancel")
    assert status_of(released) == Status.APPROVED
    staff.deactivate_staff(preparer.pk, actor=None)
    assert "Cancel operation" in text_of(show(as_colleague, released))
    do(as_colleague, released, "cancel")
    assert (status_of(released), Release.objects.count()) == (Status.CANCELLED, 0)


def test_cancelling_needs_the_permission_to_prepare_the_kind(
    released: Operation, preparer: User, approver: User
) -> None:
    staff.deactivate_staff(preparer.pk, actor=None)
    with pytest.raises(errors.PermissionMissingError):
        approvals.cancel_operation(released.pk, actor=approver)
    assert status_of(released) == Status.APPROVED


def test_nothing_is_sent_if_it_expired_after_release(provider: StubProvider, released: Operation) -> None:
    factories.expire(released, timezone.now() - timedelta(seconds=1))
    with pytest.raises(errors.ExpiredError):
        send.claim_operation(released.pk, send.preflight_read(Release.objects.get()))
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts, Attempt.objects.count()) == (Status.APPROVED, [], 0)
    assert refusal() == Refusal.EXPIRED


def test_nothing_is_sent_if_the_preparer_released_it(
    provider: StubProvider, released: Operation, preparer: User
) -> None:
    staff.set_roles(preparer.pk, roles=[Role.PREPARER, Role.APPROVER], actor=None)
    with lifted(connection):
        factories.change_release(Release.objects.get(), released_by=preparer)
        Entry.objects.filter(action=Action.OPERATION_RELEASED).update(actor=preparer)
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts, Attempt.objects.count()) == (Status.APPROVED, [], 0)
    assert refusal() == Refusal.SELF_APPROVAL
