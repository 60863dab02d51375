"""Balances: as last told by the service, and as they were every 15 minutes."""

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.core.period import PeriodForm
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.reports.report import Column, Report, chosen_period, in_batches, within

ORDER = ("-as_of", "-id")


def rows(_user: User, form: PeriodForm) -> Iterator[Balance | BalanceSnapshot]:
    """The balances of the page first, then every snapshot, newest first; all within the chosen days."""
    last_known = Balance.objects.filter(**within("as_of", form))
    return chain(last_known, in_batches(_snapshots(form), order=ORDER))


def _snapshots(form: PeriodForm) -> QuerySet[BalanceSnapshot]:
    return BalanceSnapshot.objects.filter(**within("as_of", form))


def _kept(row: Balance | BalanceSnapshot) -> str:
    return "last_known" if isinstance(row, Balance) else "snapshot"


BALANCES: Report[Balance | BalanceSnapshot, PeriodForm] = Report(
    name="balances",
    title="Balances",
    about="What the service said of each currency: last, and every 15 minutes before.",
    permissions=("ledger.view_balance",),
    form=PeriodForm,
    columns=(
        Column("kept_as", "Whether it is the last one known or an earlier one", _kept),
        Column("currency", "Which balance", attrgetter("currency")),
        Column("amount", "What was in it", attrgetter("amount")),
        Column("total_received", "Received in all until then", attrgetter("total_received")),
        Column("total_sent", "Sent in all until then", attrgetter("total_sent")),
        Column("transaction_count", "Transactions until then", attrgetter("transaction_count")),
        Column("as_of", "When the service said it", attrgetter("as_of")),
    ),
    rows=rows,
    counted=lambda _user, form: _snapshots(form),
    period=chosen_period,
)
