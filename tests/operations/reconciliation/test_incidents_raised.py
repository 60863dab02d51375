"""What people have to check becomes an incident, once, and stays one until it is acknowledged."""

import re
import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger.models import Transaction
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.incidents import acknowledge_incident
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.models.reconciliation import Comparison, ReconciliationResult, ReconciliationState
from backoffice.operations.monitoring.metrics import render_metrics
from backoffice.operations.reconciliation import runner, selectors
from backoffice.operations.reconciliation.rules import compare_attempt
from backoffice.operations.reconciliation.runner import reconcile
from tests import factories
from tests.operations.reconciliation.steps import listed, long_since, read_until, reported_again, sent
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db


def test_an_unrecognised_transaction_raises_one_incident_while_unchanged(
    unknown_movement: Transaction, approver: User
) -> None:
    incident = Incident.objects.get()
    assert (incident.subject, incident.kind) == (unknown_movement, IncidentKind.UNRECOGNISED)
    assert ("amount", "NGN 250,000.00") in incident.facts
    reported_again(unknown_movement, fee=Decimal(75), counterparty="Somebody else")
    reconcile()
    acknowledge_incident(incident.pk, actor=approver, note="The shop's own integration")
    reported_again(unknown_movement, occurred_at=timezone.now())
    ReconciliationState.objects.all().delete()
    reconcile()
    assert Incident.objects.get().is_open is False


@pytest.mark.parametrize(
    ("noted", "since"),
    [
        ({"amount": Decimal(1)}, {"amount": Decimal(5_000_000)}),
        ({"currency": "NGN"}, {"currency": "USD"}),
        ({"status": "failed"}, {"status": "fulfilled"}),
    ],
)
def test_a_transaction_changed_since_its_incident_raises_another_once(
    matched: Attempt, approver: User, as_auditor: Client, noted: dict[str, Any], since: dict[str, Any]
) -> None:
    row = listed("X-1", **noted)
    reconcile()
    first = Incident.objects.get()
    acknowledge_incident(first.pk, actor=approver, note="It is nothing")
    for values in (since, noted, since):
        reported_again(row, **values)
        reconcile()
    ReconciliationState.objects.all().delete()
    reconcile()
    further = Incident.objects.get(further_to=first)
    assert (further.subject, further.is_open, Incident.objects.count()) == (row, True, 2)
    cache.clear()
    assert selectors.cached_unrecognised_count() == 1
    assert "View incident" in text_of(as_auditor.get("/reconciliation/"))
    shown = text_of(as_auditor.get(f"/transactions/{row.pk}/"))
    assert "further evidence" in shown
    assert "It is nothing" in shown


def test_an_unrecognised_transaction_that_completes_raises_no_second_incident(matched: Attempt) -> None:
    row = listed("X-1", status="processing")
    reconcile()
    reported_again(row, status="fulfilled")
    reconcile()
    assert Incident.objects.get().evidence["status"] == "processing"


def test_two_incidents_of_one_transaction_are_counted_once(matched: Attempt) -> None:
    row = listed("X-1")
    reconcile()
    reported_again(row, amount=Decimal(3))
    reconcile()
    assert (Incident.objects.count(), selectors.unrecognised_count()) == (2, 1)


def test_an_acknowledgement_is_audited_with_its_actor(unknown_movement: Transaction, approver: User) -> None:
    acknowledge_incident(Incident.objects.get().pk, actor=approver, note="The shop's own integration")
    entries = Entry.objects.filter(target_type="ledger.transaction", target_id=str(unknown_movement.pk))
    raised, noted = entries.order_by("position")
    assert (raised.action, noted.action) == (Action.INCIDENT_RAISED, Action.INCIDENT_ACKNOWLEDGED)
    assert (noted.actor_id, noted.detail["note"]) == (approver.pk, "The shop's own integration")
    assert noted.target_url == f"/transactions/{unknown_movement.pk}/"


def test_matched_and_pending_transactions_raise_no_incident(matched: Attempt, preparer: User) -> None:
    sent(preparer, "T-9", outcome="open", closed_at=None)
    reconcile()
    assert set(Comparison.objects.values_list("result", flat=True)) == {
        ReconciliationResult.MATCHED,
        ReconciliationResult.PENDING,
    }
    assert not Incident.objects.exists()


def test_a_mismatched_or_missing_record_raises_an_incident_of_the_operation(preparer: User) -> None:
    different, missing = sent(preparer, "T-1"), sent(preparer, "T-2")
    listed("T-1", amount=Decimal(1))
    read_until(long_since())
    for _ in range(3):
        ReconciliationState.objects.all().delete()
        reconcile()
    raised = {(one.operation, one.kind) for one in Incident.objects.all()}
    assert raised == {
        (different.operation, IncidentKind.RECORD_MISMATCH),
        (missing.operation, IncidentKind.NOT_LISTED),
    }
    assert Incident.objects.count() == 2
    facts = Incident.objects.get(operation=different.operation).facts
    assert ("differences", "amount 249,999.00 lower at the provider") in facts


@pytest.mark.parametrize(
    ("outcome", "reported", "whats"),
    [
        ("succeeded", {"amount": Decimal(1)}, {IncidentKind.RECORD_MISMATCH}),
        ("succeeded", {"currency": "USD"}, {IncidentKind.RECORD_MISMATCH}),
        ("succeeded", {"fee": Decimal(75)}, {IncidentKind.FEE_MISMATCH}),
        ("succeeded", {"status": "failed"}, {IncidentKind.NOW_FAILED}),
        ("failed", {"status": "fulfilled"}, {IncidentKind.NOW_EXECUTED}),
        ("succeeded", {"status": "reversed"}, {IncidentKind.OUTCOME_MISMATCH}),
        (
            "succeeded",
            {"status": "failed", "fee": None},
            {IncidentKind.NOW_FAILED, IncidentKind.FEE_MISMATCH},
        ),
        ("succeeded", {"missing_since": timezone.now()}, {IncidentKind.NOT_LISTED}),
    ],
)
def test_an_incident_says_what_contradicts_the_record(
    preparer: User, outcome: str, reported: dict[str, Any], whats: set[str]
) -> None:
    sent(preparer, outcome=outcome)
    listed(**reported)
    read_until(long_since())
    reconcile()
    assert set(Incident.objects.values_list("kind", flat=True)) == whats


def test_an_incident_not_raised_yet_is_raised_in_the_next_round(matched: Attempt) -> None:
    row = listed("X-1")
    reconcile()
    Incident.objects.all().delete()
    Comparison.objects.filter(transaction=row).update(needs_incident=True)  # as if killed in between
    reconcile()
    reconcile()
    assert Incident.objects.get().subject == row


def test_incidents_that_cannot_be_raised_do_not_stop_the_others(
    matched: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "BATCH_SIZE", 2)
    monkeypatch.setattr(runner, "TIME_BUDGET_SECONDS", 20.0)
    rows = [listed(f"X-{number}") for number in range(6)]
    refused = {row.pk for row in rows[:4]}

    def refuses(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith('INSERT INTO "operations_incident"') and refused & {*params}:
            raise IntegrityError
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuses):
        reconcile()
    assert {one.subject for one in Incident.objects.all()} == {*rows[4:]}
    assert Comparison.objects.filter(needs_incident=True).count() == 4


def test_the_database_allows_one_incident_per_transaction_and_evidence(
    unknown_movement: Transaction, operation: Operation
) -> None:
    kind = IncidentKind.UNRECOGNISED
    for twin in (
        Incident(transaction=unknown_movement, kind=kind, evidence={}, at=timezone.now()),
        Incident(
            transaction=listed("X-2"),
            operation=operation,
            kind=IncidentKind.UNRECOGNISED,
            evidence={},
            at=timezone.now(),
        ),
        Incident(kind=kind, evidence={}, at=timezone.now()),
    ):
        with pytest.raises(IntegrityError), transaction.atomic():
            twin.save()


@pytest.mark.django_db(transaction=True)
def test_concurrent_rounds_raise_an_incident_once(matched: Attempt) -> None:
    for number in range(20):
        listed(f"X-{number}")
    threads = [threading.Thread(target=_compare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reconcile()
    assert Incident.objects.count() == 20
    assert Entry.objects.filter(action=Action.INCIDENT_RAISED).count() == 20


def _compare() -> None:
    try:
        reconcile()
    finally:
        connection.close()


def test_every_page_counts_incidents_until_acknowledged(
    unknown_movement: Transaction, as_auditor: Client, approver: User
) -> None:
    cache.clear()
    assert '<span class="count" aria-label="1 needs attention">1</span>' in text_of(
        as_auditor.get("/reports/")
    )
    shown = text_of(as_auditor.get("/"))
    assert "Including 1 unrecognised transaction<" in shown
    assert "Including 1 unrecognised transaction" in shown
    acknowledge_incident(Incident.objects.get().pk, actor=approver, note="The shop's own integration")
    cache.clear()
    assert "needs attention" not in text_of(as_auditor.get("/reports/"))
    assert "unrecognised transaction" not in text_of(as_auditor.get("/"))


def test_the_overview_separates_transactions_from_other_incidents(
    unknown_movement: Transaction, matched: Attempt, as_auditor: Client
) -> None:
    incidents.raise_incident(
        matched.operation, kind=IncidentKind.SECOND_DEBIT, evidence={"transaction": "T-1"}
    )
    cache.clear()
    shown = text_of(as_auditor.get("/"))
    assert "2 open incidents<" in shown
    assert "Including 1 unrecognised transaction" in shown


def test_an_approver_acknowledges_an_incident_on_its_page(
    unknown_movement: Transaction, as_approver: Client
) -> None:
    incident = Incident.objects.get()
    shown = text_of(as_approver.get(incident.get_absolute_url()))
    assert f'href="/transactions/{unknown_movement.pk}/"' in shown
    assert "&lt;b&gt;Somebody&lt;/b&gt;" in shown
    answer = as_approver.post(incident.get_absolute_url(), {"note": "The shop's own integration"})
    assert answer.status_code == 302
    assert "X-1" in text_of(as_approver.get("/reconciliation/incidents/"))
    shown = text_of(as_approver.get(f"/transactions/{unknown_movement.pk}/"))
    assert "The shop&#x27;s own integration" in shown


def test_metrics_count_incidents(unknown_movement: Transaction) -> None:
    metrics = render_metrics().decode()
    assert 'countersign_reconciliation{result="matched"} 1.0' in metrics
    assert 'countersign_reconciliation{result="unrecognised"} 1.0' in metrics
    assert "countersign_unrecognised_transactions_open 1.0" in metrics
    assert re.search(r"^countersign_reconciliation_age_seconds \d+\.", metrics, re.MULTILINE)


def test_an_incomparable_row_is_reported_and_does_not_stop_the_others(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty, other = sent(preparer), sent(preparer, "T-2")
    listed()
    listed("T-2")
    unclaimed = listed("T-3")

    def compare(attempt: Attempt, *rest: Any) -> Any:
        if attempt == faulty:
            raise OverflowError("date value out of range")
        return compare_attempt(attempt, *rest)

    def compare_other(row: Transaction, *_: Any) -> Any:
        raise OverflowError("date value out of range")

    monkeypatch.setattr(runner, "compare_attempt", compare)
    monkeypatch.setattr(runner, "compare_transaction", compare_other)
    reconcile()
    assert Comparison.objects.get(attempt=faulty).differences == [{"code": "not_comparable"}]
    assert Comparison.objects.get(attempt=other).result == ReconciliationResult.MATCHED
    assert Comparison.objects.get(transaction=unclaimed).result == ReconciliationResult.UNRECOGNISED
    about = {(incident.kind, incident.operation, incident.transaction) for incident in Incident.objects.all()}
    assert about == {
        (IncidentKind.RECORD_MISMATCH, faulty.operation, None),
        (IncidentKind.UNRECOGNISED, None, unclaimed),
    }
    monkeypatch.undo()
    ReconciliationState.objects.update(full_pass_begun_at=timezone.now() - timedelta(days=2))
    reconcile()
    assert Comparison.objects.get(attempt=faulty).result == ReconciliationResult.MATCHED


def test_findings_are_reported_even_if_the_round_fails(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.prepared(preparer)
    unclaimed = listed("X-9")
    monkeypatch.setattr(runner, "raise_incidents", lambda *_, **__: None)
    reconcile()
    assert not Incident.objects.exists()
    monkeypatch.undo()

    def fail() -> bool:
        raise IntegrityError("as a defect would")

    monkeypatch.setattr(runner, "_step", fail)
    with pytest.raises(IntegrityError):
        reconcile()
    assert Incident.objects.get().transaction == unclaimed
