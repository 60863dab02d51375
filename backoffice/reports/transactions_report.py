"""Transactions: the service's own ledger, read live."""

from collections.abc import Iterator
from datetime import date, timedelta
from operator import attrgetter

from backoffice.accounts.models import User
from backoffice.core.gateway import gateway
from backoffice.ledger.direction import counterparty, direction
from backoffice.ledger.forms import TransactionsForm
from backoffice.reports.report import Column, Period, Report
from payments_gateway import TransactionRecord

_PER_PAGE = 500  # the longest page of the service: fewer calls, and fewer rows that it counts through again
_DAYS = {"one day": 1, "one week": 7, "one month": 30, "one year": 365}


def rows(_user: User, form: TransactionsForm) -> Iterator[TransactionRecord]:
    """The service's transactions, newest first. Raises GatewayError, at the beginning or on the way."""
    filters = form.cleaned_data
    return gateway().transactions.iterate(
        currency=filters["currency"] or None,
        type=filters["type"] or None,
        duration=filters["duration"] or None,
        per_page=_PER_PAGE,
    )


def period(form: TransactionsForm, today: date) -> Period:
    """The days that the duration reaches back."""
    duration = form.cleaned_data["duration"]
    return Period(today - timedelta(days=_DAYS[duration]), today) if duration else Period()


TRANSACTIONS: Report[TransactionRecord, TransactionsForm] = Report(
    name="transactions",
    title="Transactions",
    about="What the service says it did, read from the service while you download.",
    permission="ledger.view_transaction",
    form=TransactionsForm,
    columns=(
        Column("transaction_id", attrgetter("transaction_id")),
        Column("created_at", attrgetter("created_at")),
        Column("updated_at", attrgetter("updated_at")),
        Column("type", attrgetter("type")),
        Column("status", attrgetter("status")),
        Column("direction", direction),
        Column("currency", attrgetter("currency")),
        Column("amount", lambda record: abs(record.amount)),
        Column("fee", attrgetter("fee")),
        Column("previous_balance", attrgetter("previous_balance")),
        Column("from_currency", attrgetter("from_currency")),
        Column("from_amount", attrgetter("from_amount")),
        Column("counterparty", counterparty),
        Column("sender", attrgetter("sender")),
        Column("username", attrgetter("username")),
    ),
    rows=rows,
    period=period,
)
