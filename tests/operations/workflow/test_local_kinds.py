"""Operations that are applied here and never sent: resolutions, and the end of a pause."""

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.kinds.base import LocalEffect, LocalKind
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.operations.steps import before_the_log, do, put, show, text_of
from tests.operations.unknown_outcomes import proposed
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


# What is applied here


def test_every_local_effect_belongs_to_a_kind_and_can_be_applied() -> None:
    declared = {kind.effect for kind in KINDS.values() if isinstance(kind, LocalKind)}
    assert declared == set(LocalEffect) == set(approvals._EFFECTS)


def test_local_kinds_are_never_sent(
    provider: StubProvider, review: Operation, preparer: User, approver: User
) -> None:
    resolution = proposed(review, preparer, "not_executed")
    before = list(provider.changes)
    now = timezone.now()
    with pytest.raises(errors.WrongStatusError, match="never sent"):
        approvals.approve_and_release_operation(
            resolution.pk, actor=approver, digest=resolution.digest, second_factor_at=now
        )
    resolution.refresh_from_db()
    assert resolution.status == Status.PENDING
    factories.approve(resolution, approver)
    send.send_operation(resolution.pk)
    assert provider.changes == before
    assert not resolution.attempts.exists()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_a_right_that_is_lost_before_the_entry_of_the_approval_applies_nothing(
    provider: StubProvider, review: Operation, preparer: User, approver: User, administrator: User
) -> None:
    resolution = proposed(review, preparer, "not_executed")
    lost = before_the_log(lambda: staff.set_roles(approver.pk, roles=[], actor=administrator))
    with lost, pytest.raises(errors.PermissionMissingError):
        approvals.approve_operation(
            resolution.pk, actor=approver, digest=resolution.digest, second_factor_at=timezone.now()
        )
    resolution.refresh_from_db()
    assert (resolution.status, resolution.approvals.count()) == (Status.PENDING, 0)
    assert Operation.objects.get(pk=review.pk).status == Status.REVIEW


def test_the_page_says_apply_instead_of_send(review: Operation, as_approver: Client, preparer: User) -> None:
    resolution = proposed(review, preparer, "not_executed")
    html = text_of(show(as_approver, resolution))
    assert "Approve and apply" in html
    assert "Approve and send" not in html
    assert html.index("Prepared<small>") < html.index("Approved<small>") < html.index("Applied<small>")
    assert do(as_approver, resolution, "approve").status_code == 302
    html = text_of(show(as_approver, resolution))
    assert "Applied by the last approval. No payment was sent." in html
    assert "Resolved by" in text_of(show(as_approver, review))


def test_local_kinds_are_not_decided_in_bulk(review: Operation, preparer: User, approver: User) -> None:
    resolution = proposed(review, preparer, "not_executed")
    line = approvals.approve_operations(
        [approvals.SelectedOperation(resolution, resolution.digest)],
        actor=approver,
        second_factor_at=timezone.now(),
    )[0]
    assert "one by one" in line.text
    resolution.refresh_from_db()
    assert resolution.status == Status.PENDING


def test_the_database_refuses_to_apply_a_sent_operation(
    provider: StubProvider, review: Operation, preparer: User
) -> None:
    resolution = proposed(review, preparer, "not_executed")
    put(resolution, Status.APPROVED)
    attempt = Attempt.objects.get()
    attempt.pk, attempt.operation, attempt.balance = None, resolution, None
    attempt.save(force_insert=True)
    with pytest.raises(DatabaseError, match="operation_known_edges"), transaction.atomic():
        Operation.objects.filter(pk=resolution.pk).update(status="succeeded", closed_at=timezone.now())
