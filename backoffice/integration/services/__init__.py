"""Everything that changes what is known of keys. Each function is one transaction, or says why it is not."""

from backoffice.integration.services.listing import LISTED_EVERY, TRY_AGAIN_AFTER, keep_keys, refresh_keys
from backoffice.integration.services.revealing import check_may_be_shown, reveal_secret
from backoffice.integration.services.rotating import (
    abandon_rotation,
    begin_watch,
    finish_rotation,
    start_rotation,
    try_new_key,
)

__all__ = [
    "LISTED_EVERY",
    "TRY_AGAIN_AFTER",
    "abandon_rotation",
    "begin_watch",
    "check_may_be_shown",
    "finish_rotation",
    "keep_keys",
    "refresh_keys",
    "reveal_secret",
    "start_rotation",
    "try_new_key",
]
