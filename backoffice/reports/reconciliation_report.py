"""Our operations held against the service's list, one by one and added up by day."""

from django.db.models import Case, F, Q, QuerySet, When

from backoffice.accounts.models import User
from backoffice.operations.reconciled import Comparison, VerdictTotal
from backoffice.operations.reconciliation import DAYS_OF, MAY_SEE, NEWEST_FIRST, compared_up_to
from backoffice.operations.reconciliation_form import ReconciliationForm
from backoffice.reports.report import Column, StoredReport, chosen_period


def one_by_one(_user: User, form: ReconciliationForm) -> QuerySet[Comparison]:
    """What the page lists."""
    return form.chosen().comparisons()


def added_up(_user: User, form: ReconciliationForm) -> QuerySet[VerdictTotal]:
    """The sums; of one verdict where one is chosen."""
    chosen = form.chosen()
    return chosen.totals().filter(verdict=chosen.verdict) if chosen.verdict else chosen.totals()


RECONCILIATION = StoredReport(
    name="reconciliation",
    title="Reconciliation",
    about="Each operation that moved money beside the service's record of it, and movements that nobody prepared here.",
    permissions=MAY_SEE,
    form=ReconciliationForm,
    columns=(
        Column("result", "What holding them against each other says", "verdict"),
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
            "attempt__service_transaction_id",
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
    query=one_by_one,
    order=NEWEST_FIRST,
    period=chosen_period,
    own_zone=DAYS_OF,
    told_up_to=compared_up_to,
)
RECONCILIATION_BY_DAY = StoredReport(
    name="reconciliation-by-day",
    title="Reconciliation by day",
    about="How many operations and movements of each result, and their sums, for each day and currency.",
    permissions=MAY_SEE,
    form=ReconciliationForm,
    columns=(
        Column("day", "The day in UTC", "day"),
        Column("currency", "Currencies are never added together", "currency"),
        Column("result", "What holding them against each other says", "verdict"),
        Column("count", "How many", "count"),
        Column("amount", "Added up, without a sign", "amount"),
        Column("fee", "What the service took, added up", "fee"),
    ),
    query=added_up,
    order=("-day", "currency", "verdict"),
    period=chosen_period,
    own_zone=DAYS_OF,
    told_up_to=compared_up_to,
)
