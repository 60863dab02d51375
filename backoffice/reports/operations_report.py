"""Operations: what was prepared, who countersigned it, and what became of it."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from django.db.models import QuerySet
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.forms import FilterForm
from backoffice.operations.kinds import debits_a_balance
from backoffice.operations.models import Operation
from backoffice.operations.selectors import NEWEST_FIRST, operation_page, visible_operations
from backoffice.reports.cells import moment
from backoffice.reports.report import Column, Report, chosen_period, in_batches


def rows(user: User, form: FilterForm) -> Iterator[Operation]:
    """The operations that the person may see, newest first, with approvals and attempts at hand."""
    return in_batches(form.chosen(user).apply(operation_page(user)), order=NEWEST_FIRST)


def counted(user: User, form: FilterForm) -> QuerySet[Operation]:
    """The same, to count them."""
    return form.chosen(user).apply(visible_operations(user))


def _direction(operation: Operation) -> str:
    """What leaves a balance of ours is out. What the service pays out of what a customer pays in is neither."""
    return "out" if debits_a_balance(operation.kind) else ""


def _approvers(operation: Operation) -> str:
    return "; ".join(approval.approver.full_name for approval in operation.approvals.all())


def _approval_times(operation: Operation) -> str:
    return "; ".join(
        moment(approval.at, timezone.get_current_timezone()) for approval in operation.approvals.all()
    )


def _of_last_attempt(member: str) -> Callable[[Operation], object]:
    get = attrgetter(member)

    def value(operation: Operation) -> object:
        attempts = operation.attempts.all()
        return get(max(attempts, key=attrgetter("number"))) if attempts else None

    return value


OPERATIONS = Report(
    name="operations",
    title="Operations",
    about="Every operation with its maker, its countersignatures, its outcome and the service's transaction.",
    permissions=("operations.view_operation",),
    form=FilterForm,
    columns=(
        Column("reference", "What people call it", attrgetter("reference")),
        Column("kind", "What kind of operation", attrgetter("kind")),
        Column("status", "Where it stands", attrgetter("status")),
        Column("sentence", "What it does, in words", attrgetter("sentence")),
        Column("direction", "Whether it leaves a balance of yours", _direction),
        Column("currency", "Of the amount", attrgetter("currency")),
        Column("amount", "How much, without a sign", attrgetter("amount")),
        Column("fee", "What the service took", _of_last_attempt("fee")),
        Column("counterparty", "Who is paid", attrgetter("counterparty")),
        Column("counterparty_detail", "And where", attrgetter("counterparty_detail")),
        Column("prepared_by", "Who prepared it", attrgetter("maker.full_name")),
        Column("prepared_at", "When", attrgetter("prepared_at")),
        Column("approvals_needed", "How many must countersign", attrgetter("approvals_needed")),
        Column("approved_by", "Who countersigned", _approvers),
        Column("approved_at", "When each did", _approval_times),
        Column("decided_at", "When it was decided", attrgetter("decided_at")),
        Column("sent_by", "Who gave the word to send", _of_last_attempt("released_by.full_name")),
        Column("sent_at", "When it left", _of_last_attempt("started_at")),
        Column(
            "service_transaction_id", "The service's transaction", _of_last_attempt("service_transaction_id")
        ),
        Column("closed_at", "When its outcome was known", attrgetter("closed_at")),
        Column("reason", "Why it ended so", attrgetter("reason")),
        Column("digest", "The content that was signed", attrgetter("digest")),
    ),
    rows=rows,
    counted=counted,
    period=chosen_period,
)
