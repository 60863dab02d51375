"""Questions about staff. Nothing here writes."""

from datetime import timedelta

from django.db.models import QuerySet

from backoffice.accounts.models import AuthenticatorDevice, RecoveryCode, StaffSession, User


def authenticator_of(user: User) -> AuthenticatorDevice | None:
    """The authenticator that the person has confirmed, if any."""
    return AuthenticatorDevice.objects.filter(user=user, confirmed=True).first()


def wait_before_next_code(user: User) -> timedelta | None:
    """How long the person's next code will be refused because of wrong ones before; None if it will not."""
    device = authenticator_of(user)
    return device.wait() if device else None


def recovery_codes_left(user: User) -> int:
    """How many of the person's recovery codes are still unused."""
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


def sessions_of(user: User) -> QuerySet[StaffSession]:
    """The live sessions of a person, the most recently used first."""
    return StaffSession.objects.live().filter(user=user).order_by("-last_seen_at")


def people_who_may(permission: str) -> QuerySet[User]:
    """The active people whose roles allow this, such as "operations.approve_operation"."""
    app, _, codename = permission.partition(".")
    return User.objects.filter(
        groups__permissions__content_type__app_label=app,
        groups__permissions__codename=codename,
        is_active=True,
    ).distinct()
