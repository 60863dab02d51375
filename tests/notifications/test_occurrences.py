"""Events without an audit entry are found, and notify once."""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.api_keys.models import KnownKey
from backoffice.core import clock
from backoffice.core.models import LeaseRow
from backoffice.notifications.models import Message, Occurrence
from backoffice.notifications.recording import occurrences
from backoffice.notifications.recording.occurrences import find_occurrences_due
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from backoffice.webhooks.deliveries import MissingDeliveries
from tests import factories
from tests.notifications.steps import notices_of
from tests.operations import steps
from tests.operations.batches import payouts

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mailbox")]


def find(at: datetime | None = None) -> int:
    """One round at this time, as if a minute had passed since the last one."""
    LeaseRow.objects.filter(name="notifications").delete()
    with clock.use_clock(lambda: at or timezone.now()):
        return find_occurrences_due()


def before_expiry(operation: Operation, minutes: float) -> datetime:
    return Operation.objects.get(pk=operation.pk).expires_at - timedelta(minutes=minutes)


def test_it_looks_once_a_minute(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    with clock.use_clock(lambda: before_expiry(operation, 60)):
        assert find_occurrences_due() == 2
        Occurrence.objects.all().delete()
        assert find_occurrences_due() == 0


@pytest.mark.parametrize(
    ("minutes", "of_minutes", "is_told"),
    [(7 * 60, 72 * 60, False), (5 * 60, 72 * 60, True), (20, 30, False), (7, 30, True), (-1, 30, False)],
)
def test_what_expires_soon_is_told_once_to_who_can_decide_and_to_the_preparer(
    preparer: User, approver: User, auditor: User, minutes: float, of_minutes: float, is_told: bool
) -> None:
    operation = factories.prepared(preparer)
    Operation.objects.update(expires_at=operation.prepared_at + timedelta(minutes=of_minutes))
    find(before_expiry(operation, minutes))
    find(before_expiry(operation, minutes - 0.1))
    assert notices_of(approver.pk) == ["expires_soon"] * is_told
    assert notices_of(preparer.pk) == ["own_expires_soon"] * is_told
    assert notices_of(auditor.pk) == []


def test_what_was_decided_does_not_expire(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    approvals.cancel_operation(operation.pk, actor=preparer)
    assert find(before_expiry(operation, 60)) == 0


def test_what_waits_long_to_be_sent_is_told_to_administrators_if_the_deployment_says_so(
    preparer: User, approver: User, administrator: User, settings: Settings
) -> None:
    operation = factories.approved(preparer, approver)
    a_day_later = operation.prepared_at + timedelta(hours=25)
    assert find(a_day_later) == 0
    settings.NOTIFY_ESCALATE_HOURS = 24
    assert find(a_day_later - timedelta(hours=2)) == 0
    find(a_day_later)
    find(a_day_later + timedelta(hours=1))
    assert notices_of(administrator.pk) == ["escalated"]
    assert Message.objects.get(person=administrator).operation == operation.pk


def test_a_key_is_told_at_30_7_and_1_days_and_not_in_between(administrator: User, preparer: User) -> None:
    key = KnownKey.objects.create(
        short_hash="abcd1234", position=1, name="first key", as_of=timezone.now(), expires_at=timezone.now()
    )
    expires_at = timezone.now().replace(hour=12)
    for days in (40, 29, 20, 6.5, 3, 0.9, 0.5):
        key.expires_at = expires_at
        key.save()
        find(expires_at - timedelta(days=days))
    assert notices_of(administrator.pk) == ["key_expires_30", "key_expires_7", "key_expires_1"]
    assert notices_of(preparer.pk) == []


def test_each_silence_of_webhooks_is_told_once(administrator: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for last_at in (None, None, timezone.now(), timezone.now() + timedelta(days=2)):
        found = MissingDeliveries(last_at, "https://office.example/hooks/x/", None)
        monkeypatch.setattr(occurrences, "missing_deliveries", lambda found=found: found)
        find()
    assert notices_of(administrator.pk) == ["webhooks_silent"] * 3


def test_the_failed_rows_of_a_batch_are_one_message_and_a_further_one_if_more_fail(
    preparer: User, approver: User, second_approver: User, auditor: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(5))
    rows, now = payouts.row_operations(batch), timezone.now()
    for operation in rows[:2]:
        factories.attempt(operation, released_by=second_approver)
        steps.put(operation, Status.SENDING, Status.FAILED)
    steps.put(rows[2], Status.SENDING)
    find(now + timedelta(hours=1))
    assert notices_of(preparer.pk) == [], "one is being sent"
    steps.put(rows[2], Status.UNKNOWN)
    find(now)
    assert notices_of(preparer.pk) == [], "more may fail"
    for minutes in (6, 7):
        find(now + timedelta(minutes=minutes))
    assert notices_of(preparer.pk) == notices_of(second_approver.pk) == ["rows_failed"]
    assert notices_of(auditor.pk) == []
    message = Message.objects.get(person=preparer)
    assert (message.operation, message.path) == (batch.pk, batch.get_absolute_url())
    steps.put(rows[3], Status.SENDING, Status.FAILED)
    find(now + timedelta(minutes=20))
    assert notices_of(preparer.pk) == ["rows_failed"] * 2


def test_a_batch_is_told_when_its_last_row_has_ended(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    find()
    first, second = payouts.row_operations(batch)
    approvals.cancel_operation(first.pk, actor=preparer)
    find()
    assert notices_of(preparer.pk) == []
    approvals.cancel_operation(second.pk, actor=preparer)
    find()
    find()
    assert notices_of(preparer.pk) == ["batch_finished"]
    assert Operation.objects.get(pk=batch.pk).status == Status.SUCCEEDED
