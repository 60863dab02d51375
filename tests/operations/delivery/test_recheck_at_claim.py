"""What is checked again in the commit that opens the attempt: content, approvals, people, queue, pause."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.lifecycle import pause
from backoffice.operations.lifecycle.incidents import raise_incident
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release, content_digest
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.outcome import schedule
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.steps import before_the_log, status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def released(provider: StubProvider, preparer: User, approver: User, second_approver: User) -> Operation:
    """A withdrawal that one person approved and another released."""
    return factories.release(factories.approved(preparer, approver), second_approver)


def claim(operation: Operation) -> send.SendClaim | None:
    release = Release.objects.select_related("operation").get(pk=operation.pk)
    return send.claim_operation(operation.pk, send.preflight_read(release))


def assert_stays(operation: Operation, provider: StubProvider) -> None:
    assert (status_of(operation), Attempt.objects.count(), provider.posts) == (Status.APPROVED, 0, [])


def test_the_approver_must_still_have_the_permission(
    released: Operation, provider: StubProvider, approver: User
) -> None:
    approver.groups.remove(Group.objects.get(name="Approver"))
    with pytest.raises(errors.PermissionMissingError):
        claim(released)
    assert_stays(released, provider)


def test_the_releaser_must_still_have_the_permission(
    released: Operation, provider: StubProvider, second_approver: User
) -> None:
    second_approver.groups.remove(Group.objects.get(name="Approver"))
    with pytest.raises(errors.PermissionMissingError):
        claim(released)
    assert_stays(released, provider)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.parametrize("role", ["preparer", "approver", "second_approver"])
def test_a_right_that_is_lost_before_the_entry_of_the_claim_lets_nothing_be_sent(
    released: Operation,
    provider: StubProvider,
    administrator: User,
    request: pytest.FixtureRequest,
    role: str,
) -> None:
    """The claim has checked everybody, and waits for the audit log, which records the loss before it."""
    person: User = request.getfixturevalue(role)
    lost = before_the_log(
        lambda: staff.set_roles(person.pk, roles=[], actor=administrator),
        after='DELETE FROM "operations_release"',
    )
    with lost:
        send.send_operation(released.pk)
    assert_stays(released, provider)
    newest = Entry.objects.order_by("-position").values_list("action", flat=True)[:2]
    assert list(newest) == [Action.OPERATION_ACTION_REFUSED, Action.STAFF_ROLES_CHANGED]


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_an_incident_that_is_raised_before_the_entry_of_the_claim_lets_nothing_be_sent(
    released: Operation, provider: StubProvider
) -> None:
    kind = IncidentKind.EXECUTED_AFTER_ALL
    raised = before_the_log(
        lambda: raise_incident(released, kind=kind, evidence={}), after='DELETE FROM "operations_release"'
    )
    with raised:
        send.send_operation(released.pk)
    assert_stays(released, provider)


def test_a_release_by_the_preparer_is_invalid(
    released: Operation, provider: StubProvider, preparer: User
) -> None:
    preparer.groups.add(Group.objects.get(name="Approver"))
    Release.objects.update(released_by=preparer)
    with pytest.raises(errors.SelfApprovalError):
        claim(released)
    assert_stays(released, provider)


def test_an_approval_by_the_preparer_is_ignored(
    released: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    """Whoever lifts the triggers of the database can name another preparer; the people who signed are counted anew."""
    preparer.groups.add(Group.objects.get(name="Approver"))
    with lifted(connection):
        Approval.objects.update(approver=preparer, preparer=approver)
    with pytest.raises(errors.PermissionMissingError):
        claim(released)
    assert_stays(released, provider)


def test_an_approval_of_other_content_is_ignored(released: Operation, provider: StubProvider) -> None:
    with lifted(connection):
        Approval.objects.update(digest="0" * 64)
    with pytest.raises(errors.PermissionMissingError):
        claim(released)
    assert_stays(released, provider)


def test_content_that_is_not_what_was_approved_is_not_claimed(
    released: Operation, provider: StubProvider
) -> None:
    with lifted(connection):
        Operation.objects.update(payload={**released.payload, "account_number": "9999999999"})
    with pytest.raises(errors.ContentChangedError):
        claim(released)
    assert_stays(released, provider)


def test_a_one_time_code_for_other_content_cannot_be_decrypted(
    released: Operation, provider: StubProvider
) -> None:
    """Even where content, digest, approvals and seals were all altered alike, and the audit log was rewritten."""
    payload = {**released.payload, "account_number": "9999999999"}
    digest = content_digest(released.pk, released.kind, payload)
    with lifted(connection):
        Operation.objects.update(payload=payload, digest=digest)
        Approval.objects.update(digest=digest)
        for row in (Operation.objects.get(), Approval.objects.get(), Release.objects.get()):
            row.make_seal()
            row.save()
        for entry in Entry.objects.filter(detail__digest=released.digest):
            Entry.objects.filter(pk=entry.pk).update(detail={**entry.detail, "digest": digest})
    with pytest.raises(errors.ContentChangedError):
        claim(released)
    assert_stays(released, provider)


def test_an_expired_operation_is_not_sent(released: Operation, provider: StubProvider) -> None:
    factories.expire(released)
    with pytest.raises(errors.ExpiredError):
        claim(released)
    assert_stays(released, provider)


def test_an_expired_release_is_invalid(released: Operation, provider: StubProvider) -> None:
    Release.objects.update(expires_at=timezone.now())
    assert claim(released) is None
    assert_stays(released, provider)


def test_an_operation_behind_another_is_not_claimed(
    provider: StubProvider, preparer: User, approver: User, released: Operation
) -> None:
    second = factories.release(factories.approved(preparer, approver, amount=Decimal(200_000)), approver)
    assert claim(second) is None
    assert_stays(second, provider)
    assert claim(released) is not None


def test_nothing_is_claimed_while_payments_are_paused(
    released: Operation, provider: StubProvider, approver: User
) -> None:
    pause.pause_payments(actor=approver, reason="A supplier's mailbox was taken over.")
    assert claim(released) is None
    assert_stays(released, provider)


def test_a_claim_inside_another_transaction_is_refused(released: Operation, provider: StubProvider) -> None:
    """It would be undone together with the other one, after the request has left."""
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        claim(released)
    assert_stays(released, provider)


def test_the_attempt_is_recorded_before_the_request_is_sent(
    released: Operation, provider: StubProvider
) -> None:
    seen = []

    def read_from_outside() -> tuple[int, str]:
        try:
            attempt = Attempt.objects.select_related("operation").get()
            seen.append((attempt.operation.status, attempt.outcome, Release.objects.count()))
        finally:
            connection.close()  # that of the thread that answers
        return 200, '{"data": {"transactionId": "T-1"}}'

    provider.answer_post = read_from_outside
    send.send_operation(released.pk)
    assert seen == [(Status.SENDING, Outcome.OPEN, 0)]


def test_an_operation_has_at_most_one_open_attempt(released: Operation, approver: User) -> None:
    assert claim(released) is not None
    now = timezone.now()
    further = Attempt(
        operation=released,
        number=2,
        released_by=approver,
        digest=released.digest,
        started_at=now,
        deadline_at=now,
    )
    with pytest.raises(DatabaseError), transaction.atomic():
        further.save(force_insert=True)


def test_one_of_two_concurrent_sweepers_checks_the_status(released: Operation) -> None:
    assert claim(released) is not None
    Attempt.objects.update(next_check_at=timezone.now() - timedelta(seconds=1))
    both = [schedule._DueCheck(Attempt.objects.get(), None) for _ in range(2)]
    assert [schedule._check(due) for due in both] == [True, False]
