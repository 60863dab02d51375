"""URLs of the simulated provider under /v2/ and /v4/, and of the console and control API under /_sandbox/."""

from django.urls import include, path
from django.views.generic import RedirectView

from payments_gateway.sandbox.api import api_keys, balances, extras, merchant, payments, transactions, wallets
from payments_gateway.sandbox.control import console, views
from payments_gateway.sandbox.settings import PROFILE

v2 = [
    path("auth/api-key", api_keys.create),
    path("balance", balances.balance),
    path("balance/convert", balances.convert),
    path("balance/transfer", balances.transfer),
    path("balance/withdraw", balances.withdraw),
    path("bank/resolve", merchant.resolve_holder),
    path("callbackurl", merchant.callback_url),
    path("payment", payments.create),
    path("transaction", transactions.transactions),
    path("transaction/summary", transactions.summary),
    path("wallet", wallets.wallet),
    path("wallet/transfer", wallets.transfer),
    *extras.url_patterns,
]

v4 = [
    path("account", merchant.bank_accounts),
    path(PROFILE.key_generate_path[1:], api_keys.api_key),  # in both profiles also the path of deletion
    path(PROFILE.key_invalidate_path[1:], api_keys.invalidate),
    path(PROFILE.key_scopes_path[1:], api_keys.key_scopes),
    path(PROFILE.key_list_path[1:], api_keys.api_keys),
]

control = [
    path("", console.console),
    path("watch", console.watch),
    path("console/<slug:name>", console.submit_form),
    path("otp", views.one_time_codes),
    path("ledger", views.ledger_state),
    path("options", views.options),
    path("reset", views.reset),
    path("settle", views.settle),
    path("clock", views.clock_state),
    path("deposits", views.deposits),
    path("payments", views.pay_in),
    path("kyc", views.kyc),
    path("webhooks", views.webhook_deliveries),
    path("webhooks/keys", views.webhook_keys),
    path("webhooks/faults", views.webhook_faults),
    path("faults", views.faults),
    path("faults/<int:fault_id>", views.fault),
]

urlpatterns = [
    path("", RedirectView.as_view(url="/_sandbox/")),
    path("openapi.json", extras.openapi),
    path("v2/", include(v2)),
    path("v4/", include(v4)),
    path("_sandbox/", include(control)),
]

handler400 = "payments_gateway.sandbox.api.http.bad_request"
handler404 = "payments_gateway.sandbox.api.http.not_found"
handler500 = "payments_gateway.sandbox.api.http.internal_error"
