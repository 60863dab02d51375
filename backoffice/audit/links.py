"""How an entry is shown: the URL of its object's page, and sentences for codes in its detail.

Other apps register their sentences here, because the audit app must not import them. The URL names of their
pages are listed in `TARGET_PAGES`.
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
"""Functions that turn the codes under a name of the detail into a sentence, registered by the apps."""


def target_url(target_type: str, target_id: str) -> str:
    """The URL of the object's page; empty if it has none."""
    page = TARGET_PAGES.get(target_type)
    if page is None:
        return ""
    try:
        return reverse(page, args=[target_id])
    except NoReverseMatch:  # an old entry may name a page that no longer exists
        return ""
