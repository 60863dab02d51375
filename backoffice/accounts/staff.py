"""Staff accounts: create, set roles, reset the second factor, deactivate."""

from collections.abc import Iterable

from django.contrib.auth.models import Group
from django.db import transaction
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_variables

from backoffice.accounts.models import AuthenticatorDevice, RecoveryCode, User
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import end_sessions_of
from backoffice.audit.actions import Action
from backoffice.audit.log import record


class UnknownRoleError(Exception):
    """A role that is not defined in `Role`."""


class EmailTakenError(Exception):
    """Another account has this e-mail address."""


@sensitive_variables("password")
@transaction.atomic
def create_staff(
    email: str, *, full_name: str, password: str, roles: Iterable[str], actor: User | None = None
) -> User:
    """Create an account with this password, already validated; the person sets up an authenticator at first
    sign-in.

    `actor` is None on the command line. Raises EmailTakenError, UnknownRoleError.
    """
    email = email.strip().lower()
    if User.objects.filter(email=email).exists():
        raise EmailTakenError(
            gettext(
                "An account with the email address {email} already exists. No account was created."
            ).format(email=email)
        )
    names = _known_roles(roles)
    user = User(email=email, full_name=full_name.strip())
    user.set_password(password)
    user.save(force_insert=True)
    user.groups.set(Group.objects.filter(name__in=names))
    record(Action.STAFF_CREATED, actor=actor, target=user, email=email, roles=names)
    return user


@transaction.atomic
def set_roles(user_id: int, *, roles: Iterable[str], actor: User | None, reason: str = "") -> User:
    """Replace the person's roles and end the person's sessions. Raises UnknownRoleError.

    `actor` is None on the command line; then `reason` names who asked for it.
    """
    user = User.objects.get_locked(pk=user_id)
    names, before = _known_roles(roles), _role_names(user)
    user.groups.set(Group.objects.filter(name__in=names))
    ended = end_sessions_of(user)
    record(
        Action.STAFF_ROLES_CHANGED,
        actor=actor,
        target=user,
        before=before,
        after=names,
        reason=reason,
        sessions_ended=ended,
    )
    return user


def save_preferences(user: User, *, time_zone: str, theme: str, language: str) -> None:
    """Set time zone, theme and language of the person's pages. Not audited."""
    user.time_zone, user.theme, user.language = time_zone, theme, language
    user.save(update_fields=["time_zone", "theme", "language"])


@transaction.atomic
def deactivate_staff(user_id: int, *, actor: User | None, reason: str = "") -> User:
    """Prevent sign-in and end every session at once. The person's actions remain on record."""
    user = User.objects.get_locked(pk=user_id)
    user.is_active = False
    user.save(update_fields=["is_active"])
    ended = end_sessions_of(user)
    record(Action.STAFF_DEACTIVATED, actor=actor, target=user, reason=reason, sessions_ended=ended)
    return user


@transaction.atomic
def reset_second_factor(user_id: int, *, actor: User | None, reason: str = "") -> User:
    """Delete authenticator and recovery codes; the person sets up new ones at the next sign-in."""
    user = User.objects.get_locked(pk=user_id)
    ended = end_sessions_of(user)
    AuthenticatorDevice.objects.filter(user=user).delete()
    RecoveryCode.objects.filter(user=user).delete()
    user.recovery_codes_stored_at = None
    user.save(update_fields=["recovery_codes_stored_at"])
    record(Action.AUTHENTICATOR_RESET, actor=actor, target=user, reason=reason, sessions_ended=ended)
    return user


def _known_roles(roles: Iterable[str]) -> list[str]:
    names = sorted({str(role) for role in roles})
    unknown = [name for name in names if name not in Role.values]
    if unknown:
        raise UnknownRoleError(
            gettext("There is no role {name}. Roles: {roles}.").format(
                name=unknown[0], roles=", ".join(Role.values)
            )
        )
    return names


def _role_names(user: User) -> list[str]:
    return sorted(user.groups.values_list("name", flat=True))
