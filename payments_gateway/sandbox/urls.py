"""Paths of the service under /v2/ and /v4/, and of the simulation under /_sandbox/."""

from django.urls import include, path
from django.views.generic import RedirectView

from payments_gateway.sandbox.control import views as control
from payments_gateway.sandbox.service import accounts, api_keys, balances, banks, callbacks, transactions

v2 = [
    path("auth/api-key", api_keys.create),
    path("balance", balances.balance),
    path("balance/withdraw", balances.withdraw),
    path("bank/resolve", banks.resolve),
    path("callbackurl", callbacks.callback_url),
    path("transaction", transactions.transactions),
]

v4 = [
    path("account", accounts.account),
    path("user/api-key", api_keys.api_key),
    path("user/api-key/invalidate", api_keys.invalidate),
    path("user/api-key/scopes", api_keys.key_scopes),
    path("user/api-keys", api_keys.api_keys),
    # The other spelling of key management that is in use (wire/operations.py).
    path("user/apikey", api_keys.api_key),
    path("user/apikey-scope", api_keys.key_scopes),
    path("user/apikeys", api_keys.api_keys),
    path("user/invalidate-apikey", api_keys.invalidate),
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
    path("v4/", include(v4)),
    path("_sandbox/", include(simulation)),
]

handler400 = "payments_gateway.sandbox.wire.answers.bad_request"
handler404 = "payments_gateway.sandbox.wire.answers.not_found"
handler500 = "payments_gateway.sandbox.wire.answers.internal_error"
