"""Wallet addresses: where the merchant receives crypto, read live."""

from collections.abc import Iterator
from datetime import date
from operator import attrgetter

from django import forms

from backoffice.accounts.models import User
from backoffice.core.gateway import gateway
from backoffice.reports.report import Column, Period, Report
from payments_gateway import WalletAddress


class WalletsForm(forms.Form):
    """There is nothing to choose: the list is short."""


def rows(_user: User, _form: WalletsForm) -> Iterator[WalletAddress]:
    """The addresses in the order of the service. Raises GatewayError."""
    return iter(gateway().wallets.get().addresses)


def period(_form: WalletsForm, _today: date) -> Period:
    """The list as it stands."""
    return Period()


WALLETS: Report[WalletAddress, WalletsForm] = Report(
    name="wallets",
    title="Wallet addresses",
    about="Where you receive crypto, by currency and network, read from the service while you download.",
    permission="ledger.view_balance",
    form=WalletsForm,
    columns=(
        Column("currency", attrgetter("currency")),
        Column("network", attrgetter("network")),
        Column("address", attrgetter("address")),
    ),
    rows=rows,
    period=period,
)
