"""What two processes must agree on goes by the database's clock, and not by that of the machine that asks."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.accounts.second_factor import is_second_factor_fresh
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations.kinds.base import Debit
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.workflow.prepare import DUPLICATE_WINDOW, duplicate_payments
from tests import factories
from tests.operations.steps import put, text_of

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
THEN = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)


def _as_constant(moment: datetime) -> datetime:
    return moment


def test_audit_entries_have_the_databases_time() -> None:
    with clock.use_clock(partial(_as_constant, THEN)), transaction.atomic():
        assert audit.record(Action.INCIDENT_RAISED, actor=None).at == THEN


@pytest.mark.parametrize(
    ("age", "fresh"), [(timedelta(0), True), (5 * MINUTE, True), (6 * MINUTE, False), (-MINUTE, False)]
)
def test_a_second_factor_is_fresh_for_five_minutes_and_never_from_the_future(
    age: timedelta, fresh: bool
) -> None:
    with clock.use_clock(partial(_as_constant, THEN)):
        assert is_second_factor_fresh(THEN - age) is fresh


def test_a_session_stores_the_second_factor_by_the_databases_time(as_approver: Client) -> None:
    """So that a machine whose clock is ahead does not make it last longer on another one."""
    noted = datetime.fromisoformat(as_approver.session["second_factor_at"])
    with clock.use_clock(partial(_as_constant, noted + 6 * MINUTE)):
        assert not is_second_factor_fresh(noted)


@pytest.mark.parametrize(("later", "found"), [(timedelta(0), True), (2 * MINUTE, False)])
def test_repeated_payments_are_found_by_the_databases_time(
    preparer: User, approver: User, later: timedelta, found: bool
) -> None:
    operation = sent(factories.approved(preparer, approver), approver)
    started_at = operation.attempts.get().started_at
    assert operation.recipient_key is not None
    assert operation.amount is not None
    with clock.use_clock(partial(_as_constant, started_at + DUPLICATE_WINDOW - MINUTE + later)):
        before = duplicate_payments(operation.recipient_key, Debit(operation.currency, operation.amount))
    assert before.exists() is found


@pytest.mark.parametrize(("minutes", "offered"), [(59, False), (61, True)])
def test_the_unknown_outcomes_page_offers_not_executed_by_the_databases_time(
    as_approver: Client, preparer: User, approver: User, minutes: int, offered: bool
) -> None:
    operation = factories.approved(preparer, approver)
    attempt = opened(operation, approver)
    put(operation, "sending", "unknown")
    with clock.use_clock(partial(_as_constant, attempt.started_at + minutes * MINUTE)):
        shown = text_of(as_approver.get("/reconciliation/unknown/"))
    assert ("Resolve as not executed…" in shown) is offered


def opened(operation: Operation, releaser: User) -> Attempt:
    now = timezone.now()
    return Attempt.objects.create(
        operation=operation,
        number=1,
        released_by=releaser,
        digest=operation.digest,
        started_at=now,
        deadline_at=now,
    )


def sent(operation: Operation, releaser: User) -> Operation:
    """As if it had succeeded."""
    attempt = opened(operation, releaser)
    ended = {"closed_at": attempt.started_at}
    put(operation, "sending")
    Operation.objects.filter(pk=operation.pk).update(status="succeeded", **ended)
    Attempt.objects.filter(pk=attempt.pk).update(outcome="succeeded", **ended)
    return operation
