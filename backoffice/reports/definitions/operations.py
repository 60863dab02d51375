"""Reports of operations, approvals, attempts, payments, reconciliation (also by day) and incidents."""

from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter

from django import forms
from django.db.models import Case, F, Q, QuerySet, When
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.web.forms import PeriodForm
from backoffice.operations.kinds.registry import debits_a_balance
from backoffice.operations.lifecycle.incidents import all_incidents
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.models.reconciliation import Comparison, ReconciliationTotal
from backoffice.operations.pages.operation_list import OperationFilterForm
from backoffice.operations.pages.payments import CreatedPayment, created_payments, payment_operations
from backoffice.operations.pages.reconciliation import ReconciliationFilterForm
from backoffice.operations.permissions import VIEW
from backoffice.operations.reconciliation.selectors import (
    DAYS_ZONE,
    NEWEST_COMPARISONS_FIRST,
    REQUIRED_PERMISSIONS,
    compared_up_to,
)
from backoffice.operations.selectors import NEWEST_FIRST, operation_page, visible_operations
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


def operation_rows(user: User, form: OperationFilterForm) -> Iterator[Operation]:
    """The operations that the person may see, newest first, with approvals and attempts prefetched."""
    return in_batches(form.chosen(user).apply(operation_page(user)), order=NEWEST_FIRST)


def operations_count_query(user: User, form: OperationFilterForm) -> QuerySet[Operation]:
    """The same operations as one query, to count them."""
    return form.chosen(user).apply(visible_operations(user))


def _direction(operation: Operation) -> str:
    """An operation that debits one of our balances is `out`.

    A payout funded by a customer's deposit is neither.
    """
    return "out" if debits_a_balance(operation.kind) else ""


def _approvers(operation: Operation) -> str:
    return "; ".join(approval.approver.full_name for approval in operation.approvals.all())


def _approval_times(operation: Operation) -> str:
    return "; ".join(
        time_text(approval.approved_at, timezone.get_current_timezone())
        for approval in operation.approvals.all()
    )


def _last_attempt_value(member: str) -> Callable[[Operation], object]:
    get = attrgetter(member)

    def value(operation: Operation) -> object:
        attempts = operation.attempts.all()
        return get(max(attempts, key=attrgetter("number"))) if attempts else None

    return value


OPERATIONS = ComputedReport(
    name="operations",
    title="Operations",
    about="Every operation with its preparer, its countersignatures, its outcome and the service's transaction.",
    permissions=("operations.view_operation",),
    form=OperationFilterForm,
    columns=(
        Column("reference", "What people call it", "reference"),
        Column("kind", "What kind of operation", "kind"),
        Column("status", "Where it stands", "status"),
        Column("sentence", "What it does, in words", "sentence"),
        Column("direction", "Whether it leaves a balance of yours", _direction),
        Column("currency", "Of the amount", "currency"),
        Column("amount", "How much, without a sign", "amount"),
        Column("fee", "What the service took", _last_attempt_value("fee")),
        Column("recipient", "Who is paid", "recipient"),
        Column("recipient_detail", "And where", "recipient_detail"),
        Column("prepared_by", "Who prepared it", "preparer.full_name"),
        Column("prepared_at", "When", "prepared_at"),
        Column("approvals_needed", "How many must countersign", "approvals_needed"),
        Column("approved_by", "Who countersigned", _approvers),
        Column("approved_at", "When each did", _approval_times),
        Column("decided_at", "When it was decided", "decided_at"),
        Column("sent_by", "Who gave the word to send", _last_attempt_value("released_by.full_name")),
        Column("sent_at", "When it left", _last_attempt_value("started_at")),
        Column(
            "provider_transaction_id",
            "The service's transaction",
            _last_attempt_value("provider_transaction_id"),
        ),
        Column("closed_at", "When its outcome was known", "closed_at"),
        Column("reason", "Why it ended so", "reason"),
        Column("digest", "The content that was signed", "digest"),
    ),
    rows=operation_rows,
    counted=operations_count_query,
)


def approvals_query(user: User, form: PeriodForm) -> QuerySet[Approval]:
    """The approvals given within the chosen days, for operations that the person may see."""
    return Approval.objects.filter(
        operation__in=visible_operations(user), **period_lookups("approved_at", form)
    )


APPROVALS = StoredReport(
    name="approvals",
    title="Approvals",
    about="Every countersignature: who gave it, under what, and how long it had waited.",
    permissions=(VIEW,),
    form=PeriodForm,
    columns=(
        Column("approved_at", "When it was given", "approved_at"),
        Column("approved_by", "Who gave it", "approver__full_name"),
        Column("reference", "The operation", "operation__reference"),
        Column("kind", "What kind of operation", "operation__kind"),
        Column("sentence", "What it does, in words", "operation__sentence"),
        Column("currency", "Of the amount", "operation__currency"),
        Column("amount", "How much, without a sign", "operation__amount"),
        Column("prepared_by", "Who prepared it", "preparer__full_name"),
        Column("prepared_at", "When it was prepared", "operation__prepared_at"),
        Column(
            "waited_seconds",
            "From its preparation to this countersignature",
            F("approved_at") - F("operation__prepared_at"),
        ),
        Column("status", "Where the operation stands now", "operation__status"),
        Column("comment", "What was said with it", "comment"),
        Column("digest", "The content that was signed", "digest"),
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
    title="Attempts",
    about="Every request sent to the service, with its answer and how it ended.",
    permissions=(VIEW,),
    form=PeriodForm,
    columns=(
        Column("started_at", "When it was opened, before the first byte left", "started_at"),
        Column("reference", "The operation", "operation.reference"),
        Column("kind", "What kind of operation", "operation.kind"),
        Column("number", "The first, second … attempt of the operation", "number"),
        Column("sent_by", "Who gave the word to send", "released_by.full_name"),
        Column("currency", "Of the amount", "operation.currency"),
        Column("amount", "How much, without a sign", "operation.amount"),
        Column("outcome", "How it ended", "outcome"),
        Column("response_status", "The HTTP status of the answer", "response_status"),
        Column("response", "What the service said", "response"),
        Column("provider_transaction_id", "The service's transaction", "provider_transaction_id"),
        Column("fee", "What the service took", "fee"),
        Column("checks", "How often the service's list was searched for it", "checks"),
        Column("closed_at", "When its outcome was known", "closed_at"),
        Column("digest", "The content that was sent", "digest"),
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
    while batch := list(islice(operations, BATCH)):
        yield from created_payments(batch, ask=False)


def _payment_value(name: str) -> Callable[[CreatedPayment], str]:
    return lambda payment: payment.reported.get(name, "")


PAYMENTS = ComputedReport(
    name="payments",
    title="Payments",
    about="Off-ramp payments created here, with state and amounts as the service last told them.",
    permissions=("operations.view_operation",),
    form=PeriodForm,
    columns=(
        Column("reference", "The operation that created it", "operation.reference"),
        Column("prepared_at", "When that was prepared", "operation.prepared_at"),
        Column("customer_email", "Who pays in", lambda payment: payment.operation.payload["customer_email"]),
        Column("paid_to", "Who is paid", "operation.recipient"),
        Column("paid_to_detail", "And where", "operation.recipient_detail"),
        Column("payment_id", "The service's id", _payment_value("id")),
        Column("payment_reference", "The service's reference", _payment_value("reference")),
        Column("state", "Where it stands, as told last", _payment_value("state")),
        Column("address", "Where the customer pays in", _payment_value("address")),
        Column("incoming_currency", "What the customer pays in", _payment_value("incoming_currency")),
        Column("incoming_amount", "How much of it", _payment_value("incoming_amount")),
        Column("confirmed_amount", "Arrived for certain", _payment_value("confirmed_amount")),
        Column("unconfirmed_amount", "Seen, and not yet certain", _payment_value("unconfirmed_amount")),
        Column("outgoing_currency", "What is paid out", _payment_value("outgoing_currency")),
        Column("outgoing_amount", "How much of it", _payment_value("outgoing_amount")),
        Column("rate", "At which it is converted", _payment_value("rate")),
        Column("expires_at", "Until when the address is watched", "expires_at"),
        Column("as_of", "When the service said all this", "reported_at"),
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
    return chosen.totals().filter(result=chosen.result) if chosen.result else chosen.totals()


RECONCILIATION = StoredReport(
    name="reconciliation",
    title="Reconciliation",
    about="Each operation that moved money beside the service's record of it, and movements that nobody prepared here.",
    permissions=REQUIRED_PERMISSIONS,
    form=ReconciliationFilterForm,
    columns=(
        Column("result", "What holding them against each other says", "result"),
        Column(
            "differences",
            "What differs, or why it cannot be told yet: codes with their parameters, as JSON",
            Case(When(~Q(differences=[]), then=F("differences"))),
        ),
        Column("operation", "The operation here", "attempt__operation__reference"),
        Column("kind", "What kind of operation", "attempt__operation__kind"),
        Column(
            "transaction_id",
            "The service's transaction, as the attempt has it",
            "attempt__provider_transaction_id",
        ),
        Column("listed_as", "The service's transaction, as it is listed", "transaction__transaction_id"),
        Column("type", "What the service calls it", "transaction__type"),
        Column("our_currency", "What was countersigned", "attempt__operation__currency"),
        Column("our_amount", "What was countersigned", "attempt__operation__amount"),
        Column("our_fee", "The fee on record when it closed", "attempt__fee"),
        Column("our_outcome", "How the attempt ended here", "attempt__outcome"),
        Column("their_currency", "As the service tells it", "transaction__currency"),
        Column("their_amount", "As the service tells it", "transaction__amount"),
        Column("their_fee", "As the service tells it", "transaction__fee"),
        Column("their_status", "As the service tells it", "transaction__status"),
        Column("with", "Who was at the other end, as the service tells it", "transaction__counterparty"),
        Column(
            "occurred_at", "When, by the service; where it lists nothing, when it was sent", "occurred_at"
        ),
        Column("missing_since", "Since when the service lists it no more", "transaction__missing_since"),
        Column(
            "noted_by",
            "Who took note of a movement of nobody's, as it was told last",
            "noted_by",
        ),
        Column("note", "What was found", "note"),
    ),
    query=comparisons_query,
    order=NEWEST_COMPARISONS_FIRST,
    own_zone=DAYS_ZONE,
    synced_until=compared_up_to,
)
RECONCILIATION_BY_DAY = StoredReport(
    name="reconciliation-by-day",
    title="Reconciliation by day",
    about="How many operations and movements of each result, and their sums, for each day and currency.",
    permissions=REQUIRED_PERMISSIONS,
    form=ReconciliationFilterForm,
    columns=(
        Column("day", "The day in UTC", "day"),
        Column("currency", "Currencies are never added together", "currency"),
        Column("result", "What holding them against each other says", "result"),
        Column("count", "How many", "count"),
        Column("amount", "Added up, without a sign", "amount"),
        Column("fee", "What the service took, added up", "fee"),
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
    title="Incidents",
    about="What contradicted the record, of an operation or of nobody's movement, and what people found.",
    permissions=(VIEW,),
    form=forms.Form,
    columns=(
        Column("at", "When it was noticed", "at"),
        Column("operation", "The operation that it is about", "operation__reference"),
        Column(
            "transaction", "The service's transaction that is no operation's", "transaction__transaction_id"
        ),
        Column("what", "What contradicted the record", labelled("kind", IncidentKind)),
        Column("evidence", "What was seen, as JSON", "evidence"),
        Column("noted_at", "When somebody took note", "acknowledged_at"),
        Column("noted_by", "Who took note", "acknowledged_by__full_name"),
        Column("note", "What was found", "note"),
        Column("incident", "The number of this incident", "pk"),
        Column("further_to", "The number of the incident whose evidence it continues", "further_to__pk"),
    ),
    query=incidents_query,
    order=("-at", "-id"),
)
