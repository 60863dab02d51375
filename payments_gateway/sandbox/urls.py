"""Paths of the service under /v2/ and /v4/, and of the simulation under /_sandbox/."""

from django.urls import include, path
from django.views.generic import RedirectView

from payments_gateway.sandbox.control import console, faults, oracle, webhooks, world
from payments_gateway.sandbox.control import views as control
from payments_gateway.sandbox.service import (
    accounts,
    api_keys,
    balances,
    banks,
    callbacks,
    document,
    extras,
    payments,
    transactions,
    wallets,
)

v2 = [
    path("auth/api-key", api_keys.create),
    path("balance", balances.balance),
    path("balance/convert", balances.convert),
    path("balance/transfer", balances.transfer),
    path("balance/withdraw", balances.withdraw),
    path("bank/resolve", banks.resolve),
    path("callbackurl", callbacks.callback_url),
    path("payment", payments.create),
    path("transaction", transactions.transactions),
    path("transaction/summary", transactions.summary),
    path("wallet", wallets.wallet),
    path("wallet/transfer", wallets.transfer),
    *extras.paths,
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
    path("", console.console),
    path("watch", console.watch),
    path("console/<slug:name>", console.act),
    path("token", control.token),
    path("ledger", oracle.ledger_now),
    path("options", control.options),
    path("reset", control.reset),
    path("settle", control.settle),
    path("clock", world.clock_now),
    path("deposits", world.deposits),
    path("payments", world.pay_in),
    path("kyc", world.kyc),
    path("webhooks", webhooks.deliveries),
    path("webhooks/keys", webhooks.keys),
    path("webhooks/faults", webhooks.faults),
    path("faults", faults.faults),
    path("faults/<int:fault_id>", faults.fault),
]

urlpatterns = [
    path("", RedirectView.as_view(url="/_sandbox/")),
    path("openapi.json", document.openapi),
    path("v2/", include(v2)),
    path("v4/", include(v4)),
    path("_sandbox/", include(simulation)),
]

handler400 = "payments_gateway.sandbox.wire.answers.bad_request"
handler404 = "payments_gateway.sandbox.wire.answers.not_found"
handler500 = "payments_gateway.sandbox.wire.answers.internal_error"
