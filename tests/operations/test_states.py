"""The table of states, in the code and in the database."""

import itertools
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.errors import WrongStatusError
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.states import CLOSED, EDGES, Outcome, Status
from tests import factories
from tests.append_only.triggers import lifted

PAIRS = [(start, end) for start, end in itertools.product(Status, Status) if start != end]
APPLIED_HERE = (Status.APPROVED, Status.SUCCEEDED)  # only of what is never sent: test_applied_here.py
KNOWN = [(start, end) for start, end in PAIRS if end in EDGES[start] and (start, end) != APPLIED_HERE]
UNKNOWN = [(start, end) for start, end in PAIRS if end not in EDGES[start]]


def put(operation: Operation, status: Status) -> Operation:
    """Place the operation in a status, past every rule."""
    closed_at = timezone.now() if status in CLOSED else None
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(status=status, closed_at=closed_at)
    operation.refresh_from_db()
    return operation


@pytest.mark.parametrize(("start", "end"), KNOWN)
def test_listed_transitions_are_allowed(preparer: User, start: Status, end: Status) -> None:
    operation = put(factories.prepared(preparer), start)
    transition(operation, end)
    operation.refresh_from_db()
    assert operation.status == end
    assert (operation.closed_at is not None) == (end in CLOSED)


@pytest.mark.parametrize(("start", "end"), UNKNOWN)
def test_unlisted_transitions_are_refused(preparer: User, start: Status, end: Status) -> None:
    operation = put(factories.prepared(preparer), start)
    with pytest.raises(WrongStatusError):
        transition(operation, end)
    operation.refresh_from_db()
    assert operation.status == start


@pytest.mark.parametrize(("start", "end"), [*UNKNOWN, APPLIED_HERE])
def test_the_database_refuses_unlisted_transitions(preparer: User, start: Status, end: Status) -> None:
    operation = put(factories.prepared(preparer), start)
    closed_at = timezone.now() if end in CLOSED else None
    with pytest.raises(DatabaseError, match="operation_known_edges"), transaction.atomic():
        Operation.objects.filter(pk=operation.pk).update(status=end, closed_at=closed_at)


def test_the_database_refuses_to_leave_sending_while_the_attempt_is_open(
    preparer: User, approver: User
) -> None:
    operation = put(factories.prepared(preparer), Status.SENDING)
    now = timezone.now()
    attempt = Attempt.objects.create(
        operation=operation, number=1, released_by=approver, digest="", started_at=now, deadline_at=now
    )
    back = Operation.objects.filter(pk=operation.pk)
    with pytest.raises(DatabaseError, match="operation_known_edges"), transaction.atomic():
        back.update(status=Status.APPROVED)
    Attempt.objects.filter(pk=attempt.pk).update(closed_at=now, outcome=Outcome.NOT_SENT)
    assert back.update(status=Status.APPROVED) == 1


def test_the_database_requires_new_operations_to_be_pending(preparer: User) -> None:
    operation = factories.prepared(preparer)
    operation.pk, operation.reference, operation.status = None, "W-OTHER", Status.APPROVED
    operation._state.adding = True
    with pytest.raises(DatabaseError, match="operation_begins_pending"), transaction.atomic():
        operation.save(force_insert=True)


def test_a_transition_loses_to_an_earlier_concurrent_one(preparer: User) -> None:
    operation = factories.prepared(preparer)
    stale = Operation.objects.get(pk=operation.pk)
    transition(operation, Status.CANCELLED)
    with pytest.raises(WrongStatusError):
        transition(stale, Status.APPROVED)


def test_the_database_refuses_an_approval_by_the_preparer(preparer: User) -> None:
    operation = factories.prepared(preparer)
    approval = Approval(
        operation=operation,
        approver=preparer,
        preparer=preparer,
        digest=operation.digest,
        approved_at=timezone.now(),
    )
    with pytest.raises(DatabaseError, match="approval_never_by_the_preparer"), transaction.atomic():
        approval.save()


def test_the_database_refuses_an_approval_that_names_another_preparer(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    approval = Approval(
        operation=operation,
        approver=preparer,
        preparer=approver,
        digest=operation.digest,
        approved_at=timezone.now(),
    )
    with pytest.raises(DatabaseError, match="approval_names_preparer"), transaction.atomic():
        approval.save()


def test_the_database_refuses_a_second_approval_by_the_same_person(preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    again = Approval(
        operation=operation,
        approver=approver,
        preparer=preparer,
        digest=operation.digest,
        approved_at=timezone.now(),
    )
    with pytest.raises(DatabaseError), transaction.atomic():
        again.save()


def test_the_database_refuses_to_change_an_approval(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    with pytest.raises(DatabaseError, match="approval_keeps_preparer"), transaction.atomic():
        operation.approvals.update(approver=second_approver)


@pytest.mark.parametrize(
    "change",
    [
        {"payload": {"amount": "9"}},
        {"kind": "other"},
        {"sentence": "Withdraw NGN 1.00 to a friend"},
        {"amount": 1},
        {"approvals_needed": 3},
        {"digest": "0" * 64},
    ],
)
def test_the_database_refuses_to_change_the_content(preparer: User, change: dict[str, Any]) -> None:
    operation = factories.prepared(preparer)
    with pytest.raises(DatabaseError, match="operation_keeps_content"), transaction.atomic():
        Operation.objects.filter(pk=operation.pk).update(**change)


def test_the_database_refuses_to_change_the_preparer(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    with pytest.raises(DatabaseError, match="operation_keeps_content"), transaction.atomic():
        Operation.objects.filter(pk=operation.pk).update(preparer=approver)


@pytest.mark.parametrize(
    "ended", [{"begun_at": "2030-01-01T12:00:00Z"}, {"closed_at": "2030-01-01T12:00:00Z"}]
)
def test_the_database_refuses_a_request_that_begins_again_or_after_its_attempt_closed(
    preparer: User, approver: User, ended: dict[str, str]
) -> None:
    attempt = factories.attempt(factories.approved(preparer, approver), closed_at=None, outcome=Outcome.OPEN)
    attempts = Attempt.objects.filter(pk=attempt.pk)
    attempts.update(**ended, outcome=Outcome.NOT_SENT if "closed_at" in ended else Outcome.OPEN)
    with pytest.raises(DatabaseError, match="attempt_begins_once"), transaction.atomic():
        attempts.update(begun_at=timezone.now())
