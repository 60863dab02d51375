"""Wallet addresses: where the merchant receives crypto, read live."""

from collections.abc import Iterator
from operator import attrgetter

from django import forms

from backoffice.accounts.models import User
from backoffice.core.gateway import gateway
from backoffice.ledger.wallets import narrowed
from backoffice.reports.report import Column, Report, no_period
from payments_gateway import WalletAddress

_ALL = forms.TextInput(attrs={"placeholder": "All"})


class WalletsForm(forms.Form):
    """The filters of the page of wallets."""

    currency = forms.CharField(required=False, max_length=40, widget=_ALL)
    network = forms.CharField(required=False, max_length=40, widget=_ALL)


def rows(_user: User, form: WalletsForm) -> Iterator[WalletAddress]:
    """The addresses that the page shows for these filters, in the order of the service. Raises GatewayError."""
    return iter(narrowed(gateway().wallets.get(), **form.cleaned_data).addresses)


WALLETS = Report(
    name="wallets",
    title="Wallet addresses",
    about="Where you receive crypto, by currency and network, read from the service while you download.",
    permissions=("ledger.view_balance",),
    form=WalletsForm,
    columns=(
        Column("currency", "What can be received", attrgetter("currency")),
        Column("network", "Over which network", attrgetter("network")),
        Column("address", "Where to send it", attrgetter("address")),
    ),
    rows=rows,
    period=no_period,
)
