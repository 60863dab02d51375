"""Changing one's password."""

from django.contrib.auth import update_session_auth_hash
from django.db import transaction
from django.views.decorators.debug import sensitive_variables

from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.accounts.services.sessions import delete_other_sessions
from backoffice.audit.actions import Action
from backoffice.audit.services import record


@sensitive_variables("new_password")
@transaction.atomic
def change_password(request: StaffRequest, new_password: str) -> None:
    """Give the person a new, already validated password and end all other sessions."""
    user = User.objects.get_locked(pk=request.user.pk)
    user.set_password(new_password)
    user.save(update_fields=["password"])
    update_session_auth_hash(request, user)
    ended = delete_other_sessions(request)
    record(Action.PASSWORD_CHANGED, actor=user, target=user, sessions_ended=ended)
