"""The second administrator: invited by the first one alone, on a page, while nobody else has an account."""

from dataclasses import dataclass

from django.db import transaction

from backoffice.accounts import staff
from backoffice.accounts.break_glass import REQUIRED_ADMINISTRATORS
from backoffice.accounts.models import BreakGlassChange, User
from backoffice.accounts.rights import AccountChange, RightsGrant
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit


class NotBootstrappingError(Exception):
    """Two administrators have signed in, or other people have accounts: now two people invite together."""


@dataclass(frozen=True)
class BootstrapState:
    """Whether one administrator may still invite the second alone, and who was invited but never signed in."""

    is_open: bool
    invited: list[User]


def bootstrap_state() -> BootstrapState:
    """Open while all accounts are administrators, only one of them ever signed in, and break-glass was never used.

    That somebody signed in is never undone, so neither deactivating nor resetting an account opens it again.
    Three queries.
    """
    administrators = User.objects.filter(groups__name=Role.ADMINISTRATOR)
    has_others = User.objects.exclude(groups__name=Role.ADMINISTRATOR).exists()
    people = list(administrators.order_by("full_name", "pk"))
    started = [person for person in people if person.last_login is not None]
    is_open = (
        len(started) < REQUIRED_ADMINISTRATORS and not has_others and not BreakGlassChange.objects.exists()
    )
    invited = [person for person in people if person.last_login is None and person.is_active]
    return BootstrapState(is_open, invited)


@transaction.atomic
def invite_second_administrator(email: str, *, full_name: str, actor: User) -> tuple[User, str]:
    """The second administrator and the token of the link; whoever was invited before and never signed in is
    deactivated.

    Raises NotBootstrappingError, and EmailTakenError.
    """
    lock_until_commit("bootstrap")
    state = bootstrap_state()
    if not state.is_open:
        raise NotBootstrappingError
    for person in state.invited:
        if person != actor:
            staff.deactivate_staff(person.pk, actor=actor, reason="Another administrator was invited instead")
    user = staff.create_staff(email, full_name=full_name, roles=[Role.ADMINISTRATOR], actor=actor)
    RightsGrant.objects.create(
        user=user,
        change=AccountChange.CREATED,
        roles=[Role.ADMINISTRATOR.value],
        at=clock.now(),
        prepared_by=actor,
    )
    return user, staff.issue_setup_link(user.pk, actor=actor)
