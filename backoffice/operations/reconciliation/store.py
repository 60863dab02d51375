"""Write comparisons, keep the daily sums equal to them at every commit, and raise incidents."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date

from django.db import transaction
from django.db.models import JSONField

from backoffice.core.fields import EXACT, normalized_text
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.ledger.mirror.totals import ExactSum
from backoffice.ledger.models import Transaction
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.evidence import listed_transaction, recorded_outcome
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import Difference, DifferenceCode, IncidentKind
from backoffice.operations.models.reconciliation import (
    ALARMING,
    Comparison,
    ReconciliationResult,
    ReconciliationTotal,
)
from backoffice.operations.reconciliation.rules import ComparisonResult
from backoffice.operations.states import Outcome

# The incident kinds of opposite outcomes: local status, status at the provider.
_OPPOSITE_OUTCOMES = {
    ("fulfilled", "failed"): IncidentKind.NOW_FAILED,
    ("failed", "fulfilled"): IncidentKind.NOW_EXECUTED,
}

Compared = tuple[Attempt | None, Transaction | None, ComparisonResult | None]
ComparisonKey = tuple[str, int]
TotalKey = tuple[date, str, str]
_STORED_FIELDS = ("result", "occurred_at", "day", "currency", "amount", "fee", "differences", "resembles")


def attempt_json(prefix: str = "") -> list[str]:
    """The columns of an attempt and its operation, joined, that hold JSON; `prefix` leads to the attempt."""
    columns = [(prefix, Attempt), (f"{prefix}operation__", Operation)]
    return [
        f"{path}{column.name}"
        for path, model in columns
        for column in model._meta.concrete_fields
        if isinstance(column, JSONField)
    ]


def store_comparisons(stored: Iterable[Comparison], compared: Iterable[Compared]) -> None:
    """Replace the stored comparisons `stored` by the results `compared`; unchanged rows are not written.

    Runs in the caller's transaction, which holds the lock. Incidents are raised afterwards
    (`raise_incidents`): each writes to the audit log, and locking rows after an audit entry can deadlock with
    a caller that waits for the log.
    """
    before = {_key(row.attempt_id, row.transaction_id): row for row in stored}
    after = {}
    for attempt, listed, result in compared:
        if result is not None:
            row = _row(attempt, listed, result)
            after[_key(row.attempt_id, row.transaction_id)] = row
    obsolete = [row for key, row in before.items() if key not in after]
    changed = [(before.get(key), row) for key, row in after.items() if _differs(before.get(key), row)]
    sums: dict[TotalKey, ExactSum] = defaultdict(ExactSum)
    for row in obsolete:
        sums[_total_key(row)].subtract(row.amount, row.fee)
    # Deletions first: an unrecognised transaction may belong to an attempt by now.
    Comparison.objects.filter(pk__in=[row.pk for row in obsolete]).delete()
    _detach_transactions(old for old, row in changed if old and old.transaction_id != row.transaction_id)
    for old, row in changed:
        sums[_total_key(row)].add(row.amount, row.fee)
        row.needs_incident = row.result in ALARMING or bool(row.resembles)
        if old is not None:
            sums[_total_key(old)].subtract(old.amount, old.fee)
            row.pk = old.pk
            row.save(force_update=True)
    Comparison.objects.bulk_create(row for old, row in changed if old is None)
    _add_to_totals(sums)


def raise_incidents(at_most: int, *, after: int) -> int | None:
    """Raise an incident for each flagged comparison; returns where to continue, None at the end.

    Each in its own transaction, with the comparison's current values, by whichever process clears the flag
    first. Duplicates are not raised (`lifecycle.incidents`), and a failure of one does not affect the others.
    """
    found = Comparison.objects.filter(needs_incident=True, pk__gt=after).order_by("pk")
    pks = list(found.values_list("pk", flat=True)[:at_most])
    run_each_isolated(
        _raise_incident_once, {pk: f"Raising the incident of comparison {pk}" for pk in pks}, failed=ignore
    )
    return pks[-1] if len(pks) == at_most else None


@transaction.atomic
def _raise_incident_once(pk: int) -> None:
    if Comparison.objects.filter(pk=pk, needs_incident=True).update(needs_incident=False):
        # Without JSON of the attempt, which no incident needs: it may be what cannot be read.
        found = Comparison.objects.select_related("attempt__operation", "transaction")
        _raise_incident(found.defer(*attempt_json("attempt__")).get(pk=pk))


def _key(attempt_id: int | None, transaction_id: int | None) -> ComparisonKey:
    return ("transaction", transaction_id or 0) if attempt_id is None else ("attempt", attempt_id)


def _row(attempt: Attempt | None, listed: Transaction | None, result: ComparisonResult) -> Comparison:
    members = {name: getattr(result, name) for name in _STORED_FIELDS}
    return Comparison(attempt=attempt, transaction=listed, **members)


def _differs(old: Comparison | None, row: Comparison) -> bool:
    names = (*_STORED_FIELDS, "transaction_id")
    return old is None or any(getattr(old, name) != getattr(row, name) for name in names)


def _detach_transactions(rows: Iterable[Comparison]) -> None:
    """Unlink transactions that are reassigned, so that the unique constraint lets another row have them."""
    linked = [row.pk for row in rows if row.transaction_id is not None and row.attempt_id is not None]
    Comparison.objects.filter(pk__in=linked).update(transaction=None)


def _total_key(row: Comparison) -> TotalKey:
    return row.day, row.currency, row.result


def _add_to_totals(sums: Mapping[TotalKey, ExactSum]) -> None:
    for (day, currency, result), found in sums.items():
        if not found:
            continue
        total = ReconciliationTotal.objects.filter(day=day, currency=currency, result=result).first()
        total = total or ReconciliationTotal(
            day=day, currency=currency, result=result, count=0, amount=0, fee=0
        )
        total.count += found.count
        total.amount = EXACT.add(total.amount, found.amount)
        total.fee = EXACT.add(total.fee, found.fee)
        if total.count:
            total.save()
        else:
            total.delete()


def _raise_incident(row: Comparison) -> None:
    if row.attempt is not None:
        for kind, shown in _contradictions(row, row.attempt).items():
            incidents.raise_incident(row.attempt.operation, kind=kind, evidence=shown)
        return
    if row.transaction is None:
        return
    if row.result == ReconciliationResult.UNRECOGNISED:
        incidents.raise_for_transaction(row.transaction, evidence=_transaction_evidence(row.transaction))
    for attempt in Attempt.objects.filter(pk__in=row.resembles).select_related("operation").order_by("pk"):
        has_own = attempt.outcome == Outcome.SUCCEEDED
        kind = IncidentKind.SECOND_DEBIT if has_own else IncidentKind.EXECUTED_AFTER_ALL
        incidents.raise_incident(attempt.operation, kind=kind, evidence=_evidence(attempt, row.transaction))


def _transaction_evidence(listed: Transaction) -> dict[str, object]:
    return {
        "transaction": listed.transaction_id,
        "occurred_at": listed.occurred_at,
        "type": listed.type,
        "currency": listed.currency,
        "amount": normalized_text(listed.amount),
        "status": listed.status,
        "counterparty": listed.counterparty,
    }


def _contradictions(row: Comparison, attempt: Attempt) -> dict[IncidentKind, dict[str, object]]:
    """The incident kinds of this attempt's comparison, each with its evidence."""
    if row.result == ReconciliationResult.MISSING_AT_PROVIDER:
        return {IncidentKind.NOT_LISTED: _evidence(attempt, None)}
    differences: dict[IncidentKind, list[Difference]] = defaultdict(list)
    for difference in row.differences:
        differences[_kind(difference)].append(difference)
    on_record = _evidence(attempt, None)["on_record"]
    return {
        kind: _evidence(attempt, row.transaction)
        if kind in _OPPOSITE_OUTCOMES.values()
        else {"on_record": on_record, "differences": found}
        for kind, found in differences.items()
    }


def _evidence(attempt: Attempt, listed: Transaction | None) -> dict[str, object]:
    """The recorded outcome and what the list shows."""
    in_list = listed and listed_transaction(
        listed.transaction_id, listed.created_at, listed.currency, listed.amount, listed.status
    )
    on_record = recorded_outcome(attempt.number, attempt.outcome, attempt.provider_transaction_id)
    return {"on_record": on_record, "in_list": in_list}


def _kind(difference: Difference) -> IncidentKind:
    match difference["code"]:
        case DifferenceCode.FEE:
            return IncidentKind.FEE_MISMATCH
        case DifferenceCode.OUTCOME:
            statuses = (difference["local"], difference["provider"])
            return _OPPOSITE_OUTCOMES.get(statuses, IncidentKind.OUTCOME_MISMATCH)
    return IncidentKind.RECORD_MISMATCH
