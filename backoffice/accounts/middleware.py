"""Nobody sees anything without sign-in and second factor, unless the view says so."""

from collections.abc import Callable
from typing import Any, cast
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth import middleware as django_auth
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from backoffice.accounts import selectors
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.accounts.navigation import step
from backoffice.accounts.sessions import SessionStore
from backoffice.audit.actions import Action
from backoffice.audit.services import record

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class AuthenticationMiddleware(django_auth.AuthenticationMiddleware):
    """`request.user` from the session's own query; a session that is no longer good is ended."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = cast(User, SimpleLazyObject(lambda: _person_of(cast(SessionStore, request.session))))


def _person_of(session: SessionStore) -> User | AnonymousUser:
    person = session.person
    if person is None and SESSION_KEY in session:
        session.flush()
    return person or AnonymousUser()


class StaffOnlyMiddleware:
    """Demands sign-in, second factor and stored recovery codes, in this order; keeps pages out of every cache.

    A view is opened by Django's `login_not_required`, or by `second_factor_not_required` for the steps
    of sign-in. Times are shown in the person's own time zone.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = request.user.time_zone if isinstance(request.user, User) else settings.TIME_ZONE
        with timezone.override(ZoneInfo(name)):
            response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        if not getattr(view, "login_required", True):
            return None
        if not request.user.is_authenticated:
            return step(request, "accounts:sign_in")
        if getattr(view, "counts_as_use", True):
            cast(SessionStore, request.session).note_use()
        missing = _missing_step(cast(StaffRequest, request), view)
        return step(request, missing) if missing else None

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Record who tried to change something without the permission; the page is still the plain 403."""
        if isinstance(exception, PermissionDenied) and request.method not in SAFE_METHODS:
            with transaction.atomic():
                record(Action.ACCESS_REFUSED, actor=cast(User, request.user), target=request.path)


def _missing_step(request: StaffRequest, view: Callable[..., Any]) -> str | None:
    """The step that this person still has to take before this view opens."""
    if not getattr(view, "second_factor_required", True):
        return None
    if request.session.authenticator is None:
        enrolled = selectors.authenticator_of(request.user) is not None
        return "accounts:second_factor" if enrolled else "accounts:enrol"
    if request.user.recovery_codes_kept_at is None and getattr(view, "recovery_codes_required", True):
        return "accounts:recovery_codes"
    return None
