"""What is open and the status of operations, against plain counting; and how long approving takes."""

import random
import statistics
import uuid
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring.inspection import ApprovalTime, approval_time, inspect, system_health
from backoffice.operations.pages.overview import (
    ENDED_WITHIN,
    SHOWN_PER_GROUP,
    first_in_progress,
    first_needing_attention,
    first_waiting,
    status_counts,
)
from backoffice.operations.permissions import APPROVE
from backoffice.operations.states import CLOSED, NEEDS_ATTENTION, Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted

pytestmark = pytest.mark.django_db


def operations(preparer: User, count: int = 400) -> list[Operation]:
    """In every status, of sixty days, a third of them still open; as an import would put them there."""
    chance, now = random.Random(12), timezone.now()  # noqa: S311 - the same every time, no secret
    made = [_operation(chance, number, now, preparer) for number in range(count)]
    with lifted(connection):
        return Operation.objects.bulk_create(made)


def _operation(chance: random.Random, number: int, now: datetime, preparer: User) -> Operation:
    status = chance.choice(list(Status))
    prepared_at = now - timedelta(minutes=chance.randrange(60 * 24 * 60))
    decided_at = prepared_at + timedelta(microseconds=chance.randrange(10**11))
    return Operation(
        id=uuid.UUID(int=chance.getrandbits(128)),
        reference=f"W-{number:06d}",
        kind="withdrawal",
        payload=factories.payload().stored(),
        content_key=str(number),
        digest=f"{number:064x}",
        sentence="Withdraw",
        currency="NGN",
        amount=Decimal(number + 1),
        status=status,
        approvals_needed=1,
        rule={"code": "one_approver"},
        preparer=preparer,
        prepared_at=prepared_at,
        expires_at=prepared_at + timedelta(days=3),
        decided_at=None if status in {Status.PENDING, Status.EXPIRED, Status.CANCELLED} else decided_at,
        closed_at=prepared_at + timedelta(hours=1) if status in CLOSED else None,
    )


def test_each_group_has_its_oldest_and_counts_all(preparer: User, approver: User) -> None:
    made = operations(preparer)
    still_open = sorted((one for one in made if not one.is_closed), key=lambda one: one.prepared_at)
    waiting = [one for one in still_open if one.status in {Status.PENDING, Status.APPROVED}]
    attention = [one for one in still_open if one.status in NEEDS_ATTENTION]
    rest = [one for one in still_open if one not in attention]
    soon = timezone.now() + timedelta(hours=1)
    assert approver.has_perm(APPROVE)  # permissions and restriction are read once
    assert approver.restrictions == ()
    for first_of, expected in (
        (first_waiting, waiting),
        (first_needing_attention, attention),
        (first_in_progress, rest),
    ):
        with CaptureQueriesContext(connection) as queries:
            found = first_of(approver)
        assert len(queries) == (
            2 if first_of is first_waiting else 1
        )  # the levels of what waits are read first
        urgent_first = sorted(expected, key=lambda one: one not in waiting or one.expires_at > soon)
        assert found.total == len(expected) > SHOWN_PER_GROUP
        assert [one.pk for one in found.first] == [one.pk for one in urgent_first[:SHOWN_PER_GROUP]]


def test_operations_that_expire_within_the_hour_come_first(preparer: User, approver: User) -> None:
    oldest, middle, urgent = (factories.prepared(preparer) for _ in range(3))
    with lifted(connection):
        for number, one in enumerate((oldest, middle, urgent)):
            at = timezone.now() - timedelta(hours=5 - number)
            Operation.objects.filter(pk=one.pk).update(prepared_at=at)
        Operation.objects.filter(pk=urgent.pk).update(expires_at=timezone.now() + timedelta(minutes=20))
    first = first_waiting(approver).first
    assert [one.pk for one in first] == [urgent.pk, oldest.pk, middle.pk]


def test_readers_see_all_open_operations_as_in_progress(preparer: User, auditor: User) -> None:
    operations(preparer, 60)
    assert first_waiting(auditor).total == 0
    undecided = Operation.objects.filter(closed_at=None).exclude(status__in=NEEDS_ATTENTION)
    assert first_in_progress(auditor).total == undecided.count()


def test_own_operations_are_in_progress_and_not_waiting(preparer: User, approver: User) -> None:
    approver.groups.add(*preparer.groups.all())
    own = factories.prepared(approver)
    person = User.objects.get(pk=approver.pk)
    assert first_waiting(person).total == 0
    assert [one.pk for one in first_in_progress(person).first] == [own.pk]


def test_users_without_a_role_see_no_groups(outsider: User, preparer: User) -> None:
    factories.prepared(preparer)
    for first_of in (first_waiting, first_needing_attention, first_in_progress):
        assert first_of(outsider).total == 0


def test_status_counts_equal_a_plain_count(preparer: User) -> None:
    made, now = operations(preparer), timezone.now()
    expected = Counter(
        one.status for one in made if one.closed_at is None or one.closed_at >= now - ENDED_WITHIN
    )
    open_now, ended = status_counts(now)
    assert {one.status: one.count for one in [*open_now, *ended]} == expected
    assert not {one.status for one in open_now} & CLOSED
    assert {one.status for one in ended} <= CLOSED


def test_every_operation_is_in_a_list(db: None) -> None:
    assert status_counts(timezone.now()) == ([], [])


@pytest.mark.parametrize("count", [399, 400])
def test_the_median_is_exact(preparer: User, count: int) -> None:
    made, now = operations(preparer, count), timezone.now()
    waits = [
        (one.decided_at - one.prepared_at) / timedelta(microseconds=1)
        for one in made
        if one.decided_at and one.status != Status.REJECTED and one.decided_at >= now - timedelta(days=30)
    ]
    found = approval_time(now)
    assert found is not None
    assert found.count == len(waits)
    assert found.median == timedelta(microseconds=statistics.median(waits))


def test_a_rejection_is_not_counted_as_an_approval(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    approvals.reject_operation(
        operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now(), reason="No."
    )
    assert approval_time(timezone.now()) is None


def test_the_inspection_stores_the_approval_time(preparer: User, approver: User) -> None:
    inspect(full=False)
    assert system_health().approval_time is None
    operation = factories.approved(preparer, approver)
    inspect(full=False)
    operation.refresh_from_db()
    assert operation.decided_at is not None
    assert system_health().approval_time == ApprovalTime(1, operation.decided_at - operation.prepared_at)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "less than a second"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (7505, "2 h 5 min"),
        (90000, "1 d 1 h"),
        (86460, "1 d 1 min"),
    ],
)
def test_durations_are_formatted(seconds: float, words: str) -> None:
    assert str(ApprovalTime(1, timedelta(seconds=seconds))) == words
