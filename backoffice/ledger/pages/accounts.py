"""Pages of balances, bank accounts and wallet addresses, and the callback URL panel of the webhooks page."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.core.cached_reads import CachedValue, failed_read_text
from backoffice.core.web.forms import PageForm
from backoffice.ledger import callback_url
from backoffice.ledger.accounts import (
    banks,
    cached_own_accounts,
    cached_selection,
    cached_supported_currencies,
    holder_details,
    refresh_own_accounts,
    refresh_selection,
    resolve_account_holder,
    supported_currencies,
    unresolved_text,
)
from backoffice.ledger.balances import (
    TREND_PERIOD,
    BalanceTrend,
    balance_trend,
    refresh_balances,
    snapshots_since,
    stored_balances,
)
from backoffice.ledger.callback_url import callback_url_context
from backoffice.ledger.models import Balance
from payments_gateway import AccountHolder, GatewayError, SupportedCurrency


class AccountHolderForm(PageForm):
    """The bank account whose holder is to be resolved."""

    bank_code = forms.ChoiceField(
        label=_("Bank"),
        widget=forms.Select(attrs={"translate": "no"}),
        error_messages={"required": _("Select a bank.")},
    )
    account_number = forms.CharField(
        label=_("Account number"),
        error_messages={"required": _("Enter the account number.")},
        help_text=_("10 digits"),
        validators=[RegexValidator(r"^[0-9]{10}\Z", _("Enter exactly 10 digits."))],
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "maxlength": "34"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bank_code: Any = self.fields["bank_code"]
        bank_code.choices = [
            ("", gettext("Select a bank")),
            *sorted(banks().items(), key=lambda item: item[1]),
        ]


VIEW = "ledger.view_balance"
# The kinds of operation that debit a balance; the template offers those that exist and that the person may
# prepare.
_FIAT_KINDS, _CRYPTO_KINDS = ("conversion", "withdrawal", "transfer"), ("wallet_transfer",)
_TOTALS = ("total_received", "total_sent", "transaction_count")


@dataclass(frozen=True)
class BalanceCard:
    """One currency on the page: balance, trend, and the kinds of operation that can be prepared."""

    balance: Balance
    trend: BalanceTrend
    kinds: tuple[str, ...]


@require_safe
@permission_required(VIEW, raise_exception=True)
def balances(request: HttpRequest) -> HttpResponse:
    """The balances as last reported. htmx then reads them anew; `?read=1` does so without JavaScript."""
    if "read" in request.GET:
        shown = _refreshed_balances()
    else:
        shown = _balance_cards(stored_balances()) | _currency_rows(cached_supported_currencies())
    return render(request, "ledger/balances.html", shown)


@does_not_extend_session
@require_safe
@permission_required(VIEW, raise_exception=True)
def balances_now(request: HttpRequest) -> HttpResponse:
    """The balances read now, or as last reported if that fails."""
    return render(request, "ledger/_balances.html", _refreshed_balances())


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW, raise_exception=True)
def bank_accounts(request: HttpRequest) -> HttpResponse:
    """Resolve the holder of an account, and list the merchant's own.

    POST only reads: it keeps numbers out of URLs.
    """
    form = AccountHolderForm(request.POST if request.method == "POST" else None)
    holder = _resolve_holder(form) if form.is_bound and form.is_valid() else None
    cached = refresh_own_accounts() if "read" in request.GET else cached_own_accounts()
    context = {
        "form": form,
        "holder": holder,
        "holder_details": holder_details(holder) if holder else [],
        "cached": cached,
        "fresh": "read" in request.GET,
    }
    return render(request, "ledger/bank_accounts.html", context, status=422 if form.errors else 200)


@does_not_extend_session
@require_safe
@permission_required(VIEW, raise_exception=True)
def own_accounts(request: HttpRequest) -> HttpResponse:
    """The merchant's own accounts read now, or as last reported if that fails."""
    return render(request, "ledger/_accounts.html", {"cached": refresh_own_accounts(), "fresh": True})


@does_not_extend_session
@require_safe
@permission_required(VIEW, raise_exception=True)
def callback(request: HttpRequest) -> HttpResponse:
    """The callback URL read now, or as last reported if that fails."""
    context = callback_url_context(callback_url.refresh_callback_url()) | {"fresh": True}
    return render(request, "ledger/_callback.html", context)


def _refreshed_balances() -> dict[str, Any]:
    try:
        shown = _balance_cards(refresh_balances()) | _currency_rows(supported_currencies())
    except GatewayError as exc:  # of the balances; then no second request is made
        shown = _balance_cards(stored_balances()) | _currency_rows(cached_supported_currencies())
        shown["problem"] = failed_read_text(exc)
    return shown | {"fresh": True}


def _currency_rows(supported: CachedValue[list[SupportedCurrency]] | None) -> dict[str, Any]:
    """The supported currencies by direction, as far as the provider reports directions."""
    listed = (supported.value if supported else None) or []
    directions = {
        gettext("Pay-in"): [one for one in listed if one.is_incoming],
        gettext("Payout"): [one for one in listed if one.is_outgoing],
        gettext("Direction not provided"): [
            one for one in listed if one.is_incoming is one.is_outgoing is None
        ],
    }
    rows = [(label, currencies) for label, currencies in directions.items() if currencies]
    return {"supported": supported, "currency_rows": rows}


def _balance_cards(known: list[Balance]) -> dict[str, Any]:
    """Each balance with its trend, and the names of the totals that are reported for at least one of them.

    A provider may report no totals. Then the table is left out: it would only repeat the balances.
    """
    snapshots = snapshots_since(timezone.now() - 2 * TREND_PERIOD)
    positions = [
        BalanceCard(
            balance,
            balance_trend(balance, snapshots),
            _CRYPTO_KINDS if balance.currency == "USDT" else _FIAT_KINDS,
        )
        for balance in known
    ]
    totals = [name for name in _TOTALS if any(getattr(balance, name) is not None for balance in known)]
    return {"positions": positions, "totals": totals}


def _resolve_holder(form: AccountHolderForm) -> AccountHolder | None:
    """The holder of the account; None with the reason as a form error."""
    values = form.cleaned_data
    try:
        return resolve_account_holder(values["account_number"], values["bank_code"])
    except GatewayError as exc:
        form.add_error("account_number", unresolved_text(exc))
    return None


MAX_ADDRESSES = 50


@require_safe
@permission_required(VIEW, raise_exception=True)
def wallets(request: HttpRequest) -> HttpResponse:
    """The addresses as last reported. htmx then reads them anew; `?read=1` does so without JavaScript."""
    return render(request, "ledger/wallets.html", _wallet_context(request, is_read="read" in request.GET))


@does_not_extend_session
@require_safe
@permission_required(VIEW, raise_exception=True)
def wallets_now(request: HttpRequest) -> HttpResponse:
    """The addresses read now, or as last reported if that fails."""
    return render(request, "ledger/_wallets.html", _wallet_context(request, is_read=True))


def _wallet_context(request: HttpRequest, *, is_read: bool) -> dict[str, Any]:
    """The addresses that match the query string, and the one whose QR code is drawn, always one of these."""
    filters = {name: request.GET.get(name, "") for name in ("currency", "network")}
    found = (refresh_selection if is_read else cached_selection)(**filters)
    requested_address = request.GET.get("show", "")
    selected_address = next((one for one in found.addresses if one.address == requested_address), None)
    return {
        "cached": found.cached,
        "wallet": found.cached.value,
        "fresh": is_read,
        "filters": filters,
        "found": found,
        "rows": found.addresses[:MAX_ADDRESSES],
        "more": len(found.addresses) - MAX_ADDRESSES,
        "selected_address": selected_address or next(iter(found.addresses), None),
    }
