"""The password: the first step of sign-in, sign-out, password change, set-up links, and the lock-out after wrong
passwords or links.
"""

from typing import Any

from axes.handlers.proxy import AxesProxyHandler
from django.conf import settings
from django.contrib import auth
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_variables

from backoffice.accounts.models import SetupLink, StaffSession, User
from backoffice.accounts.roles import StaffBackend
from backoffice.accounts.sessions import SessionStore, StaffRequest, delete_other_sessions, end_sessions_of
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core import clock
from backoffice.core.web import request_context


class SignInRefusedError(Exception):
    """Wrong email address or password; the message does not say which."""

    def __init__(self) -> None:
        super().__init__(gettext("Wrong email address or password. You are not signed in. Try again."))


class LockedOutError(Exception):
    """Too many wrong passwords for this email address from this network address."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "Too many wrong passwords were entered for this email address from your network. "
                "Wait 30 minutes, then try again."
            )
        )


class SetupLinkRefusedError(Exception):
    """The link was used, replaced, has expired or never existed; the message does not say which."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "This link is no longer valid. Each link works once, within 48 hours, and stops working when "
                "a new one is created. Ask the person who gave it to you for a new one."
            )
        )


class StartCodeRefusedError(Exception):
    """The link is valid, its start code is wrong or missing."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "This start code is wrong. Nothing was saved. You get the link and the code from two different people."
            )
        )


class TooManyLinksError(Exception):
    """Too many links that are not valid from this network address."""

    def __init__(self) -> None:
        super().__init__(
            gettext("Too many invalid links were opened from your network. Wait 30 minutes, then try again.")
        )


class PasswordRefusedError(Exception):
    """A person who is signed in gave a wrong current password."""

    def __init__(self) -> None:
        super().__init__(gettext("This is not your current password. Nothing was changed."))


@sensitive_variables("password")
def sign_in(request: HttpRequest, session: SessionStore, *, email: str, password: str) -> User:
    """Open a new session for the person with this email address and password, and end the browser's previous
    session.

    Until the second factor is given, the session opens the steps of sign-in only. Raises SignInRefusedError,
    or LockedOutError after the fifth wrong password for one address from one network address. Message and
    duration are the same whether the account exists or not. Every attempt is audited.
    """
    user = auth.authenticate(request, email=email, password=password)
    if not isinstance(user, User):
        raise _refusal(request, email)
    _begin_session(request, session, user)
    with transaction.atomic():
        StaffSession.objects.filter(expire_date__lte=timezone.now()).delete()
        record(Action.PASSWORD_ACCEPTED, actor=user)
    return user


def _begin_session(request: HttpRequest, session: SessionStore, user: User) -> None:
    session.flush()
    auth.login(request, user, backend=f"{StaffBackend.__module__}.{StaffBackend.__qualname__}")
    session.begin(
        address=request_context.current().address or "", user_agent=request.headers.get("User-Agent", "")
    )


@transaction.atomic
def sign_out(request: StaffRequest) -> None:
    user = request.user
    auth.logout(request)
    record(Action.SESSION_SIGNED_OUT, actor=user)


def _refusal(request: HttpRequest, email: str) -> SignInRefusedError | LockedOutError:
    """Audit the refused attempt and return the error to show, which does not reveal whether the account
    exists.
    """
    is_locked = getattr(request, "axes_locked_out", False)
    just_locked = getattr(request, "axes_failures_since_start", None) == settings.AXES_FAILURE_LIMIT
    target = User.objects.filter(email=email).first() or email
    with transaction.atomic():
        record(
            Action.SIGN_IN_LOCKED if just_locked else Action.SIGN_IN_REFUSED,
            actor=None,
            target=target,
            reason="locked out" if is_locked else "wrong email address or password",
        )
    return LockedOutError() if is_locked else SignInRefusedError()


@sensitive_variables("password")
def confirm_password(request: StaffRequest, password: str) -> None:
    """Check the person's current password. Raises PasswordRefusedError, or LockedOutError after the fifth
    wrong one.

    Wrong passwords count together with those of sign-in. A refusal is audited.
    """
    if auth.authenticate(request, email=request.user.email, password=password) == request.user:
        return
    is_locked = getattr(request, "axes_locked_out", False)
    with transaction.atomic():
        reason = "locked out" if is_locked else "wrong password"
        record(Action.PASSWORD_REFUSED, actor=request.user, reason=reason)
    raise LockedOutError if is_locked else PasswordRefusedError


@sensitive_variables("new_password")
@transaction.atomic
def change_password(request: StaffRequest, new_password: str) -> None:
    """Set the new password, already validated, and end all other sessions."""
    user = User.objects.get_locked(request.user.pk)
    user.set_password(new_password)
    user.save(update_fields=["password"])
    auth.update_session_auth_hash(request, user)
    ended = delete_other_sessions(request)
    record(Action.PASSWORD_CHANGED, actor=user, target=user, sessions_ended=ended)


_ANY_LINK = "one-time link"
"""Stands for the email address where wrong links are counted: no address is like it, so no account has it."""


@sensitive_variables("token")
def open_setup_link(request: HttpRequest, token: str) -> SetupLink:
    """The link, with the person for whom it was made, if it is still valid. It is not used up.

    Raises SetupLinkRefusedError, or TooManyLinksError after the fifth wrong link from one network address; then
    also for a valid one. Message and duration are the same whether the link ever existed. A refusal is audited.
    """
    if not AxesProxyHandler.is_allowed(request, {"email": _ANY_LINK}):
        raise TooManyLinksError
    found = _valid_links(token).select_related("user").first()
    if found is None:
        raise _link_refusal(request)
    return found


@sensitive_variables("token", "password", "start_code")
def use_setup_link(
    request: HttpRequest, session: SessionStore, *, token: str, password: str, start_code: str = ""
) -> User:
    """Set the password, already validated, and open a session as `sign_in` does. The link ends.

    Raises as `open_setup_link`, and StartCodeRefusedError, which counts as a wrong link.
    """
    link = open_setup_link(request, token)
    claimed = link.user
    if not link.accepts_code(start_code):
        raise _start_code_refusal(request, claimed)
    with transaction.atomic():
        user = User.objects.get_locked(pk=claimed.pk)
        used, _ = _valid_links(token).filter(user=user, code_digest=link.code_digest).delete()
        if used == 1:
            user.set_password(password)
            user.save(update_fields=["password"])
            ended = end_sessions_of(user)
            record(Action.SETUP_LINK_USED, actor=user, target=user, sessions_ended=ended)
    if used != 1:
        raise _link_refusal(request)
    _begin_session(request, session, user)
    return user


def _valid_links(token: str) -> QuerySet[SetupLink]:
    valid = SetupLink.objects.filter(digest__in=SetupLink.digests(token), user__is_active=True)
    return valid.filter(expires_at__gt=clock.now())


def _link_refusal(request: HttpRequest) -> SetupLinkRefusedError | TooManyLinksError:
    """Count and audit the refused link; return the error to show."""
    auth.authenticate(request, email=_ANY_LINK, password="")
    with transaction.atomic():
        record(Action.SETUP_LINK_REFUSED, actor=None)
    return TooManyLinksError() if getattr(request, "axes_locked_out", False) else SetupLinkRefusedError()


def _start_code_refusal(request: HttpRequest, person: User) -> StartCodeRefusedError | TooManyLinksError:
    """Count the wrong code like a wrong link, audit it, and return the error to show."""
    auth.authenticate(request, email=_ANY_LINK, password="")
    with transaction.atomic():
        record(Action.START_CODE_REFUSED, actor=None, target=person)
    return TooManyLinksError() if getattr(request, "axes_locked_out", False) else StartCodeRefusedError()


def keep_lockout_response(
    _request: HttpRequest, answer: HttpResponse, _credentials: dict[str, Any] | None
) -> HttpResponse:
    """Keep our own response: the sign-in page has already answered the lock-out with status 429."""
    return answer
