"""What the service says of the merchant's money, accounts and callback address."""

from django.urls import path

from backoffice.ledger import views, views_books, views_mirror, views_wallets

app_name = "ledger"
urlpatterns = [
    path("money/balances/", views.balances, name="balances"),
    path("money/balances/now/", views.balances_now, name="balances_now"),
    path("money/bank-accounts/", views.bank_accounts, name="bank_accounts"),
    path("money/bank-accounts/own/", views.own_accounts, name="own_accounts"),
    path("money/continuity/", views_books.continuity, name="continuity"),
    path("money/mirror/", views_mirror.mirror, name="mirror"),
    path("money/statements/", views_books.statements, name="statements"),
    path("money/wallets/", views_wallets.wallets, name="wallets"),
    path("money/wallets/now/", views_wallets.wallets_now, name="wallets_now"),
    path("webhooks/callback/", views.callback, name="callback"),
]
