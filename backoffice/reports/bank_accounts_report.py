"""Bank accounts: those that the service opened for the merchant, read live."""

from collections.abc import Callable, Iterator
from operator import attrgetter

from django import forms

from backoffice.accounts.models import User
from backoffice.ledger import selectors as ledger
from backoffice.reports.report import Column, Report, no_period
from payments_gateway import Account, Asset

Holding = tuple[Account, Asset | None]


def rows(_user: User, _form: forms.Form) -> Iterator[Holding]:
    """What each account holds in each currency; an account without any is a row as well. Raises GatewayError."""
    for account in ledger.own_accounts():
        for asset in account.assets or (None,):
            yield account, asset


def _of_asset(member: str) -> Callable[[Holding], object]:
    get = attrgetter(member)
    return lambda holding: get(holding[1]) if holding[1] else None


BANK_ACCOUNTS = Report(
    name="bank-accounts",
    title="Bank accounts",
    about="The accounts that the service opened for you, read from the service while you download.",
    permissions=("ledger.view_balance",),
    form=forms.Form,
    columns=(
        Column("account_name", "Whose name it bears", lambda holding: holding[0].account_name),
        Column("currency", "What it holds", _of_asset("currency")),
        Column("account_number", "The number or address", _of_asset("address")),
        Column("type", "Of what kind it is", _of_asset("type")),
        Column("holds", "How much is in it", _of_asset("balance")),
    ),
    rows=rows,
    period=no_period,
)
