"""Approvals: who countersigned what, and how long it had waited."""

from django.db.models import F, QuerySet

from backoffice.accounts.models import User
from backoffice.core.period import PeriodForm
from backoffice.operations.models import Approval
from backoffice.operations.permissions import VIEW
from backoffice.operations.selectors import visible_operations
from backoffice.reports.report import Column, StoredReport, chosen_period, within


def query(user: User, form: PeriodForm) -> QuerySet[Approval]:
    """The countersignatures given within the chosen days, of operations that the person may see."""
    return Approval.objects.filter(operation__in=visible_operations(user), **within("at", form))


APPROVALS = StoredReport(
    name="approvals",
    title="Approvals",
    about="Every countersignature: who gave it, under what, and how long it had waited.",
    permissions=(VIEW,),
    form=PeriodForm,
    columns=(
        Column("approved_at", "When it was given", "at"),
        Column("approved_by", "Who gave it", "approver__full_name"),
        Column("reference", "The operation", "operation__reference"),
        Column("kind", "What kind of operation", "operation__kind"),
        Column("sentence", "What it does, in words", "operation__sentence"),
        Column("currency", "Of the amount", "operation__currency"),
        Column("amount", "How much, without a sign", "operation__amount"),
        Column("prepared_by", "Who prepared it", "maker__full_name"),
        Column("prepared_at", "When it was prepared", "operation__prepared_at"),
        Column(
            "waited_seconds",
            "From its preparation to this countersignature",
            F("at") - F("operation__prepared_at"),
        ),
        Column("status", "Where the operation stands now", "operation__status"),
        Column("comment", "What was said with it", "comment"),
        Column("digest", "The content that was signed", "digest"),
    ),
    query=query,
    order=("-at", "-id"),
    period=chosen_period,
)
