"""Reports of operations, approvals, attempts, payments, reconciliation (also by day) and incidents."""

from collections.abc import Callable, Iterator
from heapq import merge
from operator import attrgetter
from typing import Any, TypeAlias

from django import forms
from django.db.models import Case, CharField, F, Q, QuerySet, Value, When
from django.db.models.functions import Concat
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.core.database.queries import batched
from backoffice.core.web.forms import PeriodForm
from backoffice.operations.batches.summary import (
    RowWithoutOperation,
    batch_summary,
    outcome_sentence,
    shown_status,
)
from backoffice.operations.kinds.payment import PaymentKind
from backoffice.operations.kinds.registry import debits_a_balance
from backoffice.operations.lifecycle.incidents import all_incidents
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.models.reconciliation import Comparison, ReconciliationTotal
from backoffice.operations.pages.operation_list import OperationFilter, OperationFilterForm
from backoffice.operations.pages.payments import CreatedPayment, created_payments, payment_operations
from backoffice.operations.pages.reconciliation.findings import ReconciliationFilterForm
from backoffice.operations.permissions import VIEW
from backoffice.operations.reconciliation.selectors import (
    DAYS_ZONE,
    NEWEST_COMPARISONS_FIRST,
    REQUIRED_PERMISSIONS,
    compared_up_to,
)
from backoffice.operations.selectors import NEWEST_FIRST, operations_with_history, visible_operations
from backoffice.reports.rendering.cells import time_text
from backoffice.reports.report import (
    BATCH,
    Column,
    ComputedReport,
    StoredReport,
    in_batches,
    labelled,
    period_lookups,
)

OperationRow: TypeAlias = Operation | RowWithoutOperation


def operation_rows(user: User, form: OperationFilterForm) -> Iterator[OperationRow]:
    """The operations that the person may see, with approvals and attempts prefetched: the newest first.

    Those of one batch are in the order of its rows. Without another filter every row of its file is among them.
    """
    chosen = form.chosen(user)
    operations = chosen.apply(operations_with_history(user)).select_related("batch_row__batch")
    operations = operations.annotate(status_of_rows=shown_status())
    if not chosen.batch:
        return in_batches(operations, order=NEWEST_FIRST)
    of_rows = in_batches(operations.annotate(row_number=F("batch_row__number")), order=("row_number",))
    return merge(of_rows, _rows_without_operation(user, chosen), key=attrgetter("batch_row.number"))


def _rows_without_operation(user: User, chosen: OperationFilter) -> Iterator[RowWithoutOperation]:
    rows = _all_rows(user, chosen).filter(operation__isnull=True)
    related = rows.select_related("batch__preparer", "duplicate_of")
    return map(RowWithoutOperation, in_batches(related, order=("number",)))


def _all_rows(user: User, chosen: OperationFilter) -> QuerySet[BatchRow]:
    """All rows of the chosen batch; none if only some of its operations are chosen."""
    if chosen != OperationFilter(batch=chosen.batch):
        return BatchRow.objects.none()
    return BatchRow.objects.filter(batch__in=visible_operations(user).filter(reference=chosen.batch))


def operations_count_query(user: User, form: OperationFilterForm) -> QuerySet[Any]:
    """A query with as many rows as the report, to count them."""
    chosen = form.chosen(user)
    if chosen == OperationFilter(batch=chosen.batch) and chosen.batch:
        return _all_rows(user, chosen)
    return chosen.apply(visible_operations(user))


def _direction(operation: OperationRow) -> str:
    """An operation that debits one of our balances is `out`.

    A payout funded by a customer's deposit is neither.
    """
    return "out" if debits_a_balance(operation.kind) else ""


def _payment_reference(operation: OperationRow) -> str:
    """Our reference of an off-ramp payment at the provider; empty for other kinds."""
    return operation.payload["reference"] if operation.kind == PaymentKind.name else ""


def _of_row(member: str) -> Callable[[OperationRow], object]:
    """A member of the batch row that became the operation; None for an operation outside batches."""
    get = attrgetter(member)
    return lambda operation: get(operation.batch_row) if hasattr(operation, "batch_row") else None


def _status(operation: OperationRow) -> object:
    """As in lists: that of an applied batch is the one of its rows, which may not be sent or paid."""
    return getattr(operation, "status_of_rows", operation.status)


def _reason(operation: OperationRow) -> str:
    """Why it was not paid, or what is known while its outcome is unknown. Of an applied batch, how many rows were."""
    if isinstance(operation, Operation) and (summary := batch_summary(operation)):
        return summary.counts
    return operation.reason if isinstance(operation, RowWithoutOperation) else outcome_sentence(operation)


def _approvers(operation: OperationRow) -> str:
    return "; ".join(approval.approved_by for approval in operation.approvals.all())


def _approval_times(operation: OperationRow) -> str:
    return "; ".join(
        time_text(approval.approved_at, timezone.get_current_timezone())
        for approval in operation.approvals.all()
    )


def _last_attempt_value(member: str) -> Callable[[OperationRow], object]:
    get = attrgetter(member)

    def value(operation: OperationRow) -> object:
        attempts = operation.attempts.all()
        return get(max(attempts, key=attrgetter("number"))) if attempts else None

    return value


OPERATIONS = ComputedReport(
    name="operations",
    title=_("Operations"),
    about=_(
        "Operations by the day they were prepared, with approvals, outcome and the provider's transaction."
    ),
    permissions=("operations.view_operation",),
    form=OperationFilterForm,
    columns=(
        Column("reference", _("Reference"), "reference"),
        Column("kind", _("Kind"), "kind"),
        Column("status", _("Status"), _status),
        Column("sentence", _("Description"), "sentence"),
        Column("direction", _("Direction"), _direction),
        Column("currency", _("Currency"), "currency"),
        Column("amount", _("Amount"), "amount"),
        Column("fee", _("Fee"), _last_attempt_value("fee")),
        Column("recipient", _("Recipient"), "recipient"),
        Column("recipient_detail", _("Recipient details"), "recipient_detail"),
        Column("payment_reference", _("Our reference"), _payment_reference),
        Column("memo", _("Memo"), lambda operation: operation.payload.get("memo", "")),
        Column("batch", _("Batch"), _of_row("batch.reference")),
        Column("batch_row", _("Row in batch"), _of_row("number")),
        Column("prepared_by", _("Prepared by"), "preparer.full_name"),
        Column("prepared_at", _("Prepared at"), "prepared_at"),
        Column("approvals_needed", _("Approvals required"), "approvals_needed"),
        Column("approved_by", _("Approved by"), _approvers),
        Column("approved_at", _("Approved at"), _approval_times),
        Column("decided_at", _("Approved or rejected at"), "decided_at"),
        Column("sent_by", _("Last attempt released by"), _last_attempt_value("released_by.full_name")),
        Column("sent_at", _("Last attempt at"), _last_attempt_value("started_at")),
        Column(
            "provider_transaction_id",
            _("Transaction ID"),
            _last_attempt_value("provider_transaction_id"),
        ),
        Column("closed_at", _("Closed at"), "closed_at"),
        Column("reason", _("Reason"), _reason),
        Column("digest", _("Digest of the content"), "digest"),
    ),
    rows=operation_rows,
    counted=operations_count_query,
)


def approvals_query(user: User, form: PeriodForm) -> QuerySet[Approval]:
    """The approvals given within the chosen days, for operations that the person may see."""
    return Approval.objects.filter(
        operation__in=visible_operations(user), **period_lookups("approved_at", form)
    )


_APPROVED_BY = Case(
    When(on_behalf_of__isnull=True, then=F("approver__full_name")),
    default=Concat("approver__full_name", Value(" for "), "on_behalf_of__full_name"),
    output_field=CharField(),
)
"""As `Approval.approved_by`, which is in one language in a file."""

APPROVALS = StoredReport(
    name="approvals",
    title=_("Approvals"),
    about=_("Every approval: who approved which content, and how long it waited."),
    permissions=(VIEW,),
    form=PeriodForm,
    columns=(
        Column("approved_at", _("Approved at"), "approved_at"),
        Column("approved_by", _("Approved by"), _APPROVED_BY),
        Column("reference", _("Reference"), "operation__reference"),
        Column("kind", _("Kind"), "operation__kind"),
        Column("sentence", _("Description"), "operation__sentence"),
        Column("currency", _("Currency"), "operation__currency"),
        Column("amount", _("Amount"), "operation__amount"),
        Column("prepared_by", _("Prepared by"), "preparer__full_name"),
        Column("prepared_at", _("Prepared at"), "operation__prepared_at"),
        Column(
            "waited_seconds",
            _("Waiting time (seconds)"),
            F("approved_at") - F("operation__prepared_at"),
        ),
        Column("status", _("Status"), "operation__status"),
        Column("comment", _("Comment"), "comment"),
        Column("digest", _("Digest of the content"), "digest"),
    ),
    query=approvals_query,
    order=("-approved_at", "-id"),
)


def attempts_query(user: User, form: PeriodForm) -> QuerySet[Attempt]:
    """The attempts begun within the chosen days, for operations that the person may see."""
    return Attempt.objects.filter(
        operation__in=visible_operations(user), **period_lookups("started_at", form)
    )


def attempt_rows(user: User, form: PeriodForm) -> Iterator[Attempt]:
    """The same, the newest first."""
    attempts = attempts_query(user, form).select_related("operation", "released_by")
    return in_batches(attempts, order=("-started_at", "-id"))


ATTEMPTS = ComputedReport(
    name="attempts",
    title=_("Attempts"),
    about=_("Every request that moves money or changes a setting, with response and outcome."),
    permissions=(VIEW,),
    form=PeriodForm,
    columns=(
        Column("started_at", _("Started at"), "started_at"),
        Column("reference", _("Reference"), "operation.reference"),
        Column("kind", _("Kind"), "operation.kind"),
        Column("number", _("Attempt"), "number"),
        Column("sent_by", _("Released by"), "released_by.full_name"),
        Column("currency", _("Currency"), "operation.currency"),
        Column("amount", _("Amount"), "operation.amount"),
        Column("outcome", _("Outcome"), "outcome"),
        Column("response_status", _("HTTP status"), "response_status"),
        Column("response", _("Response"), "response"),
        Column("provider_transaction_id", _("Transaction ID"), "provider_transaction_id"),
        Column("fee", _("Fee"), "fee"),
        Column("checks", _("Status checks"), "checks"),
        Column("closed_at", _("Closed at"), "closed_at"),
        Column("digest", _("Digest of the content"), "digest"),
    ),
    rows=attempt_rows,
    counted=attempts_query,
)


def payments_query(user: User, form: PeriodForm) -> QuerySet[Operation]:
    """The payments prepared within the chosen days."""
    return payment_operations(user).filter(**period_lookups("prepared_at", form))


def payment_rows(user: User, form: PeriodForm) -> Iterator[CreatedPayment]:
    """The same, newest first, without a request to the provider."""
    operations = in_batches(payments_query(user, form), order=NEWEST_FIRST)
    for batch in batched(operations, BATCH):
        yield from created_payments(batch, ask=False)


def _payment_value(name: str) -> Callable[[CreatedPayment], str]:
    return lambda payment: payment.reported.get(name, "")


PAYMENTS = ComputedReport(
    name="payments",
    title=_("Off-ramp payments"),
    about=_("Off-ramp payments by the day they were prepared, with status and amounts, as last reported."),
    permissions=("operations.view_operation",),
    form=PeriodForm,
    columns=(
        Column("reference", _("Reference"), "operation.reference"),
        Column("prepared_at", _("Prepared at"), "operation.prepared_at"),
        Column(
            "customer_email",
            _("Customer's email address"),
            lambda payment: payment.operation.payload["customer_email"],
        ),
        Column("paid_to", _("Recipient"), "operation.recipient"),
        Column("paid_to_detail", _("Recipient details"), "operation.recipient_detail"),
        Column("payment_id", _("Payment ID"), _payment_value("id")),
        Column(
            "payment_reference", _("Our reference"), lambda payment: _payment_reference(payment.operation)
        ),
        Column("state", _("Provider's status"), _payment_value("state")),
        Column("address", _("Deposit address"), _payment_value("address")),
        Column("incoming_currency", _("Pay-in currency"), _payment_value("incoming_currency")),
        Column("incoming_amount", _("Pay-in amount"), _payment_value("incoming_amount")),
        Column("confirmed_amount", _("Received, confirmed"), _payment_value("confirmed_amount")),
        Column("unconfirmed_amount", _("Received, unconfirmed"), _payment_value("unconfirmed_amount")),
        Column("outgoing_currency", _("Payout currency"), _payment_value("outgoing_currency")),
        Column("outgoing_amount", _("Payout amount"), _payment_value("outgoing_amount")),
        Column("rate", _("Rate"), _payment_value("rate")),
        Column("expires_at", _("Expires at"), "expires_at"),
        Column("as_of", _("Reported at"), "reported_at"),
    ),
    rows=payment_rows,
    counted=payments_query,
)


def comparisons_query(_user: User, form: ReconciliationFilterForm) -> QuerySet[Comparison]:
    """The comparisons that the page lists."""
    return form.chosen().comparisons()


def daily_totals_query(_user: User, form: ReconciliationFilterForm) -> QuerySet[ReconciliationTotal]:
    """The daily sums, optionally of one result."""
    chosen = form.chosen()
    return chosen.totals_of_results()


RECONCILIATION = StoredReport(
    name="reconciliation",
    title=_("Reconciliation"),
    about=_("Sent operations compared with the provider's transactions, and unrecognised transactions."),
    permissions=REQUIRED_PERMISSIONS,
    form=ReconciliationFilterForm,
    columns=(
        Column("result", _("Result"), "result"),
        Column(
            "differences",
            _("Differences (JSON)"),
            Case(When(~Q(differences=[]), then=F("differences"))),
        ),
        Column("operation", _("Operation"), "attempt__operation__reference"),
        Column("kind", _("Kind"), "attempt__operation__kind"),
        Column(
            "transaction_id",
            _("Transaction ID (Countersign)"),
            "attempt__provider_transaction_id",
        ),
        Column("listed_as", _("Transaction ID (provider)"), "transaction__transaction_id"),
        Column("type", _("Type (provider)"), "transaction__type"),
        Column("our_currency", _("Currency (Countersign)"), "attempt__operation__currency"),
        Column("our_amount", _("Amount (Countersign)"), "attempt__operation__amount"),
        Column("our_fee", _("Fee (Countersign)"), "attempt__fee"),
        Column("our_outcome", _("Outcome (Countersign)"), "attempt__outcome"),
        Column("their_currency", _("Currency (provider)"), "transaction__currency"),
        Column("their_amount", _("Amount (provider)"), "transaction__amount"),
        Column("their_fee", _("Fee (provider)"), "transaction__fee"),
        Column("their_status", _("Status (provider)"), "transaction__status"),
        Column("with", _("Counterparty"), "transaction__counterparty"),
        Column("occurred_at", _("Occurred at"), "occurred_at"),
        Column("missing_since", _("No longer listed since"), "transaction__missing_since"),
        Column(
            "noted_by",
            _("Acknowledged by"),
            "noted_by",
        ),
        Column("note", _("Note"), "note"),
    ),
    query=comparisons_query,
    order=NEWEST_COMPARISONS_FIRST,
    own_zone=DAYS_ZONE,
    synced_until=compared_up_to,
)
RECONCILIATION_BY_DAY = StoredReport(
    name="reconciliation-by-day",
    title=_("Reconciliation by day"),
    about=_("Count and totals of each result, by day and currency."),
    permissions=REQUIRED_PERMISSIONS,
    form=ReconciliationFilterForm,
    columns=(
        Column("day", _("Day (UTC)"), "day"),
        Column("currency", _("Currency"), "currency"),
        Column("result", _("Result"), "result"),
        Column("count", _("Count"), "count"),
        Column("amount", _("Total amount"), "amount"),
        Column("fee", _("Total fees"), "fee"),
    ),
    query=daily_totals_query,
    order=("-day", "currency", "result"),
    own_zone=DAYS_ZONE,
    synced_until=compared_up_to,
)


def incidents_query(_user: User, _form: forms.Form) -> QuerySet[Incident]:
    return all_incidents()


INCIDENTS = StoredReport(
    name="incidents",
    title=_("Incidents"),
    about=_("Evidence that contradicts the record, and what people found."),
    permissions=(VIEW,),
    form=forms.Form,
    columns=(
        Column("at", _("Detected at"), "at"),
        Column("operation", _("Operation"), "operation__reference"),
        Column("transaction", _("Transaction ID"), "transaction__transaction_id"),
        Column("what", _("Incident"), labelled("kind", IncidentKind)),
        Column("evidence", _("Evidence (JSON)"), "evidence"),
        Column("noted_at", _("Acknowledged at"), "acknowledged_at"),
        Column("noted_by", _("Acknowledged by"), "acknowledged_by__full_name"),
        Column("note", _("Note"), "note"),
        Column("incident", _("Incident number"), "pk"),
        Column("further_to", _("Earlier incident"), "further_to__pk"),
    ),
    query=incidents_query,
    order=("-at", "-id"),
)
