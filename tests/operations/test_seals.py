"""Rows altered or inserted by someone with the whole database but no key: nothing is sent, an incident is raised."""

import base64
import hmac
import io
import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.models import JSONField, Value
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.encryption import SealedRow, SealState
from backoffice.operations import seals
from backoffice.operations.delivery import send
from backoffice.operations.errors import AlteredRecordError
from backoffice.operations.kinds.resume import ResumePayload
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.monitoring import Incident, Pause, current_pause, is_paused
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, RecordFault
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.outcome import confirmation
from backoffice.operations.outcome.confirmation import listing_delay
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.forgeries import alter_content, forge, forge_entry, make_entry_unreadable
from tests.operations.provider_list import shows
from tests.operations.steps import let_pass, show, status_of, text_of
from tests.operations.unknown_outcomes import proposed, record, resolved
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
OLD, NEW = (
    f"{name}:{base64.b64encode(byte * 32).decode()}" for name, byte in (("2025", b"o"), ("2026", b"n"))
)
Alter = Callable[[Operation, User], object]


def rewrite_log(operation: Operation, action: Action, **changes: object) -> None:
    """Change the newest entry of this action."""
    entry = Entry.objects.filter(target_id=str(operation.pk), action=action).latest("position")
    Entry.objects.filter(pk=entry.pk).update(detail={**entry.detail, **changes})


def without_otp(operation: Operation) -> None:
    Release.objects.filter(operation=operation).update(encrypted_otp=None)


# Each alters an operation that one person approved and released. `other` is an approver who did nothing.


def content(operation: Operation, _other: User) -> None:
    alter_content(operation, amount="9000.00")
    without_otp(operation)


def content_and_log(operation: Operation, _other: User) -> None:
    digest = alter_content(operation, amount="9000.00")
    without_otp(operation)
    for action in (Action.OPERATION_PREPARED, Action.OPERATION_APPROVED, Action.OPERATION_RELEASED):
        rewrite_log(operation, action, digest=digest)


def payload_a_number(operation: Operation, _other: User) -> None:
    Operation.objects.filter(pk=operation.pk).update(payload=5)


def payload_null(operation: Operation, _other: User) -> None:
    Operation.objects.filter(pk=operation.pk).update(payload=Value(None, JSONField()))


def policy_lowered(operation: Operation, _other: User) -> None:
    Operation.objects.filter(pk=operation.pk).update(approvals_needed=1)
    rewrite_log(operation, Action.OPERATION_APPROVED, needed=1)


def sentence(operation: Operation, _other: User) -> None:
    Operation.objects.filter(pk=operation.pk).update(sentence="Withdraw NGN 25.00 to a friend")


def expiry(operation: Operation, _other: User) -> None:
    Operation.objects.filter(pk=operation.pk).update(expires_at=timezone.now() + timedelta(days=30))


def seal_removed(operation: Operation, _other: User) -> None:
    Operation.objects.filter(pk=operation.pk).update(seal=None)


def approver(operation: Operation, other: User) -> None:
    Approval.objects.filter(operation=operation).update(approver=other)
    Entry.objects.filter(action=Action.OPERATION_APPROVED).update(actor=other)


def approval_time(operation: Operation, _other: User) -> None:
    Approval.objects.filter(operation=operation).update(approved_at=timezone.now())


def releaser(operation: Operation, other: User) -> None:
    Release.objects.filter(operation=operation).update(released_by=other)
    Entry.objects.filter(action=Action.OPERATION_RELEASED).update(actor=other)


def release_expiry(operation: Operation, _other: User) -> None:
    Release.objects.filter(operation=operation).update(expires_at=timezone.now() + timedelta(days=1))


def release_look_alikes(operation: Operation, _other: User) -> None:
    Release.objects.filter(operation=operation).update(look_alikes=["T-0"])


def release_balance(operation: Operation, _other: User) -> None:
    Release.objects.filter(operation=operation).update(balance=None)


def release_attempt(operation: Operation, _other: User) -> None:
    Release.objects.filter(operation=operation).update(attempt_number=2)


ALTERED: dict[Alter, set[RecordFault]] = {
    content: {
        RecordFault.OPERATION_SEAL,
        RecordFault.APPROVAL_SEAL,
        RecordFault.RELEASE_SEAL,
        RecordFault.LOGGED_PREPARATION,
        RecordFault.LOGGED_APPROVALS,
        RecordFault.LOGGED_RELEASE,
    },
    content_and_log: {RecordFault.OPERATION_SEAL, RecordFault.APPROVAL_SEAL, RecordFault.RELEASE_SEAL},
    payload_a_number: {RecordFault.LOGGED_PREPARATION, RecordFault.UNREADABLE},
    payload_null: {RecordFault.LOGGED_PREPARATION, RecordFault.UNREADABLE},
    sentence: {RecordFault.OPERATION_SEAL},
    expiry: {RecordFault.OPERATION_SEAL},
    seal_removed: {RecordFault.OPERATION_SEAL},
    approver: {RecordFault.APPROVAL_SEAL},
    approval_time: {RecordFault.APPROVAL_SEAL},
    releaser: {RecordFault.RELEASE_SEAL},
    release_expiry: {RecordFault.RELEASE_SEAL},
    release_look_alikes: {RecordFault.RELEASE_SEAL},
    release_balance: {RecordFault.RELEASE_SEAL},
    release_attempt: {RecordFault.RELEASE_SEAL},
}


def preparation_missing(operation: Operation, _other: User) -> None:
    Entry.objects.filter(target_id=str(operation.pk), action=Action.OPERATION_PREPARED).delete()


def approval_missing(operation: Operation, _other: User) -> None:
    Entry.objects.filter(target_id=str(operation.pk), action=Action.OPERATION_APPROVED).delete()


def release_missing(operation: Operation, _other: User) -> None:
    Entry.objects.filter(target_id=str(operation.pk), action=Action.OPERATION_RELEASED).delete()


def prepared_with_another_digest(operation: Operation, _other: User) -> None:
    rewrite_log(operation, Action.OPERATION_PREPARED, digest="0" * 64)


def approved_with_another_digest(operation: Operation, _other: User) -> None:
    rewrite_log(operation, Action.OPERATION_APPROVED, digest="0" * 64)


def released_with_another_digest(operation: Operation, _other: User) -> None:
    rewrite_log(operation, Action.OPERATION_RELEASED, digest="0" * 64)


def prepared_by_another(operation: Operation, other: User) -> None:
    Entry.objects.filter(action=Action.OPERATION_PREPARED).update(actor=other)


def approved_by_another(operation: Operation, other: User) -> None:
    Entry.objects.filter(action=Action.OPERATION_APPROVED).update(actor=other)


def released_by_another(operation: Operation, other: User) -> None:
    Entry.objects.filter(action=Action.OPERATION_RELEASED).update(actor=other)


def claimed_already(operation: Operation, _other: User) -> None:
    """A release that was kept aside and inserted again after it had been used."""
    with transaction.atomic():
        audit.record(Action.OPERATION_CLAIMED, actor=None, target=operation)


def used_up(operation: Operation, _other: User) -> None:
    """The same, with an entry that somebody added, which says that it was released once more."""
    with transaction.atomic():
        audit.record(Action.OPERATION_CLAIMED, actor=None, target=operation)
        releaser = operation.release.released_by
        audit.record(Action.OPERATION_RELEASED, actor=releaser, target=operation, digest=operation.digest)


def cancelled_before(operation: Operation, _other: User) -> None:
    """A cancelled operation that was set back to approved, with the release it had."""
    with transaction.atomic():
        audit.record(Action.OPERATION_CANCELLED, actor=operation.preparer, target=operation)


def entry_without_members(operation: Operation, _other: User) -> None:
    Entry.objects.filter(action=Action.OPERATION_PREPARED).update(detail=["nothing"])


IN_THE_LOG: dict[Alter, RecordFault] = {
    preparation_missing: RecordFault.LOGGED_PREPARATION,
    prepared_with_another_digest: RecordFault.LOGGED_PREPARATION,
    prepared_by_another: RecordFault.LOGGED_PREPARATION,
    entry_without_members: RecordFault.LOGGED_PREPARATION,
    approval_missing: RecordFault.LOGGED_APPROVALS,
    approved_with_another_digest: RecordFault.LOGGED_APPROVALS,
    approved_by_another: RecordFault.LOGGED_APPROVALS,
    release_missing: RecordFault.LOGGED_RELEASE,
    released_with_another_digest: RecordFault.LOGGED_RELEASE,
    released_by_another: RecordFault.LOGGED_RELEASE,
    claimed_already: RecordFault.LOGGED_RELEASE,
    used_up: RecordFault.LOGGED_RELEASE,
    cancelled_before: RecordFault.LOGGED_CLOSING,
}
EVERY = {**ALTERED, **{alter: {fault} for alter, fault in IN_THE_LOG.items()}}


each_alteration = pytest.mark.parametrize("alter", EVERY, ids=lambda alter: alter.__name__)


def assert_stopped(operation: Operation, provider: StubProvider, faults: set[RecordFault]) -> None:
    """Nothing was sent, the release is gone, and an incident says why."""
    assert (provider.posts, Attempt.objects.count(), Release.objects.count()) == ([], 0, 0)
    assert status_of(operation) == Status.APPROVED
    incident = Incident.objects.get(operation=operation)
    assert (incident.kind, set(incident.evidence["faults"])) == (IncidentKind.ALTERED_RECORD, faults)
    assert all(str(fault.label) in dict(incident.facts)["contradiction"] for fault in faults)


@each_alteration
def test_altered_rows_are_not_sent(
    provider: StubProvider, released: Operation, second_approver: User, alter: Alter
) -> None:
    with lifted(connection):
        alter(released, second_approver)
    send.send_operation(released.pk)
    assert_stopped(released, provider, EVERY[alter])
    refused = Entry.objects.get(action=Action.OPERATION_ACTION_REFUSED).detail
    is_unsealed = any(fault.endswith("_seal") for fault in EVERY[alter])
    assert refused["refusal"]["code"] == ("seal_invalid" if is_unsealed else "log_mismatch")


def test_an_operation_whose_entry_cannot_be_read_is_not_sent(
    provider: StubProvider, released: Operation
) -> None:
    approved = Entry.objects.get(target_id=str(released.pk), action=Action.OPERATION_APPROVED)
    make_entry_unreadable(approved)
    send.send_operation(released.pk)
    # On SQLite, Django returns a text that is not JSON as it is.
    is_text = connection.vendor == "sqlite"
    assert_stopped(released, provider, {RecordFault.LOGGED_APPROVALS if is_text else RecordFault.UNREADABLE})


def test_an_operation_whose_entry_cannot_be_read_is_not_approved(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer)
    make_entry_unreadable(Entry.objects.get(target_id=str(operation.pk)))
    with pytest.raises(AlteredRecordError):
        factories.approve(operation, approver)
    assert status_of(operation) == Status.PENDING


@each_alteration
def test_altered_rows_are_found_within_the_minute(
    provider: StubProvider, released: Operation, second_approver: User, alter: Alter
) -> None:
    with lifted(connection):
        alter(released, second_approver)
    found = inspect(full=False).violations["altered_record"]
    assert found == {"count": 1, "references": [released.reference]}
    assert_stopped(released, provider, EVERY[alter])
    inspect(full=False)
    assert Incident.objects.count() == 1


def test_a_lowered_policy_is_not_sent(
    provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    """One approval of two, and then one is declared to be enough."""
    operation = factories.prepared(preparer, amount=Decimal(20_000_000))
    factories.approve(operation, approver)
    with lifted(connection):
        policy_lowered(operation, second_approver)
        Operation.objects.filter(pk=operation.pk).update(status=Status.APPROVED)
    with pytest.raises(AlteredRecordError):
        factories.release(operation, second_approver)
    faults = {RecordFault.OPERATION_SEAL, RecordFault.APPROVAL_SEAL}
    assert_stopped(operation, provider, faults)


def approve_and_release(operation: Operation, approver: User) -> Operation:
    return approvals.approve_and_release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        otp=SecretStr("123456"),
    )


@pytest.mark.parametrize("act", [factories.approve, approve_and_release])
def test_an_altered_operation_is_not_approved(
    preparer: User, approver: User, act: Callable[[Operation, User], Operation]
) -> None:
    operation = factories.prepared(preparer)
    with lifted(connection):
        sentence(operation, approver)
    with pytest.raises(AlteredRecordError, match="a seal is missing or wrong"):
        act(operation, approver)
    assert (status_of(operation), Approval.objects.count()) == (Status.PENDING, 0)
    assert Incident.objects.get().operation == operation


def test_forged_levels_of_an_approved_operation_are_an_incident_at_the_next_approval(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(levels=[{"needed": 0}])
    with pytest.raises(AlteredRecordError):
        factories.approve(operation, second_approver)
    assert Incident.objects.get().operation == operation


def test_a_second_person_does_not_approve_after_a_forged_approval(
    preparer: User, approver: User, second_approver: User
) -> None:
    operation = factories.prepared(preparer, amount=Decimal(20_000_000))
    factories.approve(operation, approver)
    with lifted(connection):
        approval_time(operation, approver)
    with pytest.raises(AlteredRecordError):
        factories.approve(operation, second_approver)
    assert (status_of(operation), Approval.objects.count()) == (Status.PENDING, 1)
    assert Incident.objects.get().evidence == {"faults": [RecordFault.APPROVAL_SEAL]}


def test_a_forged_approval_is_not_released(provider: StubProvider, preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    with lifted(connection):
        approval_time(operation, approver)
    with pytest.raises(AlteredRecordError):
        factories.release(operation, approver)
    assert_stopped(operation, provider, {RecordFault.APPROVAL_SEAL})


def test_a_forged_release_of_a_person_without_the_role_raises_an_incident(
    provider: StubProvider, released: Operation, outsider: User
) -> None:
    """It is refused for another reason, before its seal is verified."""
    Release.objects.update(released_by=outsider)
    send.send_operation(released.pk)
    assert_stopped(released, provider, {RecordFault.RELEASE_SEAL, RecordFault.LOGGED_RELEASE})


@pytest.fixture
def forged(released: Operation, approver: User) -> Operation:
    """Inserted under triggers with all its rows and entries, by people who may, with the seals of another."""
    released.refresh_from_db()
    inserted = forge("withdrawal", factories.payload(amount=9000), released.preparer, approver, like=released)
    Release.objects.filter(operation=released).delete()
    return inserted


def test_an_inserted_operation_is_not_sent(provider: StubProvider, forged: Operation) -> None:
    send.send_operation(forged.pk)
    faults = {RecordFault.OPERATION_SEAL, RecordFault.APPROVAL_SEAL, RecordFault.RELEASE_SEAL}
    assert_stopped(forged, provider, faults)


def test_an_inserted_operation_is_found_within_the_minute(provider: StubProvider, forged: Operation) -> None:
    """Although no other check finds anything."""
    factories.record_rights()
    assert inspect(full=False).violations.keys() == {"altered_record"}
    assert (Incident.objects.get().operation, Release.objects.count()) == (forged, 0)


def test_untouched_rows_are_sent_with_one_more_query(
    provider: StubProvider, released: Operation, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    operation = Operation.objects.get(pk=released.pk)
    approvals, release = list(operation.approvals.all()), Release.objects.get()
    with django_assert_num_queries(1):
        seals.check_record(operation, approvals, release)
    send.send_operation(released.pk)
    assert (len(provider.posts), Incident.objects.count()) == (1, 0)
    assert "altered_record" not in inspect(full=False).violations


def test_many_operations_are_checked_with_three_queries(
    preparer: User, approver: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    made = [factories.approved(preparer, approver) for _ in range(5)]
    factories.release(made[0], approver)
    with django_assert_num_queries(3):
        assert seals.altered_operations([operation.pk for operation in made]) == []


def test_an_incident_is_shown_in_words(
    provider: StubProvider, released: Operation, as_approver: Client
) -> None:
    with lifted(connection):
        seal_removed(released, released.preparer)
    send.send_operation(released.pk)
    incident = Incident.objects.get()
    html = text_of(as_approver.get(incident.get_absolute_url()))
    assert "altered or inserted outside Countersign" in html
    assert "the operation has no valid seal" in html
    assert "a seal is missing or wrong" in text_of(show(as_approver, released))


# What takes effect with its last approval


def test_an_altered_resumption_does_not_end_the_pause(preparer: User, approver: User) -> None:
    current = pause.pause_payments(actor=preparer, reason="Fraud is suspected.")
    resume = resumption(current, preparer)
    with lifted(connection):
        seal_removed(resume, approver)
    with pytest.raises(AlteredRecordError):
        factories.approve(resume, approver)
    assert is_paused()
    assert status_of(resume) == Status.PENDING
    assert Incident.objects.get().operation == resume


def test_an_unreadable_incident_does_not_keep_the_release_of_an_altered_operation(
    released: Operation, preparer: User
) -> None:
    Incident.objects.create(
        operation=released, kind=IncidentKind.ALTERED_RECORD, evidence={"faults": [{}]}, at=timezone.now()
    )
    alter_content(released, amount="9000.00")
    inspect(full=False)
    assert Incident.objects.count() == 2
    assert not Release.objects.exists()


Forge = Callable[[Pause, Operation], object]


def ended_by_a_pending_resumption(current: Pause, resumption: Operation) -> None:
    Pause.objects.filter(pk=current.pk).update(ended_at=timezone.now(), ended_by=resumption)


def ended_by_a_resumption_without_approval(current: Pause, resumption: Operation) -> None:
    ended_by_a_pending_resumption(current, resumption)
    Operation.objects.filter(pk=resumption.pk).update(status=Status.SUCCEEDED, closed_at=timezone.now())


def ended_by_a_forged_approval(current: Pause, resumption: Operation) -> None:
    ended_by_a_resumption_without_approval(current, resumption)
    approver = factories.person("Ngozi Eze", Role.APPROVER)
    names = {"operation": resumption, "approver": approver, "preparer": resumption.preparer}
    Approval.objects.create(**names, digest=resumption.digest, approved_at=timezone.now(), seal="test:00")
    with transaction.atomic():
        detail = {"digest": resumption.digest, "needed": 1, "status": "approved"}
        audit.record(Action.OPERATION_APPROVED, actor=approver, target=resumption, **detail)


def ended_by_the_resumption_of_another_pause(current: Pause, _resumption: Operation) -> None:
    earlier = Pause.objects.exclude(pk=current.pk).get()
    by = earlier.ended_by
    Pause.objects.filter(pk=earlier.pk).delete()
    Pause.objects.filter(pk=current.pk).update(ended_at=timezone.now(), ended_by=by)


def deleted(current: Pause, _resumption: Operation) -> None:
    Pause.objects.filter(pk=current.pk).delete()


def deleted_with_another_entry_of_an_earlier_pause(current: Pause, resumption: Operation) -> None:
    """The chain has no key: anyone who has the database can append to it."""
    earlier = Pause.objects.exclude(pk=current.pk).get()
    with transaction.atomic():
        audit.record(Action.PAYMENTS_PAUSED, actor=current.paused_by, target=earlier, reason="again")
    deleted(current, resumption)


def deleted_with_an_entry_of_no_pause(current: Pause, _resumption: Operation) -> None:
    forge_entry(Action.PAYMENTS_PAUSED, "operations.pause", "x")
    deleted(current, _resumption)


FORGED_ENDS: list[Forge] = [
    ended_by_a_pending_resumption,
    ended_by_a_resumption_without_approval,
    ended_by_a_forged_approval,
    ended_by_the_resumption_of_another_pause,
    deleted,
    deleted_with_another_entry_of_an_earlier_pause,
    deleted_with_an_entry_of_no_pause,
]


def resumption(current: Pause, preparer: User) -> Operation:
    content = ResumePayload(
        pause=current.pk,
        paused_by=str(current.paused_by),
        paused_at=current.paused_at,
        pause_reason=current.reason,
        reason="It was a false alarm.",
    )
    return factories.prepared_of_kind("resume", content, preparer)


def paused_and_resumed(preparer: User, approver: User) -> None:
    current = pause.pause_payments(actor=preparer, reason="Fraud is suspected.")
    factories.approve(resumption(current, preparer), approver)


@pytest.fixture
def paused(released: Operation) -> Pause:
    """The second pause, while an operation is released."""
    paused_and_resumed(released.preparer, released.approvals.get().approver)
    return pause.pause_payments(actor=released.preparer, reason="Fraud is suspected again.")


@pytest.mark.parametrize("forge_end", FORGED_ENDS, ids=lambda forge_end: forge_end.__name__)
@pytest.mark.parametrize(
    "notice", [send.send_operation, lambda _pk: inspect(full=False)], ids=["send", "inspect"]
)
def test_a_pause_that_was_ended_in_the_database_begins_again(
    provider: StubProvider,
    released: Operation,
    paused: Pause,
    forge_end: Forge,
    notice: Callable[..., object],
) -> None:
    proposal = resumption(paused, released.preparer)
    with lifted(connection):
        forge_end(paused, proposal)
    assert not is_paused()
    for _ in range(2):
        notice(released.pk)
    assert provider.posts == []
    incident = Incident.objects.get(kind=IncidentKind.ALTERED_PAUSE)
    assert incident.pause == current_pause()
    named = "x" if forge_end is deleted_with_an_entry_of_no_pause else str(paused.pk)
    assert dict(incident.facts)["pause"] == named


def test_a_pause_that_was_ended_just_before_the_claim_stops_it(
    provider: StubProvider, released: Operation, paused: Pause
) -> None:
    proposal = resumption(paused, released.preparer)
    with lifted(connection):
        ended_by_a_pending_resumption(paused, proposal)
    release = Release.objects.select_related("operation").get()
    assert send.claim_operation(released.pk, send.preflight_read(release)) is None


def test_payments_go_on_after_two_people_resumed_the_new_pause(
    provider: StubProvider, released: Operation, paused: Pause, preparer: User, approver: User
) -> None:
    with lifted(connection):
        deleted(paused, released)
    assert pause.pause_if_altered()
    current = current_pause()
    assert current
    factories.approve(resumption(current, preparer), approver)
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


def test_payments_go_on_after_two_people_resumed(
    provider: StubProvider, released: Operation, preparer: User, approver: User
) -> None:
    paused_and_resumed(preparer, approver)
    inspect(full=False)
    send.send_operation(released.pk)
    assert (len(provider.posts), Incident.objects.count()) == (1, 0)


def test_an_altered_resolution_closes_nothing(
    provider: StubProvider, review: Operation, preparer: User, approver: User
) -> None:
    resolution = proposed(review, preparer, "not_executed")
    alter_content(resolution, reason="It was sent twice.")
    resolution.refresh_from_db()
    with pytest.raises(AlteredRecordError):
        factories.approve(resolution, approver)
    assert status_of(review) == Status.REVIEW
    assert Incident.objects.get().kind == IncidentKind.ALTERED_RECORD


# What was sent before there were seals


def without_seals(operation: Operation) -> None:
    with lifted(connection):
        for rows in (Operation.objects.filter(pk=operation.pk), operation.approvals.all()):
            rows.update(seal=None)


def test_an_unknown_operation_without_seals_is_closed_by_matching(
    provider: StubProvider, unknown: Operation
) -> None:
    without_seals(unknown)
    inspect(full=False)
    shows(provider, record("T-1"))
    let_pass(listing_delay())
    confirmation.confirm_operation(unknown.pk)
    assert status_of(unknown) == Status.SUCCEEDED
    assert "altered_record" not in inspect(full=False).violations
    assert len(provider.posts) == 1


def test_an_operation_without_seals_is_closed_by_a_resolution(
    provider: StubProvider, review: Operation, preparer: User, approver: User
) -> None:
    without_seals(review)
    inspect(full=False)
    resolved(review, preparer, approver, "not_executed")
    assert status_of(review) == Status.FAILED
    assert len(provider.posts) == 1


# Keys


def rows_of(operation: Operation) -> list[SealedRow]:
    return [
        Operation.objects.get(pk=operation.pk),
        Approval.objects.get(operation=operation),
        Release.objects.get(operation=operation),
    ]


@pytest.fixture
def sealed_with_the_old_key(settings: Settings, request: pytest.FixtureRequest) -> Operation:
    settings.ENCRYPTION_KEYS = [OLD]
    released: Operation = request.getfixturevalue("released")
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    return released


def run_command() -> str:
    out = io.StringIO()
    call_command("reencrypt_secrets", stdout=out)
    return out.getvalue()


def test_seals_are_renewed_with_the_newest_key(
    settings: Settings, sealed_with_the_old_key: Operation
) -> None:
    assert "Renewed 7 seals with the key 2026" in run_command()  # with those of two accounts
    assert "Renewed 0 seals" in run_command()
    settings.ENCRYPTION_KEYS = [NEW]
    rows = rows_of(sealed_with_the_old_key)
    assert [row.seal_state() for row in rows] == [SealState.VALID] * 3
    assert all((row.seal or "").startswith("2026:") for row in rows)


def test_a_seal_of_an_altered_row_is_not_renewed(
    settings: Settings, sealed_with_the_old_key: Operation
) -> None:
    with lifted(connection):
        sentence(sealed_with_the_old_key, sealed_with_the_old_key.preparer)
    with pytest.raises(CommandError, match=sealed_with_the_old_key.reference):
        run_command()
    states = [row.seal_state() for row in rows_of(sealed_with_the_old_key)]
    assert states == [SealState.WRONG, SealState.VALID, SealState.VALID]


def test_a_seal_whose_key_is_gone_stops_the_operation(
    provider: StubProvider, settings: Settings, sealed_with_the_old_key: Operation
) -> None:
    without_otp(sealed_with_the_old_key)
    settings.ENCRYPTION_KEYS = [NEW]
    send.send_operation(sealed_with_the_old_key.pk)
    assert_stopped(sealed_with_the_old_key, provider, {RecordFault.SEAL_KEY_UNKNOWN})


def test_a_seal_is_made_with_a_derived_key(settings: Settings, released: Operation) -> None:
    """Not with the key that encrypts."""
    row = rows_of(released)[0]
    key_id, _, encoded = settings.ENCRYPTION_KEYS[0].partition(":")
    content = json.dumps(row.sealed_content(), sort_keys=True, separators=(",", ":"))
    with_the_key_itself = hmac.digest(base64.b64decode(encoded), content.encode(), "sha256").hex()
    assert row.seal_state() == SealState.VALID
    assert row.seal != f"{key_id}:{with_the_key_itself}"
