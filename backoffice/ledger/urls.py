"""URLs of balances, bank accounts, wallets, statements, continuity and the callback URL."""

from django.urls import path

from backoffice.ledger.pages import accounts, statements

app_name = "ledger"
urlpatterns = [
    path("money/balances/", accounts.balances, name="balances"),
    path("money/balances/now/", accounts.balances_now, name="balances_now"),
    path("money/bank-accounts/", accounts.bank_accounts, name="bank_accounts"),
    path("money/bank-accounts/own/", accounts.own_accounts, name="own_accounts"),
    path("reconciliation/continuity/", statements.continuity, name="continuity"),
    path("money/mirror/", statements.sync_status, name="sync_status"),
    path("money/statements/", statements.statements, name="statements"),
    path("money/wallets/", accounts.wallets, name="wallets"),
    path("money/wallets/now/", accounts.wallets_now, name="wallets_now"),
    path("settings/webhooks/callback/", accounts.callback, name="callback"),
]
