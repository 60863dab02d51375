"""Which page shows the object of an entry, and which sentence a code in its detail stands for.

Applications register theirs by name, because the log lies below them.
"""

from collections.abc import Callable
from typing import Any

from django.urls import NoReverseMatch, reverse

TARGET_PAGES = {
    "operations.operation": "operations:detail",
    "ledger.transaction": "operations:transaction",
    "webhooks.delivery": "webhooks:delivery",
}


SENTENCES: dict[str, Callable[[Any], str]] = {}
"""What makes a sentence of the codes under a name of the detail; each application registers its own."""


def target_url(target_type: str, target_id: str) -> str:
    """The address of the object's page; empty where it has none."""
    page = TARGET_PAGES.get(target_type)
    if page is None:
        return ""
    try:
        return reverse(page, args=[target_id])
    except NoReverseMatch:  # an entry outlives the pages of its day
        return ""
