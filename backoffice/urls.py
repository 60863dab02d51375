"""The root URLconf: one line for each app, and the addresses of pages that have moved."""

from django.conf import settings
from django.urls import URLPattern, include, path, re_path
from django.views.generic import RedirectView

from backoffice.core.telemetry.endpoints import failed_request

handler500 = failed_request


def moved(old: str, new: str) -> URLPattern:
    """Redirects the old address, and every address below it, so that bookmarks and links in messages still work."""
    return re_path(
        rf"^{old}(?P<rest>.*)$",
        RedirectView.as_view(url=f"/{new}%(rest)s", query_string=True, permanent=True),
    )


urlpatterns = [
    # before the pages of kinds, whose addresses are similar
    moved("operations/unknown/", "reconciliation/unknown/"),
    moved("operations/incidents/", "reconciliation/incidents/"),
    moved("operations/accounts/", "settings/recipients/"),
    moved("operations/filters/", "operations/views/"),
    moved("transactions/filters/", "transactions/views/"),
    moved("payments/", "operations/off-ramp-payments/"),
    path("", include("backoffice.operations.urls")),
    path("", include("backoffice.ledger.urls")),
    path("", include("backoffice.webhooks.urls")),
    path("", include("backoffice.notifications.urls")),
    path("account/", include("backoffice.accounts.urls")),
    path("reports/", include("backoffice.reports.urls")),
    path("settings/api-keys/", include("backoffice.api_keys.urls")),
    path("settings/audit/", include("backoffice.audit.urls")),
    path("settings/", include("backoffice.governance.urls")),
    moved("money/continuity/", "reconciliation/continuity/"),
    moved("webhooks/", "settings/webhooks/"),
    moved("keys/", "settings/api-keys/"),
    moved("audit/", "settings/audit/"),
    *([path("demo/", include("backoffice.demo.urls"))] if settings.DEMO else []),
]
