"""Paths of the service under /v2/, and of the simulation under /_sandbox/."""

from django.urls import include, path
from django.views.generic import RedirectView

from payments_gateway.sandbox.control import views as control
from payments_gateway.sandbox.service import balances, banks, transactions

v2 = [
    path("balance", balances.balance),
    path("balance/withdraw", balances.withdraw),
    path("bank/resolve", banks.resolve),
    path("transaction", transactions.transactions),
]

simulation = [
    path("", control.console),
    path("token", control.token),
    path("ledger", control.ledger_now),
    path("options", control.options),
    path("reset", control.reset),
    path("settle", control.settle),
]

urlpatterns = [
    path("", RedirectView.as_view(url="/_sandbox/")),
    path("v2/", include(v2)),
    path("_sandbox/", include(simulation)),
]

handler400 = "payments_gateway.sandbox.wire.answers.bad_request"
handler404 = "payments_gateway.sandbox.wire.answers.not_found"
handler500 = "payments_gateway.sandbox.wire.answers.internal_error"
