"""A release that ends unsent notifies who prepared it, who released it, and who may send it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.notifications import jobs
from backoffice.notifications.delivery import deliver_email_due
from backoffice.notifications.models import Message
from backoffice.notifications.recording import audit_feed
from backoffice.operations.delivery import send
from backoffice.operations.errors import OperationError
from backoffice.operations.jobs import expire_due
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.operations import Operation, Release
from tests import factories
from tests.notifications.receivers import MailServer
from tests.notifications.steps import notices_of
from tests.operations.batches import payouts
from tests.operations.provider_list import record, shows
from tests.policies.versions import levels, of_people, put_in_effect
from tests.stub_provider import StubProvider

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("mailbox")]


@pytest.fixture
def released(preparer: User, approver: User, second_approver: User) -> Operation:
    """Released by the one who approved it, with all messages so far read."""
    operation = factories.release(factories.approved(preparer, approver), approver)
    audit_feed.record_events_due()
    Message.objects.all().delete()
    return operation


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    with clock.use_clock(lambda: moment):
        yield


def heard(*people: User) -> list[list[str]]:
    audit_feed.record_events_due()
    return [notices_of(one.pk) for one in people]


def test_look_alikes_are_reported(
    provider: StubProvider, released: Operation, preparer: User, approver: User, second_approver: User
) -> None:
    shows(provider, record("T-ELSEWHERE"))
    send.send_operation(released.pk)
    assert heard(preparer, approver, second_approver) == [["not_sent"]] * 3
    assert set(Message.objects.values_list("operation", flat=True)) == {released.pk}


def test_a_tightened_policy_is_reported_to_those_who_can_approve_now(
    provider: StubProvider,
    released: Operation,
    preparer: User,
    approver: User,
    second_approver: User,
) -> None:
    third = factories.person("Third Approver", Role.APPROVER)
    put_in_effect(levels((1, of_people(third))))
    send.send_operation(released.pk)
    assert provider.posts == []
    assert heard(preparer, approver, third) == [["not_sent"]] * 3
    assert heard(second_approver) == [[]]


def test_an_approver_without_the_right_is_reported(
    provider: StubProvider,
    released: Operation,
    preparer: User,
    approver: User,
    second_approver: User,
    administrator: User,
) -> None:
    staff.set_roles(approver.pk, roles=[Role.AUDITOR], actor=administrator, reason="Moved")
    send.send_operation(released.pk)
    assert heard(preparer, second_approver) == [["not_sent"]] * 2


def test_an_expired_release_is_reported(
    released: Operation, preparer: User, approver: User, second_approver: User
) -> None:
    factories.change_release(Release.objects.get(), expires_at=timezone.now())
    expire_due()
    assert heard(preparer, approver, second_approver) == [["not_sent"]] * 3


def test_a_release_that_a_long_pause_ended_is_reported_to_who_released_it(
    preparer: User, approver: User, second_approver: User, settings: Settings
) -> None:
    [row] = payouts.row_operations(payouts.applied(preparer, approver, payouts.transfers(1)))
    factories.release(row, approver)
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    settings.RELEASE_LIFETIME_MINUTES = 0
    form = KINDS["resume"].form_type({"reason": "The key is ended"})
    assert form.is_valid()
    factories.approve(factories.prepared_of_kind("resume", form.payload(), preparer), approver)
    audit_feed.record_events_due()
    told = Message.objects.filter(notice="not_sent").values_list("person", flat=True)
    assert set(told) == {preparer.pk, approver.pk}


def test_a_refusal_that_a_person_sees_notifies_nobody(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    heard()
    Message.objects.all().delete()
    with pytest.raises(OperationError):
        factories.release(operation, preparer)
    assert heard(preparer, approver, second_approver) == [[], [], []]


def test_what_was_released_again_meanwhile_is_not_delivered(
    released: Operation, preparer: User, approver: User, mailbox: MailServer
) -> None:
    factories.change_release(Release.objects.get(), expires_at=timezone.now())
    expire_due()
    heard()
    factories.release(released, approver)
    with at(timezone.now() + timedelta(minutes=2)):
        deliver_email_due()
    assert mailbox.mails == []
    assert not Message.objects.filter(notice="not_sent", dropped_at=None).exists()


def test_operations_that_expire_together_are_one_mail(
    preparer: User, approver: User, mailbox: MailServer
) -> None:
    """Also if the jobs find them in several rounds."""
    for _ in range(6):
        factories.release(
            factories.approve(factories.prepared_to_another_account(preparer), approver), approver
        )
    jobs.JOBS["record_events_due"]()
    Message.objects.all().delete()
    start = timezone.now().replace(second=10) + timedelta(days=1)
    Operation.objects.update(expires_at=start + timedelta(days=1))
    for seconds, release in enumerate(Release.objects.all()):
        factories.change_release(release, expires_at=timezone.now())
        with at(start + timedelta(seconds=seconds)):
            expire_due()
            audit_feed.record_events_due()
            deliver_email_due()
    assert mailbox.mails == []
    with at(start + timedelta(minutes=1)):
        deliver_email_due()
    assert sorted(mail["To"] for mail in mailbox.mails) == sorted([approver.email, preparer.email])
    assert "6 notifications" in mailbox.mails[0]["Subject"]


def test_rows_of_a_batch_are_reported_as_the_batch(
    preparer: User, approver: User, mailbox: MailServer
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    rows = payouts.row_operations(batch)
    for row in rows:
        factories.release(row, approver)
    heard()
    Message.objects.all().delete()
    for release in Release.objects.all():
        factories.change_release(release, expires_at=timezone.now())
    expire_due()
    assert heard(preparer, approver) == [["not_sent"]] * 2
    assert set(Message.objects.values_list("operation", "path")) == {(batch.pk, batch.get_absolute_url())}
    with at(timezone.now() + timedelta(minutes=2)):
        deliver_email_due()
    assert len(mailbox.mails) == 2
