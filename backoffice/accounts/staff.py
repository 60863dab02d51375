"""Staff accounts: create, set roles, deactivate, reset what a person signs in with."""

from collections.abc import Iterable
from datetime import timedelta

from django.contrib.auth.models import Group
from django.db import transaction
from django.utils.translation import gettext

from backoffice.accounts.models import AuthenticatorDevice, RecoveryCode, SetupLink, User
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import end_sessions_of
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit

SETUP_LINK_LIFETIME = timedelta(hours=48)
STAFFING_LOCK = "staffing"
"""Held while a change of staff is checked and made, since what remains depends on all people."""


def lock_staff(*user_ids: int) -> None:
    """Lock all changes of staff, these people and their links until the commit, before the audit log is written to.

    In this order, since showing half of a link (`setup_links.show_handover`) locks the link, then the head of the log.
    """
    lock_until_commit(STAFFING_LOCK)
    list(User.objects.select_for_update(no_key=True).filter(pk__in=user_ids).order_by("pk"))
    list(SetupLink.objects.select_for_update().filter(user__in=user_ids).order_by("pk"))


class UnknownRoleError(Exception):
    """A role that is not defined in `Role`."""


class EmailTakenError(Exception):
    """Another account has this email address."""


@transaction.atomic
def create_staff(
    email: str, *, full_name: str, roles: Iterable[str], actor: User | None = None, **origin: str
) -> User:
    """Create an account without a password: the person chooses one by a link (`issue_setup_link`).

    `actor` is None on the command line; `origin` says who ran it and why. Raises EmailTakenError,
    UnknownRoleError.
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
    user.set_unusable_password()
    user.save(force_insert=True)
    user.groups.set(Group.objects.filter(name__in=names))
    record(Action.STAFF_CREATED, actor=actor, target=user, email=email, roles=names, **origin)
    return user


@transaction.atomic
def set_roles(
    user_id: int, *, roles: Iterable[str], actor: User | None, reason: str = "", **origin: str
) -> User:
    """Replace the person's roles and end the person's sessions. Raises UnknownRoleError.

    `actor` is None on the command line; then `reason` names who requested it.
    """
    user = User.objects.get_locked(pk=user_id)
    names, before = _known_roles(roles), role_names(user)
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
        **origin,
    )
    return user


def save_preferences(user: User, *, time_zone: str, theme: str, language: str) -> None:
    """Set time zone, theme and language of the person's pages. Not audited."""
    user.time_zone, user.theme, user.language = time_zone, theme, language
    user.save(update_fields=["time_zone", "theme", "language"])


@transaction.atomic
def deactivate_staff(user_id: int, *, actor: User | None, reason: str = "", **origin: str) -> User:
    """Prevent sign-in, and end every session and the set-up link at once. The person's actions remain on record."""
    user = User.objects.get_locked(pk=user_id)
    user.is_active = False
    user.save(update_fields=["is_active"])
    ended = end_sessions_of(user)
    SetupLink.objects.filter(user=user).delete()
    record(Action.STAFF_DEACTIVATED, actor=actor, target=user, reason=reason, sessions_ended=ended, **origin)
    return user


@transaction.atomic
def reactivate_staff(user_id: int, *, actor: User | None, reason: str = "", **origin: str) -> User:
    """Let a deactivated person sign in again, with the password, authenticator and roles from before."""
    user = User.objects.get_locked(pk=user_id)
    user.is_active = True
    user.save(update_fields=["is_active"])
    record(Action.STAFF_REACTIVATED, actor=actor, target=user, reason=reason, **origin)
    return user


@transaction.atomic
def reset_password(user_id: int, *, actor: User | None, reason: str = "", **origin: str) -> User:
    """Make the password unusable and end every session; the person chooses another by a link."""
    user = User.objects.get_locked(pk=user_id)
    ended = end_sessions_of(user)
    user.set_unusable_password()
    user.save(update_fields=["password"])
    record(Action.PASSWORD_RESET, actor=actor, target=user, reason=reason, sessions_ended=ended, **origin)
    return user


@transaction.atomic
def reset_second_factor(user_id: int, *, actor: User | None, reason: str = "", **origin: str) -> User:
    """Delete authenticator and recovery codes, and make the password unusable. The person sets up both by a link."""
    user = User.objects.get_locked(pk=user_id)
    ended = end_sessions_of(user)
    AuthenticatorDevice.objects.filter(user=user).delete()
    RecoveryCode.objects.filter(user=user).delete()
    user.recovery_codes_stored_at = None
    user.set_unusable_password()
    user.save(update_fields=["recovery_codes_stored_at", "password"])
    record(
        Action.AUTHENTICATOR_RESET, actor=actor, target=user, reason=reason, sessions_ended=ended, **origin
    )
    return user


@transaction.atomic
def issue_setup_link(user_id: int, *, actor: User | None, **origin: str) -> str:
    """The token of a new link, which ends the person's earlier one.

    Only its hash is stored, so the link must be given to the person now.
    """
    user = User.objects.get_locked(pk=user_id)
    token, now = SetupLink.generate(), clock.now()
    expires_at = now + SETUP_LINK_LIFETIME
    SetupLink.objects.filter(user=user).delete()
    digest = SetupLink.digests(token)[0]
    link = SetupLink(user=user, digest=digest, created_at=now, expires_at=expires_at)
    link.make_seal()
    link.save(force_insert=True)
    record(Action.SETUP_LINK_CREATED, actor=actor, target=user, expires_at=expires_at, **origin)
    return token


def role_names(user: User) -> list[str]:
    """The names of the person's roles, in alphabetical order."""
    return sorted(user.groups.values_list("name", flat=True))


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
