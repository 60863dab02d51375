"""What every page shows of operations: its place in the navigation, how many wait, the pause, open cases."""

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from backoffice.accounts.models import User
from backoffice.operations.approval import waiting
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.permissions import VIEW
from backoffice.operations.policy import may_decide_any
from backoffice.operations.reconciliation.selectors import cached_open_case_count, cached_unrecognised_count

_RECONCILIATION = frozenset(
    f"operations:{name}"
    for name in ("reconciliation", "investigation", "case", "incidents", "incident", "break_glass")
) | {"ledger:continuity"}
_OPERATIONS = frozenset(f"operations:{name}" for name in ("list", "kind", "payments"))
_TRANSACTIONS = frozenset({"operations:transactions", "operations:transaction_summary"})
_SETTINGS = frozenset({"operations:system", "notifications:undelivered"})
_SETTINGS_APPS = frozenset({"api_keys", "audit", "governance", "webhooks"})
_OWN_ACCOUNT = frozenset({"governance:delegations"})  # a tab of My account


def section(request: HttpRequest) -> dict[str, str]:
    """Context processor: `section`, the section of the navigation to which this page's tabs belong; or empty."""
    match = request.resolver_match
    if match is None:
        return {"section": ""}
    if match.view_name in _OPERATIONS:
        return {"section": "operations"}
    if match.view_name in _TRANSACTIONS:
        return {"section": "transactions"}
    if match.view_name in _RECONCILIATION:
        return {"section": "reconciliation"}
    is_setting = match.view_name in _SETTINGS or match.app_name in _SETTINGS_APPS
    return {"section": "settings" if is_setting and match.view_name not in _OWN_ACCOUNT else ""}


def waiting_count(request: HttpRequest) -> dict[str, object]:
    """Context processor: `waiting_count`, queried only if a template uses it."""
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not may_decide_any(person):
        return {"waiting_count": 0}
    return {"waiting_count": SimpleLazyObject(lambda: waiting.waiting_count(person))}


def payments_pause(request: HttpRequest) -> dict[str, object]:
    """Context processor: `payments_pause`, the current pause, for everyone who may see operations."""
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not person.has_perm(VIEW):
        return {"payments_pause": None}
    return {"payments_pause": SimpleLazyObject(cached_pause)}


def unrecognised_transactions(request: HttpRequest) -> dict[str, object]:
    """Context processor: `unknown_movements`, the number of unacknowledged unrecognised transactions, and
    `reconciliation_count`, of all that waits for people there. Counted only if a template uses it.
    """
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not person.has_perm(VIEW):
        return {"unknown_movements": 0, "reconciliation_count": 0}
    return {"unknown_movements": cached_unrecognised_count, "reconciliation_count": cached_open_case_count}
