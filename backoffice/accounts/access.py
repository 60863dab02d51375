"""Access control for every view: sign-in and second factor are required unless the view says otherwise.

The middleware enforces it; the decorators mark the exceptions. A request that lacks a step is redirected to
that step and back.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.auth import middleware as django_auth
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme
from django_htmx.http import HttpResponseClientRedirect

from backoffice.accounts import second_factor
from backoffice.accounts.models import Language, User
from backoffice.accounts.second_factor import has_fresh_second_factor
from backoffice.accounts.sessions import SessionStore, StaffRequest
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core.logs import redact_secrets
from backoffice.core.web.request_context import set_user

NEXT_PARAMETER = "next"


def redirect_to_step(request: HttpRequest, name: str) -> HttpResponse:
    """Redirect to a step of sign-in, which returns to the current page.

    An htmx request gets a header that loads the whole page, so that no sign-in form is inserted into another
    page.
    """
    address = url_with_next(name, _current_page(request))
    if request.headers.get("HX-Request") == "true":
        return HttpResponseClientRedirect(address)
    return HttpResponseRedirect(address)


def url_with_next(name: str, next_url: str) -> str:
    """The URL of a step, with the page to open after it."""
    return f"{reverse(name)}?{urlencode({NEXT_PARAMETER: next_url})}" if next_url else reverse(name)


def next_page(request: HttpRequest) -> str:
    """The path of the page requested before sign-in, if it is ours; otherwise the empty string."""
    next_url = request.POST.get(NEXT_PARAMETER) or request.GET.get(NEXT_PARAMETER, "")
    return next_url if next_url.startswith("/") and _is_own_url(request, next_url) else ""


def page_after_sign_in(request: HttpRequest) -> str:
    """The page requested before sign-in, or the overview."""
    return next_page(request) or resolve_url(settings.LOGIN_REDIRECT_URL)


def _current_page(request: HttpRequest) -> str:
    """The page that the person has open. Not the target of a form, which cannot be opened by GET."""
    if request.method == "GET" and "HX-Request" not in request.headers:
        return request.get_full_path()
    shown = request.headers.get("HX-Current-URL") or request.headers.get("Referer", "")
    parts = urlsplit(shown)
    return parts._replace(scheme="", netloc="", fragment="").geturl() if _is_own_url(request, shown) else ""


def _is_own_url(request: HttpRequest, address: str) -> bool:
    return url_has_allowed_host_and_scheme(address, {request.get_host()}, require_https=request.is_secure())


_View = TypeVar("_View", bound=Callable[..., HttpResponseBase])


def second_factor_not_required(view: _View) -> _View:
    """The password is enough: for the steps of sign-in and for signing out."""
    return _marked(view, second_factor_required=False)


def recovery_codes_not_required(view: _View) -> _View:
    """Open to people who have given the second factor but have not confirmed their recovery codes."""
    return _marked(view, recovery_codes_required=False)


def does_not_extend_session(view: _View) -> _View:
    """For views that a page calls automatically: such a request is not activity, so it does not extend the
    session.
    """
    return _marked(view, counts_as_use=False)


def fresh_second_factor_required(view: _View) -> _View:
    """Ask for a code unless one was given within the last five minutes, then return to this view."""

    @wraps(view)
    def guarded(request: StaffRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not has_fresh_second_factor(request):
            return redirect_to_step(request, "accounts:second_factor")
        return view(request, *args, **kwargs)

    return cast(_View, guarded)


def _marked(view: _View, **marks: Any) -> _View:
    @wraps(view)
    def marked(*args: Any, **kwargs: Any) -> HttpResponseBase:
        return view(*args, **kwargs)

    for name, value in marks.items():
        setattr(marked, name, value)
    return cast(_View, marked)


class AuthenticationMiddleware(django_auth.AuthenticationMiddleware):
    """Sets `request.user` from the session's own query, and ends a session that is no longer valid."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = cast(User, SimpleLazyObject(lambda: _person_of(cast(SessionStore, request.session))))


def _person_of(session: SessionStore) -> User | AnonymousUser:
    person = session.person
    if person is None and SESSION_KEY in session:
        session.flush()
    return person or AnonymousUser()


class StaffOnlyMiddleware:
    """Requires sign-in, second factor and confirmed recovery codes, in this order, and forbids caching of
    pages.

    Django's `login_not_required` opens a view, `second_factor_not_required` the steps of sign-in. Activates
    the person's time zone and language.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        zone = settings.TIME_ZONE
        if isinstance(request.user, User):
            zone = request.user.time_zone
            set_user(request.user.pk)
        language = language_of(request)
        with timezone.override(ZoneInfo(zone)), translation.override(language):
            response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "no-store")
        response.headers.setdefault("Content-Language", language)
        return response

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        if not getattr(view, "login_required", True):
            return None
        if not request.user.is_authenticated:
            return redirect_to_step(request, "accounts:sign_in")
        if getattr(view, "counts_as_use", True):
            cast(SessionStore, request.session).record_use()
        missing = _missing_step(cast(StaffRequest, request), view)
        return redirect_to_step(request, missing) if missing else None

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Record an attempt without permission, to read or to change; the response remains the plain 403.

        Only of people who are signed in: others are sent to sign in before a view can refuse them.
        """
        if isinstance(exception, PermissionDenied) and isinstance(request.user, User):
            with transaction.atomic():
                path = redact_secrets(request.path)
                record(Action.ACCESS_REFUSED, actor=request.user, target=path, method=request.method)


def language_of(request: HttpRequest) -> str:
    """The language that the person chose, or else the first of the browser's languages that we have."""
    if isinstance(request.user, User) and request.user.language != Language.AUTO:
        return request.user.language
    return translation.get_language_from_request(request)


def _missing_step(request: StaffRequest, view: Callable[..., Any]) -> str | None:
    """The step of sign-in that this person has to take before this view opens; None if there is none."""
    if not getattr(view, "second_factor_required", True):
        return None
    if request.session.authenticator is None:
        enrolled = second_factor.authenticator_of(request.user) is not None
        return "accounts:second_factor" if enrolled else "accounts:enrol"
    if request.user.recovery_codes_stored_at is None and getattr(view, "recovery_codes_required", True):
        return "accounts:recovery_codes"
    return None


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The response if Django's CSRF check fails: a page left open across a sign-in, or an attack.

    Recorded in the audit log only for people who are signed in: others could fill the log.
    """
    if isinstance(request.user, User):
        with transaction.atomic():
            record(
                Action.ACCESS_REFUSED, actor=request.user, target=redact_secrets(request.path), reason=reason
            )
    return render(request, "403_csrf.html", status=403)
