"""Balances: what the service said of each, every quarter of an hour."""

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.core.period import PeriodForm
from backoffice.ledger.models import BalanceSnapshot
from backoffice.reports.report import Column, StoredReport, chosen_period, within


def query(_user: User, form: PeriodForm) -> QuerySet[BalanceSnapshot]:
    """The snapshots of the chosen days."""
    return BalanceSnapshot.objects.filter(**within("as_of", form))


BALANCES = StoredReport(
    name="balances",
    title="Balances",
    about="What the service said of each currency, every 15 minutes.",
    permission="ledger.view_balance",
    form=PeriodForm,
    columns=(
        Column("as_of", "When the service said it", "as_of"),
        Column("currency", "Which balance", "currency"),
        Column("amount", "What was in it", "amount"),
        Column("total_received", "Received in all until then", "total_received"),
        Column("total_sent", "Sent in all until then", "total_sent"),
        Column("transaction_count", "Transactions until then", "transaction_count"),
    ),
    query=query,
    order=("-as_of", "-id"),
    period=chosen_period,
)
