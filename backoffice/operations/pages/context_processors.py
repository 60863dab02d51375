"""What every page shows of operations: how many wait, the pause, and unrecognised transactions."""

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from backoffice.accounts.models import User
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.permissions import VIEW
from backoffice.operations.policy import may_decide_any
from backoffice.operations.reconciliation.selectors import cached_unrecognised_count
from backoffice.operations.selectors import operations_waiting_for


def waiting_count(request: HttpRequest) -> dict[str, object]:
    """Context processor: `waiting_count`, queried only if a template uses it."""
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not may_decide_any(person):
        return {"waiting_count": 0}
    return {"waiting_count": SimpleLazyObject(lambda: operations_waiting_for(person).count())}


def payments_pause(request: HttpRequest) -> dict[str, object]:
    """Context processor: `payments_pause`, the current pause, for everyone who may see operations."""
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not person.has_perm(VIEW):
        return {"payments_pause": None}
    return {"payments_pause": SimpleLazyObject(cached_pause)}


def unrecognised_transactions(request: HttpRequest) -> dict[str, object]:
    """Context processor: `unknown_movements`, the number of unacknowledged unrecognised transactions.

    Counted only if a template uses it.
    """
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not person.has_perm(VIEW):
        return {"unknown_movements": 0}
    return {"unknown_movements": cached_unrecognised_count}
