"""The end of a history: without further faults, time advances to the horizon, and everything begun is
accounted for.
"""

from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.monitoring.inspection import inspect
from tests.simulation.actions import HistoryActions
from tests.simulation.campaign import SimulationFigures
from tests.simulation.oracle import CLOSED, Oracle, could_come_after
from tests.simulation.provider import SimulatedTransaction
from tests.simulation.rows import AttemptRow, OperationRow


def check_the_end(office: HistoryActions, *, steps: int = 0, is_inspected: bool = True) -> SimulationFigures:
    """Run everything to its end, then resume the frozen processes. What remains open must ask for people."""
    office.run_to_the_horizon()
    while office.world.frozen:
        office.thaw(office.world.frozen[0])
        office.run_to_the_horizon()
    _check_what_is_open(office)
    if is_inspected:
        _check_what_is_reported(office)
    assert b"token-" not in office.world.database.raw.serialize(), (
        "A token of the service is left in the database"
    )
    return _figures(office, steps)


def _check_what_is_open(office: HistoryActions) -> None:
    attempts = {attempt.operation: attempt for attempt in office.oracle.attempts() if attempt.is_open}
    for pk, operation in office.oracle.operations().items():
        if operation.status not in CLOSED:
            assert operation.status == "review", f"{operation} is left open"
            assert attempts[pk].check_result, f"{operation} is to be reviewed, and nobody knows why"


def _check_what_is_reported(office: HistoryActions) -> None:
    """The product's own inspection finds nothing, no incident is false, and none is missing."""
    violations = inspect(full=True).violations
    assert not violations, violations
    office.reconcile_at_the_end()
    operations = office.oracle.operations()
    caused_by = {record.transaction_id: record.caused_by for record in office.world.provider.ledger}
    for incident in Incident.objects.select_related("operation", "transaction"):
        about = incident.operation.pk if incident.operation else None
        if incident.transaction:
            about = caused_by[incident.transaction.transaction_id]
        if about is not None:
            found = operations[about]
            assert office.oracle.is_disputed(found), f"{found}: {incident.kind} {incident.evidence}"
    for attempt in office.oracle.attempts():
        if not attempt.is_open:
            _check_every_debit_is_reported(office, operations[attempt.operation], attempt)


def _check_every_debit_is_reported(
    office: HistoryActions, operation: OperationRow, attempt: AttemptRow
) -> None:
    raised = Incident.objects.filter(operation=operation.pk)
    reported = {(incident.evidence.get("in_list") or {}).get("transaction") for incident in raised}
    for debit in office.oracle.unclaimed_debits(operation, attempt):
        assert debit.transaction_id in reported, f"{operation} does not report {debit}"


def _is_provable(oracle: Oracle, attempt: AttemptRow, record: SimulatedTransaction) -> bool:
    """Beside another unknown outcome of the balance, a time just before the request's proves nothing: people decide,
    unless the balance before the record is the one that the request found.
    """
    is_after = attempt.mark is not None and record.created_at >= attempt.mark
    is_next = record.previous_balance == attempt.balance_before
    return is_after or is_next or attempt.pk not in oracle.side_by_side


def _figures(office: HistoryActions, steps: int) -> SimulationFigures:
    oracle, ledger = office.oracle, office.world.provider.ledger
    operations = oracle.operations()
    made = SimulationFigures(histories=1, steps=steps, operations=len(operations))
    made.debits = sum(record.caused_by is not None for record in ledger)
    made.batch_rows, made.bulk_releases = (
        BatchRow.objects.filter(operation__isnull=False).count(),
        BulkRelease.objects.count(),
    )
    made.managed_codes = len(office.world.codes) if oracle.secret is not None else 0
    made.side_by_side = len(oracle.side_by_side)
    made.in_review = sum(operation.status == "review" for operation in operations.values())
    for attempt in oracle.attempts():
        made.requests += 1
        operation = operations[attempt.operation]
        matching = oracle.matching(operation, attempt)
        is_ours = len(matching) == 1 and matching[0].caused_by == operation.pk
        is_ours = (
            is_ours and could_come_after(attempt, matching[0]) and _is_provable(oracle, attempt, matching[0])
        )
        if attempt.pk in oracle.unmatched and is_ours and not attempt.resolved_by:
            made.ambiguous += 1
            made.closed_automatically += attempt.names == matching[0].transaction_id and not attempt.is_open
    return made
