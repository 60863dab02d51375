"""Transactions: the service's own ledger, read live."""

from collections.abc import Iterator
from datetime import date, timedelta
from operator import attrgetter
from typing import get_args

from django import forms
from django.conf import settings

from backoffice.accounts.models import User
from backoffice.core.gateway import gateway
from backoffice.reports.report import Column, Period, Report
from payments_gateway import Duration, TransactionRecord, TransactionType

# The service filters by these two; the specification names no other currency for its list.
CURRENCIES = ("NGN", "USD")
_PER_PAGE = 500  # the longest page of the service: fewer calls, and fewer rows that it counts through again
_DAYS = {"one day": 1, "one week": 7, "one month": 30, "one year": 365}
_ALWAYS = {"deposit": "in", "withdrawal": "out", "sent": "out"}


def _choices(everything: str, values: tuple[str, ...]) -> list[tuple[str, str]]:
    return [("", everything), *((value, value) for value in values)]


class TransactionsForm(forms.Form):
    """The filters that the service itself has (GET /transaction)."""

    currency = forms.ChoiceField(required=False, choices=_choices("All", CURRENCIES))
    type = forms.ChoiceField(required=False, choices=_choices("All", get_args(TransactionType)))
    duration = forms.ChoiceField(
        required=False, label="Of the last", choices=_choices("Whole history", get_args(Duration))
    )


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


def direction(record: TransactionRecord) -> str:
    """`in` or `out`, seen from the merchant; amounts carry no sign.

    The service has no member for it. A conversion is two records: what was given in its own currency, and what
    was received, which names another currency as its origin. Of transfers the sender tells.
    """
    if record.type in _ALWAYS:
        return _ALWAYS[record.type]
    if record.type == "conversion":
        return "in" if record.from_currency not in {"", record.currency} else "out"
    if not record.sender:
        return ""
    return "out" if record.sender == settings.GATEWAY_API_USER else "in"


def _counterparty(record: TransactionRecord) -> str:
    return record.sender if direction(record) == "in" else record.username


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
        Column("counterparty", _counterparty),
        Column("sender", attrgetter("sender")),
        Column("username", attrgetter("username")),
    ),
    rows=rows,
    period=period,
)
