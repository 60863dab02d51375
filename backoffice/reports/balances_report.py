"""Balances: as last told by the service, and as they were every 15 minutes."""

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter

from backoffice.accounts.models import User
from backoffice.core.period import PeriodForm, end_of, start_of
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.reports.report import Column, Report, chosen_period, in_batches

ORDER = ("-as_of", "-id")


def rows(_user: User, form: PeriodForm) -> Iterator[Balance | BalanceSnapshot]:
    """The balances of the page first, then every snapshot, newest first; all within the chosen days."""
    since, until = form.cleaned_data["since"], form.cleaned_data["until"]
    within = {
        **({"as_of__gte": start_of(since)} if since else {}),
        **({"as_of__lt": end_of(until)} if until else {}),
    }
    snapshots = BalanceSnapshot.objects.filter(**within)
    return chain(Balance.objects.filter(**within), in_batches(snapshots, order=ORDER))


def _kept(row: Balance | BalanceSnapshot) -> str:
    return "last_known" if isinstance(row, Balance) else "snapshot"


BALANCES: Report[Balance | BalanceSnapshot, PeriodForm] = Report(
    name="balances",
    title="Balances",
    about="What the service said of each currency: last, and every 15 minutes before.",
    permission="ledger.view_balance",
    form=PeriodForm,
    columns=(
        Column("kept_as", _kept),
        Column("currency", attrgetter("currency")),
        Column("amount", attrgetter("amount")),
        Column("total_received", attrgetter("total_received")),
        Column("total_sent", attrgetter("total_sent")),
        Column("transaction_count", attrgetter("transaction_count")),
        Column("as_of", attrgetter("as_of")),
    ),
    rows=rows,
    period=chosen_period,
)
