"""The merchant's wallet addresses, as the service tells them."""

from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from backoffice.accounts.decorators import polled
from backoffice.ledger.told import Told
from backoffice.ledger.views import VIEW
from backoffice.ledger.wallets import known_wallet, narrowed, wallet_now
from payments_gateway import Wallet

SHOWN = 50


@require_safe
@permission_required(VIEW, raise_exception=True)
def wallets(request: HttpRequest) -> HttpResponse:
    """The addresses as last told; htmx asks the service, and so does `?read=1` without JavaScript."""
    is_read = "read" in request.GET
    told = wallet_now() if is_read else known_wallet()
    return render(request, "ledger/wallets.html", _shown(request, told) | {"fresh": is_read})


@polled
@require_safe
@permission_required(VIEW, raise_exception=True)
def wallets_now(request: HttpRequest) -> HttpResponse:
    """The addresses as the service tells them now, or as it last told them."""
    return render(request, "ledger/_wallets.html", _shown(request, wallet_now()) | {"fresh": True})


def _shown(request: HttpRequest, told: Told[Wallet]) -> dict[str, Any]:
    """The addresses that fit the address bar, and the one whose QR code is drawn: one of them, never any other."""
    asked = {name: request.GET.get(name, "") for name in ("currency", "network")}
    found = narrowed(told.value, **asked)
    wanted = request.GET.get("show", "")
    drawn = next((one for one in found.addresses if one.address == wanted), None)
    return {
        "told": told,
        "asked": asked,
        "found": found,
        "rows": found.addresses[:SHOWN],
        "more": len(found.addresses) - SHOWN,
        "drawn": drawn or next(iter(found.addresses), None),
    }
