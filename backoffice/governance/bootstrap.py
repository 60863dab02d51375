"""First start: the first administrator invites the second, on a page, while there is no other account, and renews the
link until the second one has an authenticator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef

from backoffice.accounts import staff
from backoffice.accounts.break_glass import REQUIRED_ADMINISTRATORS
from backoffice.accounts.models import User
from backoffice.accounts.restrictions import AccountChange, BreakGlassChange, RightsGrant
from backoffice.accounts.roles import Role
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock


class NotBootstrappingError(Exception):
    """Two administrators have set up their accounts, or other people have accounts: now two people invite together."""


@dataclass(frozen=True)
class BootstrapState:
    """Whether one administrator may still invite the second alone, and who was so invited but never set up an
    authenticator.
    """

    is_open: bool
    invited: Sequence[User]


def bootstrap_state() -> BootstrapState:
    """Open while all accounts are administrators, break-glass was never used, and there is only one of those who ever
    set up an authenticator or have an active account made at the shell.

    Once a second administrator has set one up it stays closed, also if that account is deactivated or reset: the audit
    log keeps that. Three queries.
    """
    administrators = User.objects.filter(groups__name=Role.ADMINISTRATOR)
    has_others = User.objects.exclude(groups__name=Role.ADMINISTRATOR).exists()
    enrolled = Entry.objects.filter(action=Action.AUTHENTICATOR_ENROLLED, actor=OuterRef("pk"))
    annotated = administrators.annotate(invited_alone=invited_alone(), ever_enrolled=Exists(enrolled))
    people = list(annotated.order_by("full_name", "pk"))
    invited = [
        person for person in people if person.invited_alone and not person.ever_enrolled and person.is_active
    ]
    started = [
        person for person in people if person.ever_enrolled or (person.is_active and not person.invited_alone)
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
    return frozenset(person.pk for person in state.invited)


@transaction.atomic
def invite_second_administrator(email: str, *, full_name: str, actor: User) -> tuple[User, str]:
    """The second administrator and the token of the link; whoever was invited here before and never set up an
    authenticator is deactivated. An incident is open until a third person acknowledges it: one person has seen the
    whole link.

    Raises NotBootstrappingError, and EmailTakenError.
    """
    staff.lock_staff()
    for person in bootstrap_state().invited:
        User.objects.get_locked(
            pk=person.pk
        )  # an enrolment is either finished before this, and found below, or fails
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
    """The second administrator and the token of a new link; the earlier link ends, and so do the password and the
    sessions of a person who used it without setting up an authenticator.

    Under the same conditions as the invitation, and only for a person invited on that page.
    Raises NotBootstrappingError.
    """
    staff.lock_staff()
    # Locked: an enrolment is either finished before this, and found below, or it has to begin again.
    person = User.objects.get_locked(pk=user_id)
    state = bootstrap_state()
    if not state.is_open or person not in state.invited:
        raise NotBootstrappingError
    if person.has_usable_password():
        staff.reset_password(person.pk, actor=actor, reason="A new one-time link was created")
    return person, staff.issue_setup_link(person.pk, actor=actor)
