"""Prepare, approve, reject, cancel, expire."""

import uuid
from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors, jobs
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import CLOSED, Status
from backoffice.operations.workflow import approvals, prepare
from tests import factories
from tests.append_only.triggers import lifted


def approve(operation: Operation, actor: User, **changes: object) -> Operation:
    arguments = {"digest": operation.digest, "second_factor_at": timezone.now(), **changes}
    return approvals.approve_operation(operation.pk, actor=actor, **arguments)  # type: ignore[arg-type]


def reject(operation: Operation, actor: User, **changes: object) -> Operation:
    arguments = {
        "digest": operation.digest,
        "second_factor_at": timezone.now(),
        "reason": "Wrong invoice",
        **changes,
    }
    return approvals.reject_operation(operation.pk, actor=actor, **arguments)  # type: ignore[arg-type]


def status_of(operation: Operation) -> Status:
    return Status(Operation.objects.get(pk=operation.pk).status)


def last_entry() -> Entry:
    entry = Entry.objects.order_by("position").last()
    assert entry is not None
    return entry


def test_preparing_stores_and_audits_the_exact_content(preparer: User) -> None:
    operation = factories.prepared(preparer, amount=Decimal("12345678901234567.89"))
    operation.refresh_from_db()
    assert operation.status == Status.PENDING
    assert operation.amount == Decimal("12345678901234567.89")
    assert (
        operation.sentence == "Withdraw NGN 12,345,678,901,234,567.89 to ADA CHIDINMA OBI, Access Bank ••6789"
    )
    assert operation.digest == operation.current_digest()
    entry = last_entry()
    assert (entry.action, entry.actor, entry.target_id) == (
        Action.OPERATION_PREPARED,
        preparer,
        str(operation.pk),
    )
    assert entry.detail["digest"] == operation.digest


def test_resubmitting_a_form_makes_one_operation(preparer: User) -> None:
    first = factories.prepared(preparer, duplicate_reason="")
    again = prepare.prepare_operation(
        first.pk, actor=preparer, kind="withdrawal", payload=factories.payload()
    )
    assert again == first
    assert Operation.objects.count() == 1
    assert Entry.objects.filter(action=Action.OPERATION_PREPARED).count() == 1


def test_resubmitting_a_form_with_changed_content_is_refused(preparer: User) -> None:
    first = factories.prepared(preparer)
    with pytest.raises(errors.SubmissionReusedError):
        prepare.prepare_operation(
            first.pk, actor=preparer, kind="withdrawal", payload=factories.payload(amount=Decimal("9.00"))
        )
    assert Operation.objects.get().amount == Decimal("250000.00")


def test_approval_by_a_second_person_makes_it_approved(preparer: User, approver: User) -> None:
    operation = approve(factories.prepared(preparer), approver, comment="Matches invoice 118")
    assert status_of(operation) == Status.APPROVED
    entry = last_entry()
    assert (entry.action, entry.actor) == (Action.OPERATION_APPROVED, approver)
    assert entry.detail["comment"] == "Matches invoice 118"


def test_the_preparer_cannot_approve(preparer: User) -> None:
    preparer.groups.add(Group.objects.get(name="Approver"))
    operation = factories.prepared(preparer)
    with pytest.raises(errors.SelfApprovalError):
        approve(operation, preparer)
    assert status_of(operation) == Status.PENDING
    entry = last_entry()
    assert (entry.action, entry.actor) == (Action.OPERATION_ACTION_REFUSED, preparer)
    assert entry.detail["attempted"] == "approve"


def test_a_superuser_cannot_approve_their_own_operation(preparer: User) -> None:
    User.objects.filter(pk=preparer.pk).update(is_superuser=True)
    operation = factories.prepared(preparer)
    with pytest.raises(errors.OperationError):
        approve(operation, preparer)
    assert status_of(operation) == Status.PENDING


def test_a_large_amount_needs_two_distinct_people(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = approve(factories.prepared(preparer, amount=Decimal("10000000.01")), approver)
    assert status_of(operation) == Status.PENDING
    with pytest.raises(errors.AlreadyApprovedError):
        approve(operation, approver)
    approve(operation, second_approver)
    assert status_of(operation) == Status.APPROVED


@pytest.mark.parametrize("role", ["preparer", "auditor", "administrator", "outsider"])
def test_only_approvers_can_approve_or_reject(
    request: pytest.FixtureRequest, preparer: User, role: str
) -> None:
    other = factories.person("Ngozi Eze", email="ngozi@countersign.example")
    operation = factories.prepared(preparer)
    person = request.getfixturevalue(role) if role != "preparer" else other
    for act in (approve, reject):
        with pytest.raises(errors.PermissionMissingError):
            act(operation, person)
    assert status_of(operation) == Status.PENDING


@pytest.mark.parametrize("minutes", [None, 6])
def test_deciding_needs_a_fresh_second_factor(preparer: User, approver: User, minutes: int | None) -> None:
    confirmed = timezone.now() - timedelta(minutes=minutes) if minutes else None
    operation = factories.prepared(preparer)
    for act in (approve, reject):
        with pytest.raises(errors.SecondFactorStaleError):
            act(operation, approver, second_factor_at=confirmed)
    assert status_of(operation) == Status.PENDING


def test_content_that_differs_from_the_page_is_not_approved(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    with pytest.raises(errors.ContentChangedError):
        approve(operation, approver, digest="0" * 64)
    assert status_of(operation) == Status.PENDING


def test_content_edited_in_the_database_is_not_approved(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.update(payload={**operation.payload, "account_number": "9999999999"})
    with pytest.raises(errors.AlteredRecordError):
        approve(operation, approver)
    assert status_of(operation) == Status.PENDING


def test_content_edited_in_the_database_is_not_rejected(preparer: User, approver: User) -> None:
    """What is on the page is not what is stored; the preparer can still cancel it."""
    operation = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.update(payload={**operation.payload, "account_number": "9999999999"})
    with pytest.raises(errors.ContentChangedError):
        reject(operation, approver)
    assert status_of(operation) == Status.PENDING


def test_a_rejection_needs_and_stores_a_reason(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    with pytest.raises(errors.ReasonMissingError):
        reject(operation, approver, reason="  ")
    reject(operation, approver, reason="The invoice says 25,000")
    operation.refresh_from_db()
    assert (operation.status, operation.reason) == (Status.REJECTED, "The invoice says 25,000")


def test_the_preparer_can_cancel(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    with pytest.raises(errors.PermissionMissingError):
        approvals.cancel_operation(operation.pk, actor=approver)
    approvals.cancel_operation(operation.pk, actor=preparer)
    assert status_of(operation) == Status.CANCELLED


@pytest.mark.parametrize("act", [approve, reject])
def test_a_decided_operation_cannot_be_decided_again(preparer: User, approver: User, act: object) -> None:
    operation = factories.prepared(preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    with pytest.raises(errors.WrongStatusError):
        act(operation, approver)  # type: ignore[operator]
    assert status_of(operation) == Status.CANCELLED


def test_an_expired_operation_cannot_be_approved_and_is_closed(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    factories.expire(operation)
    with pytest.raises(errors.ExpiredError):
        approve(operation, approver)
    assert jobs.expire_due() == 1
    assert status_of(operation) == Status.EXPIRED
    assert last_entry().action == Action.OPERATION_EXPIRED


def test_the_expiry_follows_the_setting(preparer: User, settings: Settings) -> None:
    settings.PENDING_LIFETIME_HOURS = 5
    operation = factories.prepared(preparer)
    assert operation.expires_at - operation.prepared_at == timedelta(hours=5)
    assert approvals.expire_operation(operation.pk) is None
    assert status_of(operation) == Status.PENDING


def test_an_unknown_operation_is_refused_and_audited(approver: User) -> None:
    with pytest.raises(Operation.DoesNotExist):
        approvals.approve_operation(uuid.uuid4(), actor=approver, digest="", second_factor_at=timezone.now())
    assert not Release.objects.exists()


@pytest.mark.django_db
def test_only_preparers_can_prepare(outsider: User, approver: User) -> None:
    for person in (outsider, approver):
        with pytest.raises(errors.PermissionMissingError):
            factories.prepared(person)
    assert not Operation.objects.exists()


@pytest.mark.django_db
def test_another_users_form_id_finds_no_operation(preparer: User) -> None:
    operation = factories.prepared(preparer)
    other = factories.person("Ngozi Eze", Role.PREPARER)
    with pytest.raises(errors.SubmissionReusedError):
        prepare.prepare_operation(operation.pk, actor=other, kind="withdrawal", payload=factories.payload())


@pytest.mark.django_db
def test_closing_an_operation_deletes_its_one_time_code(preparer: User, approver: User) -> None:
    cancelled, expired = (
        factories.release(factories.approved(preparer, approver), approver) for _ in range(2)
    )
    assert Release.objects.count() == 2
    approvals.cancel_operation(cancelled.pk, actor=preparer)
    Operation.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    assert approvals.expire_operation(expired.pk) is not None
    assert not Release.objects.exists()


@pytest.mark.parametrize("status", [status for status in Status if status != Status.PENDING])
def test_only_pending_operations_are_decided(
    operation: Operation, second_approver: User, status: Status
) -> None:
    """What is being sent could become approved again, but not by a page that was left open."""
    closed_at = timezone.now() if status in CLOSED else None
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(status=status, closed_at=closed_at)
    for decide in (approve, reject):
        with pytest.raises(errors.WrongStatusError):
            decide(operation, second_approver)
    assert status_of(operation) == status
