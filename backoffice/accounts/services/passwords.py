"""Changing one's password."""

from django.contrib import auth
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from backoffice.accounts.errors import LockedOutError, PasswordRefusedError
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.accounts.services.sessions import delete_other_sessions
from backoffice.audit.actions import Action
from backoffice.audit.services import record


@sensitive_variables("password")
def confirm_password(request: StaffRequest, password: str) -> None:
    """Raises PasswordRefusedError unless this is the person's present password, or LockedOutError after the fifth
    wrong one: it is counted with the wrong passwords of sign-in. A refusal is audited.
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
    """Give the person a new, already validated password and end all other sessions."""
    user = User.objects.get_locked(request.user.pk)
    user.set_password(new_password)
    user.save(update_fields=["password"])
    auth.update_session_auth_hash(request, user)
    ended = delete_other_sessions(request)
    record(Action.PASSWORD_CHANGED, actor=user, target=user, sessions_ended=ended)
