"""Sign in by password, the first of two steps, or by set-up link; sign out; change the password.

Wrong passwords and links count towards the lock-out (`protection.lockout`).
"""

from django.contrib import auth
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_variables

from backoffice.accounts.models import SetupLink, StaffSession, User
from backoffice.accounts.protection import lockout
from backoffice.accounts.protection.lockout import TooManyChecksError, password_check
from backoffice.accounts.roles import StaffBackend
from backoffice.accounts.sessions import (
    SessionStore,
    StaffRequest,
    check_not_ended,
    delete_other_sessions,
    end_sessions_of,
)
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core import clock
from backoffice.core.web import request_context


class SignInRefusedError(Exception):
    """Wrong email address or password; the message does not say which."""

    def __init__(self) -> None:
        super().__init__(gettext("Wrong email address or password. You are not signed in. Try again."))


class LockedOutError(Exception):
    """Too many wrong passwords for this email address, or from this network address."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "Too many wrong passwords were entered for this email address or from your network. "
                "Wait 30 minutes, then try again."
            )
        )


class SignInBusyError(Exception):
    """Too many passwords are being checked; this one was not."""

    def __init__(self) -> None:
        super().__init__(
            gettext(
                "Too many people are signing in. You are not signed in. Wait a few seconds, then try again."
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
    LockedOutError after too many wrong passwords (`lockout`), or SignInBusyError. Message and duration are the same
    whether the account exists or not. Refusals are counted, not audited one by one.
    """
    user = _check_password(request, email, password)
    if user is None:
        raise SignInRefusedError
    _begin_session(request, session, user)
    with transaction.atomic():
        StaffSession.objects.filter(expire_date__lte=timezone.now()).delete()
        record(Action.PASSWORD_ACCEPTED, actor=user)
    return user


@sensitive_variables("password")
def _check_password(request: HttpRequest, email: str, password: str) -> User | None:
    """The active person with this email address and password; a wrong one is counted. Raises LockedOutError,
    SignInBusyError.
    """
    address = request_context.current().address
    if lockout.is_locked_out(email, address):
        lockout.count_refused_while_locked(address)
        raise LockedOutError
    try:
        with password_check():
            user = auth.authenticate(request, email=email, password=password)
    except TooManyChecksError as exc:
        raise SignInBusyError from exc
    if isinstance(user, User):
        lockout.reset_wrong_passwords(email, address)
        return user
    if lockout.count_wrong_password(email, address):
        raise LockedOutError
    return None


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


@sensitive_variables("password")
def confirm_password(request: StaffRequest, password: str) -> None:
    """Check the person's current password. Raises PasswordRefusedError, LockedOutError after too many wrong ones, or
    SignInBusyError.

    Wrong passwords count together with those of sign-in. A refusal is audited.
    """
    try:
        if _check_password(request, request.user.email, password) == request.user:
            return
        refusal: LockedOutError | PasswordRefusedError = PasswordRefusedError()
    except LockedOutError as exc:
        refusal = exc
    with transaction.atomic():
        reason = "locked out" if isinstance(refusal, LockedOutError) else "wrong password"
        record(Action.PASSWORD_REFUSED, actor=request.user, reason=reason)
    raise refusal


@sensitive_variables("new_password")
@transaction.atomic
def change_password(request: StaffRequest, new_password: str) -> None:
    """Set the new password, already validated, and end all other sessions."""
    user = User.objects.get_locked(request.user.pk)
    check_not_ended(request)
    user.set_password(new_password)
    user.save(update_fields=["password"])
    auth.update_session_auth_hash(request, user)
    ended = delete_other_sessions(request)
    record(Action.PASSWORD_CHANGED, actor=user, target=user, sessions_ended=ended)


@sensitive_variables("token")
def open_setup_link(request: HttpRequest, token: str) -> SetupLink:
    """The link, with the person for whom it was made, if it is still valid. It is not used up.

    Raises SetupLinkRefusedError, or TooManyLinksError after the fifth wrong link from one network address; then
    also for a valid one. The message is the same whether the link ever existed. Refusals are counted, not audited one
    by one.
    """
    address = request_context.current().address
    if lockout.are_links_locked_out(address):
        lockout.count_refused_while_locked(address)
        raise TooManyLinksError
    found = _valid_links(token).select_related("user").first()
    if found is None or not found.is_genuine:
        raise _link_refusal()
    return found


@sensitive_variables("token", "password", "start_code")
def use_setup_link(
    request: HttpRequest, session: SessionStore, *, token: str, password: str, start_code: str = ""
) -> User:
    """Set the password, already validated, and open a session as `sign_in` does, in which a person without an
    authenticator may set one up. The link ends.

    Raises as `open_setup_link`, and StartCodeRefusedError, which counts as a wrong link.
    """
    link = open_setup_link(request, token)
    claimed = link.user
    if not link.accepts_code(start_code):
        raise _start_code_refusal(claimed)
    with transaction.atomic():
        user = User.objects.get_locked(pk=claimed.pk)
        used, _ = _valid_links(token).filter(user=user, seal=link.seal).delete()
        if used == 1:
            user.set_password(password)
            user.save(update_fields=["password"])
            ended = end_sessions_of(user)
            record(Action.SETUP_LINK_USED, actor=user, target=user, sessions_ended=ended)
    if used != 1:
        raise _link_refusal()
    _begin_session(request, session, user)
    session.allow_enrolment()
    return user


def _valid_links(token: str) -> QuerySet[SetupLink]:
    valid = SetupLink.objects.filter(digest__in=SetupLink.digests(token), user__is_active=True)
    return valid.filter(expires_at__gt=clock.now())


def _link_refusal() -> SetupLinkRefusedError | TooManyLinksError:
    """Count the refused link; return the error to show."""
    is_locked = lockout.count_wrong_link(request_context.current().address)
    return TooManyLinksError() if is_locked else SetupLinkRefusedError()


def _start_code_refusal(person: User) -> StartCodeRefusedError | TooManyLinksError:
    """Count the wrong code like a wrong link, audit it, since its link is valid, and return the error to show."""
    is_locked = lockout.count_wrong_link(request_context.current().address)
    with transaction.atomic():
        record(Action.START_CODE_REFUSED, actor=None, target=person)
    return TooManyLinksError() if is_locked else StartCodeRefusedError()
