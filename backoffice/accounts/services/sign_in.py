"""The first step of sign-in, and its end."""

from django.conf import settings
from django.contrib import auth
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone
from django.views.decorators.debug import sensitive_variables

from backoffice.accounts.backends import StaffBackend
from backoffice.accounts.errors import LockedOutError, SignInRefusedError
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import StaffSession, User
from backoffice.accounts.sessions import SessionStore
from backoffice.audit.actions import Action
from backoffice.audit.services import record
from backoffice.core import context


@sensitive_variables("password")
def sign_in(request: HttpRequest, session: SessionStore, *, email: str, password: str) -> User:
    """Open a new session for the person with this e-mail address and password; nothing but the steps of
    sign-in can be reached with it until the second factor is given.

    Whatever session the browser had is ended. Raises SignInRefusedError, or LockedOutError after the fifth
    wrong password for one address from one place; what they say and how long they take is the same whether
    the person exists or not. Every attempt is audited.
    """
    user = auth.authenticate(request, email=email, password=password)
    if not isinstance(user, User):
        raise _refusal(request, email)
    session.flush()
    auth.login(request, user, backend=f"{StaffBackend.__module__}.{StaffBackend.__qualname__}")
    session.begin(address=context.address() or "", user_agent=request.headers.get("User-Agent", ""))
    with transaction.atomic():
        StaffSession.objects.filter(expire_date__lte=timezone.now()).delete()
        record(Action.PASSWORD_ACCEPTED, actor=user)
    return user


@transaction.atomic
def sign_out(request: StaffRequest) -> None:
    """End the session in which this was asked."""
    user = request.user
    auth.logout(request)
    record(Action.SESSION_SIGNED_OUT, actor=user)


def _refusal(request: HttpRequest, email: str) -> SignInRefusedError | LockedOutError:
    """Audit the refused attempt and say why as far as it may be said."""
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
