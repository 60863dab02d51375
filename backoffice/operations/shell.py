"""What operations add to the frame of every page: what waits for who looks, what is unknown, whether sending stands."""

from django.http import HttpRequest
from django.utils.functional import SimpleLazyObject

from backoffice.accounts.models import User
from backoffice.operations.panel import takes_decisions
from backoffice.operations.pause import pause_on_pages
from backoffice.operations.permissions import VIEW
from backoffice.operations.reconciliation import movements_on_pages
from backoffice.operations.selectors import operations_waiting_for


def waiting(request: HttpRequest) -> dict[str, object]:
    """Context processor: `waiting_count`, asked of the database only where a template shows it."""
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not takes_decisions(person):
        return {"waiting_count": 0}
    return {"waiting_count": SimpleLazyObject(lambda: operations_waiting_for(person).count())}


def sending_pause(request: HttpRequest) -> dict[str, object]:
    """Context processor: `sending_pause`, the pause that stands, for everybody who may see operations."""
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not person.has_perm(VIEW):
        return {"sending_pause": None}
    return {"sending_pause": SimpleLazyObject(pause_on_pages)}


def movements(request: HttpRequest) -> dict[str, object]:
    """Context processor: `unknown_movements`, how many at the service nobody prepared here and nobody took note of.

    They are counted when a template asks.
    """
    person = getattr(request, "user", None)
    if not isinstance(person, User) or not person.has_perm(VIEW):
        return {"unknown_movements": 0}
    return {"unknown_movements": movements_on_pages}
