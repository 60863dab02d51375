"""The password: the first step of sign-in, sign-out, password change, and the lock-out after wrong passwords."""

from typing import Any

from django.conf import settings
from django.contrib import auth
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_variables

from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.roles import StaffBackend
from backoffice.accounts.sessions import SessionStore, StaffRequest, delete_other_sessions
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core.web import request_context


class SignInRefusedError(Exception):
    """Wrong e-mail address or password; the message does not say which."""

    def __init__(self) -> None:
        super().__init__(gettext("Wrong email address or password. You are not signed in. Try again."))


class LockedOutError(Exception):
    """Too many wrong passwords for this e-mail address from this network address."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "Too many wrong passwords for this email address from your network. "
                "Wait 30 minutes, then try again."
            )
        )


class PasswordRefusedError(Exception):
    """A person who is signed in gave a wrong current password."""

    def __init__(self) -> None:
        super().__init__(gettext("This is not your current password. Nothing was changed."))


@sensitive_variables("password")
def sign_in(request: HttpRequest, session: SessionStore, *, email: str, password: str) -> User:
    """Open a new session for the person with this e-mail address and password, and end the browser's previous
    session.

    Until the second factor is given, the session opens the steps of sign-in only. Raises SignInRefusedError,
    or LockedOutError after the fifth wrong password for one address from one network address. Message and
    duration are the same whether the account exists or not. Every attempt is audited.
    """
    user = auth.authenticate(request, email=email, password=password)
    if not isinstance(user, User):
        raise _refusal(request, email)
    session.flush()
    auth.login(request, user, backend=f"{StaffBackend.__module__}.{StaffBackend.__qualname__}")
    session.begin(
        address=request_context.current().address or "", user_agent=request.headers.get("User-Agent", "")
    )
    with transaction.atomic():
        StaffSession.objects.filter(expire_date__lte=timezone.now()).delete()
        record(Action.PASSWORD_ACCEPTED, actor=user)
    return user


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
            reason="locked out" if is_locked else "wrong e-mail address or password",
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


def keep_lockout_response(
    _request: HttpRequest, answer: HttpResponse, _credentials: dict[str, Any] | None
) -> HttpResponse:
    """Keep our own response: the sign-in page has already answered the lock-out with status 429."""
    return answer
