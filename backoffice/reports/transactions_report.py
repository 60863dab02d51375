"""Transactions: the service's own ledger, as the mirror keeps it."""

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.ledger.forms import TransactionsForm
from backoffice.ledger.mirror.state import read_up_to
from backoffice.ledger.mirrored import Transaction
from backoffice.reports.report import Column, StoredReport, chosen_period


def query(_user: User, form: TransactionsForm) -> QuerySet[Transaction]:
    """The transactions that match the filters: those that the list shows."""
    return form.chosen().apply(Transaction.objects.all())


TRANSACTIONS = StoredReport(
    name="transactions",
    title="Transactions",
    about="Every movement that the service told of, as it told it last.",
    permissions=("ledger.view_transaction",),
    form=TransactionsForm,
    columns=(
        Column("transaction_id", "The service's id", "transaction_id"),
        Column("created_at", "When it began, as the service told it", "created_at"),
        Column("updated_at", "When the service changed it last", "updated_at"),
        Column("type", "What it was", "type"),
        Column("status", "What became of it", "status"),
        Column("direction", "Into or out of your balance", "direction"),
        Column("currency", "The balance that it moved", "currency"),
        Column("amount", "How much, without a sign", "amount"),
        Column("fee", "What the service took", "fee"),
        Column("previous_balance", "The balance before it", "previous_balance"),
        Column("from_currency", "Where a conversion came from", "from_currency"),
        Column("from_amount", "How much was converted", "from_amount"),
        Column("counterparty", "Who was at the other end", "counterparty"),
        Column("sender", "Who sent it, as told", "sender"),
        Column("username", "The user of the service, as told", "username"),
        Column("business_id", "The business at the service", "business_id"),
        Column("occurred_at", "The time that lists sort by: told, or when it was first seen", "occurred_at"),
        Column("changed_at", "When we last saw it change", "changed_at"),
        Column(
            "missing_since", "Since when the service lists it no more; empty while it does", "missing_since"
        ),
    ),
    query=query,
    order=("-occurred_at", "-id"),
    period=chosen_period,
    told_up_to=read_up_to,
)
