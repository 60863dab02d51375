"""Overview and operations."""

from django.urls import path

from backoffice.operations.views import (
    bulk,
    decisions,
    detail,
    filters,
    lists,
    payments,
    preparing,
    search,
    transactions,
)

app_name = "operations"
urlpatterns = [
    path("", lists.overview, name="overview"),
    path("balances/", lists.balances, name="balances"),
    path("operations/", lists.operation_list, name="list"),
    path("operations/approve/", bulk.approve_many, name="approve_many"),
    path("operations/reject/", bulk.reject_many, name="reject_many"),
    path("operations/filters/", filters.filters, name="filters"),
    path("operations/filters/<int:pk>/rename/", filters.rename, name="rename_filter"),
    path("operations/filters/<int:pk>/delete/", filters.delete, name="delete_filter"),
    path("search/", search.search, name="search"),
    path("operations/prepare/<slug:kind_name>/", preparing.prepare, name="prepare"),
    path("operations/prepare/<slug:kind_name>/check/", preparing.check, name="prepare_check"),
    path("operations/<uuid:pk>/", detail.detail, name="detail"),
    path("operations/<uuid:pk>/live/", detail.live, name="live"),
    path("operations/<uuid:pk>/approve/", decisions.approve, name="approve"),
    path("operations/<uuid:pk>/approve-and-send/", decisions.approve_and_send, name="approve_and_send"),
    path("operations/<uuid:pk>/reject/", decisions.reject, name="reject"),
    path("operations/<uuid:pk>/release/", decisions.release, name="release"),
    path("operations/<uuid:pk>/cancel/", decisions.cancel, name="cancel"),
    path("operations/<uuid:pk>/check/", decisions.check, name="check"),
    path("operations/<uuid:pk>/payment/", payments.payment_now, name="payment_now"),
    path("payments/", payments.payments, name="payments"),
    path("payments/now/", payments.payments_now, name="payments_now"),
    path("transactions/", transactions.transactions, name="transactions"),
    path("transactions/now/", transactions.transactions_now, name="transactions_now"),
]
