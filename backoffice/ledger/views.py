"""Balances, bank accounts and the callback address, as the service tells them."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.decorators import polled
from backoffice.ledger import selectors, services
from backoffice.ledger.callback import shown
from backoffice.ledger.forms import AccountForm
from backoffice.ledger.models import Balance
from backoffice.ledger.trend import REACHES_BACK, Trend, trend_of
from payments_gateway import AccountHolder, GatewayError, RejectedError

VIEW = "ledger.view_balance"
# The kinds of operation that take money from a balance; the template offers those that exist and that the person may.
_OF_FIAT, _OF_CRYPTO = ("conversion", "withdrawal", "transfer"), ("wallet_transfer",)


@dataclass(frozen=True)
class Position:
    """One currency on the page: the balance, how it went, and what may be prepared from it."""

    balance: Balance
    trend: Trend
    moved_by: tuple[str, ...]


@require_safe
@permission_required(VIEW, raise_exception=True)
def balances(request: HttpRequest) -> HttpResponse:
    """The balances as last known; htmx asks the service, and so does `?read=1` without JavaScript."""
    shown = _read_balances() if "read" in request.GET else _balances(selectors.known_balances())
    return render(request, "ledger/balances.html", shown)


@polled
@require_safe
@permission_required(VIEW, raise_exception=True)
def balances_now(request: HttpRequest) -> HttpResponse:
    """The balances as the service tells them now, or the last known ones if it does not answer."""
    return render(request, "ledger/_balances.html", _read_balances())


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW, raise_exception=True)
def bank_accounts(request: HttpRequest) -> HttpResponse:
    """Whose account is it; and the merchant's own accounts. A POST only reads: it keeps numbers out of addresses."""
    form = AccountForm(request.POST if request.method == "POST" else None)
    holder = _holder(form) if form.is_bound and form.is_valid() else None
    told = selectors.own_accounts_now() if "read" in request.GET else selectors.known_own_accounts()
    context = {"form": form, "holder": holder, "told": told, "fresh": "read" in request.GET}
    return render(request, "ledger/bank_accounts.html", context, status=422 if form.errors else 200)


@polled
@require_safe
@permission_required(VIEW, raise_exception=True)
def own_accounts(request: HttpRequest) -> HttpResponse:
    """The merchant's own accounts as the service tells them now, or as it last told them."""
    return render(request, "ledger/_accounts.html", {"told": selectors.own_accounts_now(), "fresh": True})


@polled
@require_safe
@permission_required(VIEW, raise_exception=True)
def callback(request: HttpRequest) -> HttpResponse:
    """The callback address as the service tells it now, or as it last told it."""
    context = shown(selectors.callback_url_now()) | {"fresh": True}
    return render(request, "ledger/_callback.html", context)


def _read_balances() -> dict[str, Any]:
    try:
        return _balances(services.refresh_balances()) | {"fresh": True}
    except GatewayError as exc:
        return _balances(selectors.known_balances()) | {"fresh": True, "problem": exc.message}


def _balances(known: list[Balance]) -> dict[str, Any]:
    snapshots = selectors.snapshots_since(timezone.now() - 2 * REACHES_BACK)
    positions = [
        Position(
            balance, trend_of(balance, snapshots), _OF_CRYPTO if balance.currency == "USDT" else _OF_FIAT
        )
        for balance in known
    ]
    return {"positions": positions}


def _holder(form: AccountForm) -> AccountHolder | None:
    """Who holds the account; None with the reason in the form."""
    values = form.cleaned_data
    try:
        return selectors.account_holder(values["account_number"], values["bank_code"])
    except RejectedError as exc:
        form.add_error("account_number", f"The bank knows no such account: {exc.message}")
    except GatewayError:
        form.add_error(None, "The account could not be checked: the service does not answer. Try again.")
    return None
