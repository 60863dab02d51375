"""Where the object of an entry can be seen. By name only: the log lies below the applications it tells of."""

from django.urls import NoReverseMatch, reverse

PAGES = {
    "operations.operation": "operations:detail",
    "ledger.transaction": "operations:transaction",
    "webhooks.delivery": "webhooks:delivery",
}


def target_url(target_type: str, target_id: str) -> str:
    """The address of the object's page; empty where it has none."""
    page = PAGES.get(target_type)
    if page is None:
        return ""
    try:
        return reverse(page, args=[target_id])
    except NoReverseMatch:  # an entry outlives the pages of its day
        return ""
