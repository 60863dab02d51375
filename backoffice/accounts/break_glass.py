"""Changes of accounts from the shell, where one person acts alone.

Until two administrators are active, a command makes and restores administrators only; the second one raises an
incident, since one person may have made both. Before anybody has signed in, a command also renews their one-time
links. It raises the same incident, since one person who renews both links controls both accounts. After that, a command
that gives or restores rights needs break-glass: it raises an incident, and the person whose account was changed can
neither approve, send nor resolve for a day.
"""

import os
import pwd
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from backoffice.accounts import staff
from backoffice.accounts.models import User
from backoffice.accounts.restrictions import AccountChange, BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.core import clock

REQUIRED_ADMINISTRATORS = 2
_RESTORING = {AccountChange.CREATED, AccountChange.REACTIVATED}
_RENEWING = {AccountChange.PASSWORD_RESET, AccountChange.SECOND_FACTOR_RESET}


class ShellRefusedError(Exception):
    """The command may not change the account like this. Nothing was changed."""


def _os_user() -> str:
    """The name of the process's user. Not from the environment, which whoever runs the command can set."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


@dataclass(frozen=True)
class ShellCommand:
    """Who runs a command on which machine, why, and whether with break-glass."""

    reason: str
    is_break_glass: bool = False
    os_user: str = field(default_factory=_os_user)
    host: str = field(default_factory=socket.gethostname)

    @property
    def origin(self) -> dict[str, str]:
        """For the audit log."""
        return {"reason": self.reason, "os_user": self.os_user, "host": self.host}


@dataclass(frozen=True)
class ChangedAccount:
    """The person, the token of the new set-up link if there is one, and the incident if one was raised."""

    user: User
    token: str = ""
    incident: BreakGlassChange | None = None


@transaction.atomic
def create_staff(
    email: str, *, full_name: str, roles: Collection[str], command: ShellCommand
) -> ChangedAccount:
    """Create an account, with a link for the first sign-in.

    Raises ShellRefusedError, EmailTakenError, UnknownRoleError.
    """
    staff.lock_staff()
    if is_bootstrapping() and set(roles) != {Role.ADMINISTRATOR}:
        raise ShellRefusedError(_administrators_only())
    _check_may_give_rights(roles, command)
    user = staff.create_staff(email, full_name=full_name, roles=roles, actor=None, **command.origin)
    return _with_link(user, AccountChange.CREATED, command)


@transaction.atomic
def set_roles(user_id: int, *, roles: Collection[str], command: ShellCommand) -> ChangedAccount:
    """Replace the person's roles. Raises ShellRefusedError, UnknownRoleError."""
    staff.lock_staff(user_id)
    user = User.objects.get_locked(pk=user_id)
    if set(roles) - set(staff.role_names(user)):
        _check_may_give_rights(roles, command)
    else:
        _check_may_take_rights(user, keeps_administrator=Role.ADMINISTRATOR in roles, command=command)
    staff.set_roles(user.pk, roles=roles, actor=None, **command.origin)
    return ChangedAccount(user, incident=_raise_incident(user, AccountChange.ROLES_CHANGED, command))


@transaction.atomic
def deactivate_staff(user_id: int, *, command: ShellCommand) -> ChangedAccount:
    """Prevent the person from signing in. Raises ShellRefusedError."""
    staff.lock_staff(user_id)
    user = User.objects.get_locked(pk=user_id)
    _check_may_take_rights(user, keeps_administrator=False, command=command)
    staff.deactivate_staff(user.pk, actor=None, **command.origin)
    return ChangedAccount(user, incident=_raise_incident(user, AccountChange.DEACTIVATED, command))


@transaction.atomic
def reactivate_staff(user_id: int, *, command: ShellCommand) -> ChangedAccount:
    """Let the person sign in again. Raises ShellRefusedError."""
    staff.lock_staff(user_id)
    user = User.objects.get_locked(pk=user_id)
    _check_may_give_rights(staff.role_names(user), command)
    staff.reactivate_staff(user.pk, actor=None, **command.origin)
    return ChangedAccount(user, incident=_raise_incident(user, AccountChange.REACTIVATED, command))


@transaction.atomic
def reset_password(user_id: int, *, command: ShellCommand) -> ChangedAccount:
    """End the person's password, with a link for another one. Raises ShellRefusedError."""
    return _reset(user_id, staff.reset_password, AccountChange.PASSWORD_RESET, command)


@transaction.atomic
def reset_second_factor(user_id: int, *, command: ShellCommand) -> ChangedAccount:
    """End the person's password and second factor, with a link for new ones. Raises ShellRefusedError."""
    return _reset(user_id, staff.reset_second_factor, AccountChange.SECOND_FACTOR_RESET, command)


def is_bootstrapping() -> bool:
    """Whether the installation is new: only administrators, fewer than two active, and break-glass was never used.

    Neither deactivating administrators nor an installation with one of them and other people counts as new.
    """
    has_others = User.objects.exclude(groups__name=Role.ADMINISTRATOR).exists()
    is_short = _active_administrators().count() < REQUIRED_ADMINISTRATORS
    return is_short and not has_others and not _was_break_glass_used()


def are_links_unopened() -> bool:
    """Whether the installation has only administrators, nobody has ever signed in, and break-glass was never used.

    Deleting `last_login` does not help: the audit log keeps what people did.
    """
    has_others = User.objects.exclude(groups__name=Role.ADMINISTRATOR).exists()
    has_signed_in = (
        User.objects.exclude(last_login=None).exists() or Entry.objects.exclude(actor=None).exists()
    )
    return not has_others and not has_signed_in and not _was_break_glass_used()


def _active_administrators() -> QuerySet[User]:
    return User.objects.filter(is_active=True, groups__name=Role.ADMINISTRATOR)


def _was_break_glass_used() -> bool:
    return BreakGlassChange.objects.with_break_glass().exists()


def _check_may_give_rights(roles: Collection[str], command: ShellCommand) -> None:
    if is_bootstrapping():
        if not set(roles) <= {Role.ADMINISTRATOR}:
            raise ShellRefusedError(_administrators_only())
        _check_needs_none(command, "Break-glass is not needed until two administrators are active")
    elif not command.is_break_glass:
        raise ShellRefusedError(
            "This gives or restores rights, and one person at the shell acts alone: use --break-glass REASON. "
            "It raises an incident, and the person can neither approve, send nor resolve for "
            f"{settings.BREAK_GLASS_RESTRICTION_HOURS} hours. Nothing was changed."
        )


def _check_may_reset(user: User, command: ShellCommand) -> None:
    """Like `_check_may_give_rights`, except for the link of an administrator before anybody has signed in."""
    roles = staff.role_names(user)
    if user.is_active and roles == [Role.ADMINISTRATOR] and are_links_unopened():
        _check_needs_none(command, "Break-glass is not needed until an administrator has signed in")
    else:
        _check_may_give_rights(roles, command)


def _check_may_take_rights(user: User, *, keeps_administrator: bool, command: ShellCommand) -> None:
    """Taking rights needs a reason only, unless it would leave fewer than two administrators."""
    remaining = _active_administrators()
    if not keeps_administrator:
        remaining = remaining.exclude(pk=user.pk)
    if is_bootstrapping() or remaining.count() >= REQUIRED_ADMINISTRATORS:
        _check_needs_none(command, "This gives no rights")
    elif not command.is_break_glass and _active_administrators().filter(pk=user.pk).exists():
        raise ShellRefusedError(
            "This would leave fewer than two active administrators: use --break-glass REASON. Nothing was changed."
        )


def _check_needs_none(command: ShellCommand, why: str) -> None:
    if command.is_break_glass:
        raise ShellRefusedError(f"{why}: leave out --break-glass, or use --reason. Nothing was changed.")


def _administrators_only() -> str:
    active = _active_administrators().count()
    return (
        "Until two administrators are active, only administrators can be created or restored. "
        f"Active administrators: {active}. Nothing was changed."
    )


def _reset(
    user_id: int, reset: Callable[..., User], change: AccountChange, command: ShellCommand
) -> ChangedAccount:
    staff.lock_staff(user_id)
    user = User.objects.get_locked(pk=user_id)
    _check_may_reset(user, command)
    reset(user.pk, actor=None, **command.origin)
    return _with_link(user, change, command)


def _with_link(user: User, change: AccountChange, command: ShellCommand) -> ChangedAccount:
    incident = _raise_incident(user, change, command)
    return ChangedAccount(user, staff.issue_setup_link(user.pk, actor=None, **command.origin), incident)


def _raise_incident(user: User, change: AccountChange, command: ShellCommand) -> BreakGlassChange | None:
    """Record an incident if break-glass was used, which also restricts the person, or if by this change one person may
    hold the links of the first two administrators. None if it is neither.
    """
    first = None if command.is_break_glass else _first_administrator_beside(user, change)
    if not command.is_break_glass and first is None:
        return None
    raised = BreakGlassChange.objects.create(
        user=user,
        change=AccountChange.INVITED_ALONE if first else change,
        roles=staff.role_names(user),
        invited_by=first,
        at=clock.now(),
        **command.origin,
    )
    if first:
        return raised
    record(
        Action.BREAK_GLASS_USED,
        actor=None,
        target=user,
        change=change,
        roles=raised.roles,
        **command.origin,
    )
    return raised


def _first_administrator_beside(user: User, change: AccountChange) -> User | None:
    """Another active administrator, if this change created or reactivated the account or renewed the link of an active
    one; otherwise None.
    """
    if change not in _RESTORING and not (change in _RENEWING and user.is_active):
        return None
    return _active_administrators().exclude(pk=user.pk).first()
