"""The incident of a restored database: what the journal and the provider have and the database does not."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.ledger.models import Mirror
from backoffice.operations.lifecycle import incidents, pause
from backoffice.operations.models.monitoring import Incident, Pause
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind, LostAttemptState, PauseCause
from backoffice.operations.models.reconciliation import Comparison, ReconciliationResult, ReconciliationState
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.reconciliation.steps import listed
from tests.operations.steps import put, text_of

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]


@pytest.fixture
def incident(operation: Operation) -> Incident:
    """Raised now; the operation that it is about was prepared before the lost time."""
    return factories.incident_of_restore()


def show(client: Client, incident: Incident) -> str:
    return text_of(client.get(incident.get_absolute_url()))


def closed(operation: Operation, outcome: Outcome, **changes: Any) -> Attempt:
    return factories.attempt(operation, outcome=outcome, closed_at=timezone.now(), **changes)


@pytest.mark.parametrize(
    ("attempt", "outcome", "state"),
    [
        (None, Outcome.OPEN, LostAttemptState.NOT_COMPARED),
        (None, Outcome.SUCCEEDED, LostAttemptState.NOT_COMPARED),
        (None, Outcome.NOT_SENT, LostAttemptState.NOT_EXECUTED),
        (None, Outcome.OTP_REJECTED, LostAttemptState.NOT_EXECUTED),
        (factories.attempt, Outcome.OPEN, LostAttemptState.RECREATED),
        (lambda one: closed(one, Outcome.SUCCEEDED), Outcome.OPEN, LostAttemptState.MATCHED),
        (lambda one: closed(one, Outcome.FAILED), Outcome.OPEN, LostAttemptState.MATCHED),
        (lambda one: closed(one, Outcome.NOT_SENT), Outcome.OPEN, LostAttemptState.NOT_EXECUTED),
        (lambda one: closed(one, Outcome.FAILED, resolution=one), Outcome.OPEN, LostAttemptState.RESOLVED),
    ],
)
def test_each_lost_attempt_has_its_state(
    as_approver: Client,
    incident: Incident,
    operation: Operation,
    attempt: Callable[[Operation], Attempt] | None,
    outcome: Outcome,
    state: LostAttemptState,
) -> None:
    recreated = attempt(operation) if attempt else None
    assert factories.lost_attempt(incident, operation, outcome=outcome, attempt=recreated).state == state
    shown = show(as_approver, incident)
    assert f">{state.label}</span>" in shown
    assert f'href="{operation.get_absolute_url()}"' in shown


def test_a_lost_operation_is_named_by_its_reference(as_approver: Client, incident: Incident) -> None:
    gone = Operation(reference="W-GONE42")
    assert factories.lost_attempt(incident, gone).state == LostAttemptState.OPERATION_MISSING
    shown = show(as_approver, incident)
    assert "W-GONE42" in shown
    assert gone.get_absolute_url() not in shown
    assert "Operation missing" in shown
    assert "250,000.00" in shown


@pytest.mark.parametrize(
    ("status", "next_step"),
    [
        (Status.PENDING, "Approve the operation to have it closed by matching. It is not sent."),
        (
            Status.APPROVED,
            "The record of this attempt will be recreated automatically. Records are recreated one at a time for each",
        ),
        (Status.CANCELLED, "The operation is closed (Cancelled). Find its transaction at the provider"),
    ],
)
def test_what_is_to_be_done_depends_on_the_operation(
    as_approver: Client, incident: Incident, operation: Operation, status: Status, next_step: str
) -> None:
    factories.lost_attempt(incident, operation)
    if status != Status.PENDING:
        put(operation, status)
    assert next_step in show(as_approver, incident)


def test_an_attempt_that_an_earlier_incident_has_is_listed_too(
    as_approver: Client, incident: Incident, operation: Operation
) -> None:
    earlier = factories.lost_attempt(incident, operation)
    assert incident.pause
    named = {"reference": operation.reference, "started_at": earlier.started_at.isoformat()}
    further = incidents.raise_for_pause(incident.pause, evidence={"lost": [named], "lost_count": 1})
    assert operation.get_absolute_url() in show(as_approver, further)


def raised_after(incident: Incident, hours: int) -> datetime:
    """As if the incident had been raised this much later."""
    incident.at += timedelta(hours=hours)
    Incident.objects.update(at=incident.at)
    Pause.objects.update(paused_at=incident.at)
    return incident.at


def test_the_link_to_reconciliation_begins_on_the_day_in_utc(
    as_approver: Client, approver: User, incident: Incident, operation: Operation
) -> None:
    """Comparisons are filtered by days in UTC, whatever day it is where the reader is."""
    User.objects.filter(pk=approver.pk).update(time_zone="Asia/Tokyo")
    begun = (incident.at - timedelta(days=2)).replace(hour=22, minute=30)
    factories.lost_attempt(incident, operation, started_at=begun)
    assert f'?result=unmatched&amp;since={begun:%Y-%m-%d}"' in show(as_approver, incident)


def test_transactions_since_the_oldest_lost_attempt_that_belong_to_no_attempt_are_listed(
    as_approver: Client, incident: Incident, operation: Operation
) -> None:
    prepared = incident.at
    begun, raised = prepared - timedelta(minutes=2), raised_after(incident, 2)
    closed(operation, Outcome.SUCCEEDED, provider_transaction_id="T-OURS", balance="NGN")
    factories.lost_attempt(incident, operation, started_at=begun)
    within = [listed("X-1", occurred_at=prepared), listed("X-2", occurred_at=raised + timedelta(minutes=1))]
    before = listed("X-BEFORE", occurred_at=begun - timedelta(minutes=6))
    others = [
        before,
        listed("T-OURS", occurred_at=raised),
        listed("X-RECEIVED", occurred_at=raised, direction="in"),
        listed("X-LATER", occurred_at=raised + timedelta(hours=2)),
    ]
    reconcile()
    values = {"day": before.occurred_at.date(), "currency": "NGN", "amount": before.amount}
    Comparison.objects.create(
        transaction=before,
        result=ReconciliationResult.UNRECOGNISED,
        occurred_at=before.occurred_at,
        **values,
    )
    shown = show(as_approver, incident)
    assert all(f'href="/transactions/{one.pk}/"' in shown for one in within)
    assert not any(f'href="/transactions/{one.pk}/"' in shown for one in others)


def test_without_a_lost_attempt_they_are_listed_since_the_end_of_the_restored_log(
    as_approver: Client, incident: Incident
) -> None:
    end_of_log = incident.at
    raised_after(incident, 2)
    within = listed("X-1", occurred_at=end_of_log + timedelta(minutes=1))
    reconcile()
    shown = show(as_approver, incident)
    assert "None found in this journal." in shown
    assert f'href="/transactions/{within.pk}/"' in shown


@pytest.mark.parametrize(
    ("compared", "note"),
    [
        (None, "The provider's list has not been compared yet."),
        (-timedelta(minutes=1), "The provider's list was last compared before this incident"),
        (timedelta(minutes=1), ""),
    ],
)
def test_the_page_says_whether_the_providers_list_was_compared_since(
    as_approver: Client, incident: Incident, compared: timedelta | None, note: str
) -> None:
    if compared is not None:
        moment = incident.at + compared
        Mirror.objects.update_or_create(pk=1, defaults={"as_of": moment, "loaded_at": moment})
        ReconciliationState.objects.update_or_create(pk=1, defaults={"mirror_as_of": moment})
    shown = show(as_approver, incident)
    assert note in shown
    assert ("What follows may be incomplete." in shown) == bool(note)


def test_the_subject_of_the_incident_is_the_pause(
    as_approver: Client, sign_in: SignIn, auditor: User, incident: Incident, operation: Operation
) -> None:
    address, as_auditor = "/reconciliation/incidents/", sign_in(Client(), auditor)
    shown = text_of(as_approver.get(address))
    assert '<a href="/operations/pause/">Payments paused</a>' in shown
    assert "Discrepancies" not in shown
    assert "/operations/pause/" not in text_of(as_auditor.get(address))
    assert "Payments paused" in text_of(as_auditor.get(incident.get_absolute_url()))
    Pause.objects.update(ended_at=timezone.now(), ended_by=operation)
    ended = f'<a href="{operation.get_absolute_url()}">Payments paused, then resumed</a>'
    assert ended in text_of(as_auditor.get(address))


def test_other_incidents_list_no_lost_commits(as_approver: Client, operation: Operation) -> None:
    found = incidents.raise_for_transaction(listed("X-1"), evidence={"transaction": "X-1"})
    shown = show(as_approver, found)
    assert "journal" not in shown


def test_an_altered_pause_names_the_runbook_and_lists_no_lost_commits(as_approver: Client) -> None:
    found = pause.pause_because_of(PauseCause.ALTERED_PAUSE)
    incident = incidents.raise_for_pause(found, evidence={"pause": "7"}, kind=IncidentKind.ALTERED_PAUSE)
    shown = show(as_approver, incident)
    assert "Find out who changed the database." in shown
    assert "journal" not in shown


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (
            Outcome.OPEN,
            "The database contains no attempt, but according to the journal of sent requests the operation may "
            "have been sent.",
        ),
        (Outcome.NOT_SENT, "Nothing was sent. It can be sent after it is approved."),
    ],
)
def test_the_operation_page_does_not_deny_what_the_journal_has(
    as_approver: Client, incident: Incident, operation: Operation, outcome: Outcome, text: str
) -> None:
    lost = factories.lost_attempt(incident, operation, outcome=outcome)
    shown = text_of(as_approver.get(operation.get_absolute_url()))
    assert text in shown
    assert f"<b>{lost.state.label}.</b>" in shown
    assert f'<a href="{incident.get_absolute_url()}">View incident</a>' in shown


@pytest.mark.parametrize("outcome", [Outcome.OPEN, Outcome.SUCCEEDED, Outcome.NOT_SENT])
@pytest.mark.parametrize("is_paused", [True, False], ids=["paused", "resumed"])
def test_an_operation_that_may_have_been_sent_is_never_offered_for_sending(
    as_approver: Client,
    incident: Incident,
    preparer: User,
    approver: User,
    is_paused: bool,
    outcome: Outcome,
) -> None:
    operation = factories.approved(preparer, approver)
    factories.lost_attempt(incident, operation, outcome=outcome)
    if not is_paused:
        Pause.objects.update(ended_at=timezone.now(), ended_by=operation)
    pause.clear_pause_cache()
    shown = text_of(as_approver.get(operation.get_absolute_url()))
    may_be_sent = outcome == Outcome.NOT_SENT
    assert ("Possibly sent before the database was restored" in shown) != may_be_sent
    assert ("Do not pay again. Countersign checks the provider&#x27;s records" in shown) != may_be_sent
    assert (">Send<" in shown) == (may_be_sent and not is_paused)
    assert ("Ready to send" in shown) == (may_be_sent and not is_paused)
    assert ("This operation can be sent after that." in shown) == (may_be_sent and is_paused)


def test_a_lost_permission_does_not_hide_that_an_operation_may_have_been_sent(
    as_approver: Client, incident: Incident, preparer: User, approver: User, operation: Operation
) -> None:
    approved = factories.approved(preparer, approver, amount=Decimal(7))
    for one in (approved, operation):
        factories.lost_attempt(incident, one)
    staff.set_roles(preparer.pk, roles=[], actor=None)
    for one in (approved, operation):
        shown = text_of(as_approver.get(one.get_absolute_url()))
        assert "Do not pay again" in shown
        assert "cancel it and prepare it again" not in shown


def test_a_closed_operation_that_may_have_been_sent_says_so(
    as_approver: Client, incident: Incident, operation: Operation
) -> None:
    factories.lost_attempt(incident, operation)
    put(operation, Status.CANCELLED)
    shown = text_of(as_approver.get(operation.get_absolute_url()))
    assert "This operation may have been sent before the database was restored. Do not pay again" in shown


def test_only_an_approval_is_offered_for_what_may_have_been_sent(
    as_approver: Client, incident: Incident, operation: Operation
) -> None:
    factories.lost_attempt(incident, operation)
    Pause.objects.update(ended_at=timezone.now(), ended_by=operation)
    pause.clear_pause_cache()
    shown = text_of(as_approver.get(operation.get_absolute_url()))
    assert ">Approve<" in shown
    assert "Approve and send" not in shown


def test_the_pause_of_a_restored_database_links_to_the_incidents(
    as_approver: Client, incident: Incident
) -> None:
    pause.clear_pause_cache()
    link = '<a href="/reconciliation/incidents/">View incidents</a>'
    assert link in text_of(as_approver.get("/"))
    Pause.objects.update(cause="", paused_by=User.objects.first(), reason="Maintenance")
    pause.clear_pause_cache()
    assert link not in text_of(as_approver.get("/"))
