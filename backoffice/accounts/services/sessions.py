"""Ending sessions."""

from django.db import transaction

from backoffice.accounts import selectors
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import StaffSession, User
from backoffice.audit.actions import Action
from backoffice.audit.services import record


@transaction.atomic
def end_session(user: User, reference: str) -> bool:
    """End one of the person's own sessions. False if it had ended already."""
    session = next((one for one in selectors.sessions_of(user) if one.reference == reference), None)
    if session is None:
        return False
    session.delete()
    record(
        Action.SESSION_ENDED, actor=user, target=user, browser=session.browser, from_address=session.address
    )
    return True


@transaction.atomic
def end_other_sessions(request: StaffRequest) -> int:
    """End all sessions of the person but the one in which this was asked; how many that were."""
    ended = delete_other_sessions(request)
    record(Action.SESSIONS_ENDED, actor=request.user, target=request.user, ended=ended)
    return ended


def end_sessions_of(user: User) -> int:
    """End every session of a person, as part of a change that has its own audit entry; how many that were."""
    return StaffSession.objects.filter(user=user).delete()[0]


def delete_other_sessions(request: StaffRequest) -> int:
    """As `end_other_sessions`, as part of a change that has its own audit entry."""
    return StaffSession.objects.filter(user=request.user).exclude(pk=request.session.session_key).delete()[0]
