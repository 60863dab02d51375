"""Attempts: every request that was sent to the service, and how it ended."""

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.core.period import PeriodForm
from backoffice.operations.models import Attempt
from backoffice.operations.permissions import VIEW
from backoffice.operations.selectors import visible_operations
from backoffice.reports.report import Column, StoredReport, chosen_period, within


def query(user: User, form: PeriodForm) -> QuerySet[Attempt]:
    """The attempts begun within the chosen days, of operations that the person may see."""
    return Attempt.objects.filter(operation__in=visible_operations(user), **within("started_at", form))


ATTEMPTS = StoredReport(
    name="attempts",
    title="Attempts",
    about="Every request sent to the service, with its answer and how it ended.",
    permissions=(VIEW,),
    form=PeriodForm,
    columns=(
        Column("started_at", "When it was opened, before the first byte left", "started_at"),
        Column("reference", "The operation", "operation__reference"),
        Column("kind", "What kind of operation", "operation__kind"),
        Column("number", "The first, second … attempt of the operation", "number"),
        Column("sent_by", "Who gave the word to send", "released_by__full_name"),
        Column("currency", "Of the amount", "operation__currency"),
        Column("amount", "How much, without a sign", "operation__amount"),
        Column("outcome", "How it ended", "outcome"),
        Column("answer_status", "The HTTP status of the answer", "answer_status"),
        Column("answer", "What the service said", "answer"),
        Column("service_transaction_id", "The service's transaction", "service_transaction_id"),
        Column("fee", "What the service took", "fee"),
        Column("checks", "How often the service's list was searched for it", "checks"),
        Column("closed_at", "When its outcome was known", "closed_at"),
        Column("digest", "The content that was sent", "digest"),
    ),
    query=query,
    order=("-started_at", "-id"),
    period=chosen_period,
)
