"""Where the object of an entry can be seen, and what a code in its detail means in words.

By name only, and by what is registered: the log lies below the applications it tells of.
"""

from collections.abc import Callable
from typing import Any

from django.urls import NoReverseMatch, reverse

PAGES = {
    "operations.operation": "operations:detail",
    "ledger.transaction": "operations:transaction",
    "webhooks.delivery": "webhooks:delivery",
}


SENTENCES: dict[str, Callable[[Any], str]] = {}
"""What makes a sentence of the codes under a name of the detail; each application registers its own."""


def target_url(target_type: str, target_id: str) -> str:
    """The address of the object's page; empty where it has none."""
    page = PAGES.get(target_type)
    if page is None:
        return ""
    try:
        return reverse(page, args=[target_id])
    except NoReverseMatch:  # an entry outlives the pages of its day
        return ""
