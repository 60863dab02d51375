"""First start: the first administrator invites the second, on a page, while there is no other account, and renews the
link if it expired before the second one signed in.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef

from backoffice.accounts import staff
from backoffice.accounts.break_glass import REQUIRED_ADMINISTRATORS
from backoffice.accounts.models import User
from backoffice.accounts.rights import AccountChange, BreakGlassChange, RightsGrant
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.core.leases import lock_until_commit


class NotBootstrappingError(Exception):
    """Two administrators have signed in, or other people have accounts: now two people invite together."""


@dataclass(frozen=True)
class BootstrapState:
    """Whether one administrator may still invite the second alone, and who was so invited but never signed in."""

    is_open: bool
    invited: Sequence[User]


def bootstrap_state() -> BootstrapState:
    """Open while all accounts are administrators, break-glass was never used, and there is only one of those who ever
    signed in or have an active account made at the shell.

    Once a second administrator has signed in it stays closed, also if that account is deactivated or reset.
    Three queries.
    """
    administrators = User.objects.filter(groups__name=Role.ADMINISTRATOR)
    has_others = User.objects.exclude(groups__name=Role.ADMINISTRATOR).exists()
    people = list(administrators.annotate(invited_alone=invited_alone()).order_by("full_name", "pk"))
    invited = [
        person for person in people if person.invited_alone and person.last_login is None and person.is_active
    ]
    started = [
        person
        for person in people
        if person.last_login is not None or (person.is_active and not person.invited_alone)
    ]
    was_break_glass_used = BreakGlassChange.objects.with_break_glass().exists()
    is_open = len(started) < REQUIRED_ADMINISTRATORS and not has_others and not was_break_glass_used
    return BootstrapState(is_open, invited)


def invited_alone() -> Exists:
    """Whether one administrator alone invited this person, on the page and not at the shell."""
    return Exists(
        BreakGlassChange.objects.filter(change=AccountChange.INVITED_ALONE, os_user="", user=OuterRef("pk"))
    )


def people_with_renewable_link() -> frozenset[int]:
    """The ids of those for whom one administrator alone may create a new link. Three queries."""
    state = bootstrap_state()
    if not state.is_open:
        return frozenset()
    return frozenset(person.pk for person in state.invited if not person.has_usable_password())


@transaction.atomic
def invite_second_administrator(email: str, *, full_name: str, actor: User) -> tuple[User, str]:
    """The second administrator and the token of the link; whoever was invited here before and never signed in is
    deactivated. An incident is open until a third person acknowledges it: one person has seen the whole link.

    Raises NotBootstrappingError, and EmailTakenError.
    """
    lock_until_commit("bootstrap")
    state = bootstrap_state()
    if not state.is_open:
        raise NotBootstrappingError
    for person in state.invited:
        staff.deactivate_staff(person.pk, actor=actor, reason="Another administrator was invited instead")
    user = staff.create_staff(email, full_name=full_name, roles=[Role.ADMINISTRATOR], actor=actor)
    roles, now = [Role.ADMINISTRATOR.value], clock.now()
    RightsGrant.objects.create(
        user=user, change=AccountChange.CREATED, roles=roles, at=now, prepared_by=actor
    )
    BreakGlassChange.objects.create(
        user=user, change=AccountChange.INVITED_ALONE, roles=roles, at=now, invited_by=actor
    )
    return user, staff.issue_setup_link(user.pk, actor=actor)


@transaction.atomic
def renew_second_administrator_link(user_id: int, *, actor: User) -> tuple[User, str]:
    """The second administrator and the token of a new link; the earlier link ends.

    Under the same conditions as the invitation, and only for a person invited on that page who never used a link.
    Raises NotBootstrappingError.
    """
    lock_until_commit("bootstrap")
    # Locked: a use of the earlier link either comes before this, and is detected below, or comes after it, and fails.
    person = User.objects.get_locked(pk=user_id)
    state = bootstrap_state()
    if not state.is_open or person not in state.invited or person.has_usable_password():
        raise NotBootstrappingError
    return person, staff.issue_setup_link(person.pk, actor=actor)
