"""The root URLconf: one line for each app."""

from django.urls import include, path

urlpatterns = [
    path("", include("backoffice.operations.urls")),
    path("", include("backoffice.ledger.urls")),
    path("", include("backoffice.webhooks.urls")),
    path("account/", include("backoffice.accounts.urls")),
    path("audit/", include("backoffice.audit.urls")),
    path("keys/", include("backoffice.api_keys.urls")),
    path("reports/", include("backoffice.reports.urls")),
]
