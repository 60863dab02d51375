"""Audit entries become messages: each once, none lost, to the people whom they concern."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection, connections, transaction
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import ChainHead
from backoffice.core import fault_points, isolation
from backoffice.notifications import jobs
from backoffice.notifications.events import EVENTS, SILENT, Group
from backoffice.notifications.models import AuditCursor, Channel, Message
from backoffice.notifications.recording import audit_feed
from backoffice.operations.lifecycle import pause
from backoffice.operations.workflow import approvals
from tests import factories
from tests.notifications.receivers import MailServer
from tests.notifications.steps import notices_of
from tests.operations.batches import payouts
from tests.operations.forgeries import forge_entry
from tests.operations.pages.bulk.steps import LIMIT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mailbox")]


def test_every_action_is_told_or_in_the_list_of_those_that_are_not() -> None:
    assert set(EVENTS) | SILENT == set(Action)
    assert not SILENT.intersection(EVENTS)


def test_every_page_that_a_notice_links_to_exists() -> None:
    pages = {event.page for events in EVENTS.values() for event in events} - {""}
    assert all(reverse(page) for page in pages)


def test_a_prepared_operation_waits_for_who_may_approve_it(
    preparer: User, approver: User, second_approver: User, auditor: User, administrator: User
) -> None:
    operation = factories.prepared(preparer)
    assert audit_feed.record_events_due() == 2
    waiting = Message.objects.values_list("person", "notice", "operation")
    assert set(waiting) == {(one.pk, "waits", operation.pk) for one in (approver, second_approver)}


def test_an_approver_who_prepared_it_is_not_asked(approver: User, second_approver: User) -> None:
    approver.groups.add(*factories.person("Both", Role.PREPARER).groups.all())
    factories.prepared(User.objects.get(pk=approver.pk))
    audit_feed.record_events_due()
    assert (notices_of(approver.pk), notices_of(second_approver.pk)) == ([], ["waits"])


def test_the_preparer_hears_of_the_decision_and_others_that_it_can_be_sent(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.prepared(preparer)
    audit_feed.record_events_due()
    factories.approve(operation, approver)
    audit_feed.record_events_due()
    assert notices_of(preparer.pk) == ["approved"]
    assert notices_of(second_approver.pk) == ["waits", "waits"]


def test_only_the_last_approval_is_told_as_approved(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.prepared(preparer, amount=LIMIT + 1)
    factories.approve(operation, approver)
    audit_feed.record_events_due()
    assert notices_of(preparer.pk) == ["partly_approved"]
    factories.approve(operation, second_approver)
    audit_feed.record_events_due()
    assert notices_of(preparer.pk) == ["partly_approved", "approved"]


def test_the_preparer_hears_of_a_rejection_and_not_of_an_own_cancellation(
    preparer: User, approver: User
) -> None:
    rejected, cancelled = factories.prepared(preparer), factories.prepared(preparer)
    approvals.reject_operation(
        rejected.pk,
        actor=approver,
        digest=rejected.digest,
        second_factor_at=timezone.now(),
        reason="Wrong account",
    )
    approvals.cancel_operation(cancelled.pk, actor=preparer)
    audit_feed.record_events_due()
    assert notices_of(preparer.pk) == ["rejected"]


def test_what_was_decided_before_the_log_was_read_asks_nobody(preparer: User, approver: User) -> None:
    approvals.cancel_operation(factories.prepared(preparer).pk, actor=preparer)
    assert audit_feed.record_events_due() == 0


def test_a_pause_is_told_to_everybody_who_may_see_operations(
    preparer: User, auditor: User, outsider: User
) -> None:
    pause.pause_payments(actor=preparer, reason="Something is wrong")
    audit_feed.record_events_due()
    assert (notices_of(preparer.pk), notices_of(auditor.pk), notices_of(outsider.pk)) == (
        ["paused"],
        ["paused"],
        [],
    )


def test_a_change_of_rights_is_told_to_the_person_and_to_administrators(
    preparer: User, administrator: User, approver: User
) -> None:
    staff.set_roles(preparer.pk, roles=[Role.AUDITOR], actor=administrator, reason="Moved")
    audit_feed.record_events_due()
    assert notices_of(preparer.pk) == ["roles_changed"]
    assert notices_of(administrator.pk) == ["team_roles_changed"]
    assert notices_of(approver.pk) == []


def test_a_lock_out_of_an_unknown_address_is_told_to_nobody(preparer: User) -> None:
    with transaction.atomic():
        audit.record(Action.SIGN_IN_LOCKED, actor=None, target="nobody@elsewhere.example")
    assert audit_feed.record_events_due() == 0


def test_the_rows_of_a_batch_are_told_as_a_whole(
    preparer: User, approver: User, second_approver: User
) -> None:
    payouts.applied(preparer, approver, payouts.transfers(3))
    audit_feed.record_events_due()
    operations = set(Message.objects.values_list("operation", flat=True))
    assert len(operations) == 1  # the batch


def test_rows_of_a_batch_that_failed_or_expired_do_not_notify_one_by_one(
    preparer: User, approver: User, administrator: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(6))
    audit_feed.record_events_due()
    Message.objects.all().delete()
    rows = payouts.row_operations(batch)
    actions = (
        *(Action.OPERATION_FAILED, Action.OPERATION_FAILED),
        *(Action.OPERATION_EXPIRED, Action.OPERATION_EXPIRED),
        *(Action.OPERATION_OUTCOME_UNKNOWN, Action.OPERATION_OUTCOME_UNKNOWN),
    )
    with transaction.atomic():
        for operation, action in zip(rows, actions, strict=True):
            audit.record(action, actor=None, target=operation)
    audit_feed.record_events_due()
    assert sorted(notices_of(preparer.pk)) == ["expired", "outcome_unknown", "outcome_unknown"]
    assert Message.objects.get(notice="expired", person=preparer).operation == batch.pk


def test_an_unknown_outcome_reaches_a_preparer_who_responds_to_incidents_once(approver: User) -> None:
    """As the owner and as a responder, which are two lines of the table."""
    approver.groups.add(*factories.person("Both", Role.PREPARER).groups.all())
    operation = factories.prepared(User.objects.get(pk=approver.pk))
    with transaction.atomic():
        audit.record(Action.OPERATION_OUTCOME_UNKNOWN, actor=None, target=operation)
    audit_feed.record_events_due()
    assert notices_of(approver.pk) == ["outcome_unknown"]


@pytest.mark.parametrize(
    ("action", "target_type", "target_id", "detail"),
    [
        (Action.OPERATION_APPROVED, "operations.operation", "x", {}),
        (Action.OPERATION_APPROVED, "operations.operation", "x", []),
        (Action.OPERATION_ACTION_REFUSED, "operations.operation", "x", []),
        (Action.OPERATION_ACTION_REFUSED, "operations.operation", "x", {"refusal": 5}),
        (Action.STAFF_ROLES_CHANGED, "accounts.user", "x", {}),
        (Action.STAFF_ROLES_CHANGED, "accounts.user", "987654", {}),
        (Action.DELEGATION_AGREED, "policies.delegation", "1", {}),
        (Action.EXPORT_FAILED, "", "", {"export": "x"}),
        (Action.OPERATION_RELEASE_EXPIRED, "operations.operation", "x", {"notified": 5}),
        (Action.OPERATION_RELEASE_EXPIRED, "operations.operation", "x", {"notified": ["x", 987654]}),
    ],
)
def test_a_forged_entry_keeps_no_other_message_back(
    preparer: User, approver: User, action: Action, target_type: str, target_id: str, detail: object
) -> None:
    forge_entry(action, target_type, target_id, detail)
    factories.prepared(preparer)
    audit_feed.record_events_due()
    connection.check_constraints()
    assert "waits" in notices_of(approver.pk)
    assert not audit_feed.is_behind()


def test_an_entry_that_cannot_be_read_counts_as_a_failed_row() -> None:
    forge_entry(Action.STAFF_ROLES_CHANGED, "accounts.user", "x", {})
    isolation.run_isolated("record_events_due", audit_feed.record_events_due)
    assert isolation.failed_rows() == {"record_events_due": 1}


def test_entries_read_again_make_no_second_message(preparer: User, approver: User) -> None:
    factories.prepared(preparer)
    audit_feed.record_events_due()
    AuditCursor.objects.update(position=0)
    audit_feed.record_events_due()
    assert notices_of(approver.pk) == ["waits"]


def test_messages_and_cursor_are_stored_together(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(Exception):
        """In place of the kill."""

    def die(_name: str) -> None:
        raise KilledError

    factories.prepared(preparer)
    with monkeypatch.context() as patched:
        patched.setattr(fault_points, "reach", die)
        with pytest.raises(KilledError):
            audit_feed.record_events_due()
    assert not Message.objects.exists()
    audit_feed.record_events_due()
    assert notices_of(approver.pk) == ["waits"]


def test_a_new_deployment_tells_nobody_its_history(preparer: User, approver: User) -> None:
    factories.prepared(preparer)
    AuditCursor.objects.update_or_create(pk=1, defaults={"position": ChainHead.objects.get().position})
    assert audit_feed.record_events_due() == 0


def test_without_a_public_address_nothing_is_stored(
    preparer: User, approver: User, settings: Settings
) -> None:
    settings.PUBLIC_URL = ""
    factories.prepared(preparer)
    audit_feed.record_events_due()
    assert not Message.objects.exists()
    assert AuditCursor.objects.get().position == ChainHead.objects.get().position


def test_a_round_ends_after_its_time_and_the_next_continues(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        factories.prepared_to_another_account(preparer)
    monkeypatch.setattr(audit_feed, "ENTRIES_AT_ONCE", 1)
    monkeypatch.setattr(audit_feed, "ROUND_SECONDS", -1.0)
    assert audit_feed.record_events_due() == 0
    monkeypatch.setattr(audit_feed, "ROUND_SECONDS", 5.0)
    assert audit_feed.record_events_due() == 3


@pytest.mark.django_db(transaction=True)
def test_two_sweepers_store_each_message_once(preparer: User, approver: User) -> None:
    for _ in range(20):
        factories.prepared_to_another_account(preparer)
    both = threading.Barrier(2)

    def sweep() -> None:
        both.wait(10)
        audit_feed.record_events_due()
        connections.close_all()

    run_in_threads(sweep)
    audit_feed.record_events_due()
    assert notices_of(approver.pk) == ["waits"] * 20


def run_in_threads(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def test_ten_thousand_entries_become_one_mail_each_person(
    preparer: User, approver: User, mailbox: MailServer
) -> None:
    """They do not hold the sweeper: a round ends in time, and what is due together goes out together."""
    operation = factories.prepared(preparer)
    entry = audit.NewEntry(Action.OPERATION_OUTCOME_UNKNOWN, None, operation)
    with transaction.atomic():
        audit.record_all([entry] * 10_000)
    rounds = 0
    while AuditCursor.objects.values_list("position", flat=True).first() != ChainHead.objects.get().position:
        audit_feed.record_events_due()
        rounds += 1
    assert rounds < 20
    assert Message.objects.filter(group=Group.PROBLEMS, person=approver).count() == 10_000
    delivered = jobs.JOBS["deliver_email_due"]()
    assert delivered == 1000  # 500 for each of the two
    assert sorted(mail["To"] for mail in mailbox.mails) == sorted([approver.email, preparer.email])


@pytest.mark.parametrize("channel", list(Channel))
def test_a_shared_channel_gets_the_groups_that_are_configured(
    preparer: User, settings: Settings, channel: Channel
) -> None:
    settings.NOTIFY_EMAILS, settings.NOTIFY_CHATS = ["ops@company.example"], ["tgram://1:a/2"]
    settings.NOTIFY_WEBHOOKS = ["https://hooks.company.example/"]
    settings.NOTIFY_SHARED_GROUPS, settings.NOTIFY_WEBHOOK_GROUPS = ["payments"], ["waiting", "payments"]
    factories.prepared(preparer)
    pause.pause_payments(actor=preparer, reason="Something is wrong")
    audit_feed.record_events_due()
    found = Message.objects.filter(person=None, channel=channel).order_by("pk")
    notices = list(found.values_list("notice", flat=True))
    assert notices == (["waits", "paused"] if channel == Channel.WEBHOOK else ["paused"])
    assert not any("company" in name for name in found.values_list("shared", flat=True))
