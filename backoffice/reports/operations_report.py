"""Operations: what was prepared, who countersigned it, and what became of it."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.forms import FilterForm
from backoffice.operations.kinds import debits_a_balance
from backoffice.operations.models import Operation
from backoffice.operations.selectors import NEWEST_FIRST, operation_page
from backoffice.reports.report import Column, Report, chosen_period, in_batches


def rows(user: User, form: FilterForm) -> Iterator[Operation]:
    """The operations that the person may see, newest first, with approvals and attempts at hand."""
    return in_batches(form.chosen(user).apply(operation_page(user)), order=NEWEST_FIRST)


def _direction(operation: Operation) -> str:
    """What leaves a balance of ours is out. What the service pays out of what a customer pays in is neither."""
    return "out" if debits_a_balance(operation.kind) else ""


def _approvers(operation: Operation) -> str:
    return "; ".join(approval.approver.full_name for approval in operation.approvals.all())


def _approval_times(operation: Operation) -> str:
    return "; ".join(timezone.localtime(approval.at).isoformat() for approval in operation.approvals.all())


def _of_last_attempt(member: str) -> Callable[[Operation], object]:
    get = attrgetter(member)

    def value(operation: Operation) -> object:
        attempts = operation.attempts.all()
        return get(max(attempts, key=attrgetter("number"))) if attempts else None

    return value


OPERATIONS: Report[Operation, FilterForm] = Report(
    name="operations",
    title="Operations",
    about="Every operation with its maker, its countersignatures, its outcome and the service's transaction.",
    permission="operations.view_operation",
    form=FilterForm,
    columns=(
        Column("reference", attrgetter("reference")),
        Column("kind", attrgetter("kind")),
        Column("status", attrgetter("status")),
        Column("sentence", attrgetter("sentence")),
        Column("direction", _direction),
        Column("currency", attrgetter("currency")),
        Column("amount", attrgetter("amount")),
        Column("fee", _of_last_attempt("fee")),
        Column("counterparty", attrgetter("counterparty")),
        Column("counterparty_detail", attrgetter("counterparty_detail")),
        Column("prepared_by", attrgetter("maker.full_name")),
        Column("prepared_at", attrgetter("prepared_at")),
        Column("approvals_needed", attrgetter("approvals_needed")),
        Column("approved_by", _approvers),
        Column("approved_at", _approval_times),
        Column("decided_at", attrgetter("decided_at")),
        Column("sent_by", _of_last_attempt("released_by.full_name")),
        Column("sent_at", _of_last_attempt("started_at")),
        Column("service_transaction_id", _of_last_attempt("service_transaction_id")),
        Column("closed_at", attrgetter("closed_at")),
        Column("reason", attrgetter("reason")),
        Column("digest", attrgetter("digest")),
    ),
    rows=rows,
    period=chosen_period,
)
