"""The team, for its pages: people, groups, changes that wait, the first steps of a new installation, and whether an
access review is due.
"""

from dataclasses import astuple, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Case,
    Count,
    Exists,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.utils import timezone

from backoffice.accounts.access_report import review_due_after
from backoffice.accounts.break_glass import REQUIRED_ADMINISTRATORS
from backoffice.accounts.groups import active_groups
from backoffice.accounts.models import (
    AccessReview,
    AuthenticatorDevice,
    GroupMembership,
    StaffGroup,
    StaffSession,
    User,
)
from backoffice.accounts.restrictions import (
    AccountChange,
    BreakGlassChange,
    latest_restricting_changes,
)
from backoffice.accounts.roles import Role, enrolled_administrators, enrolled_people, people_not_set_up
from backoffice.accounts.setup_links import open_halves
from backoffice.core.database.queries import JoinedTexts, split_texts
from backoffice.operations.kinds.staff_change import StaffChange, StaffChangeKind
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.selectors import IS_OPEN
from backoffice.policies.models import PolicyVersion
from backoffice.recipients.models import RecipientVersion

APPROVALS_WITHIN = timedelta(days=90)


def team_members(now: datetime) -> QuerySet[User]:
    """Everyone with an account, with what the list shows of each: `has_second_factor`, `open_sessions`,
    `approved_lately`, the one-time link, and what restricts the person.
    """
    device = AuthenticatorDevice.objects.filter(user=OuterRef("pk"), confirmed=True)
    sessions = StaffSession.objects.filter(user=OuterRef("pk"), expire_date__gt=timezone.now())
    lately = Approval.objects.filter(approver=OuterRef("pk"), approved_at__gt=now - APPROVALS_WITHIN)
    return User.objects.select_related("setup_link").annotate(
        has_second_factor=Exists(device),
        open_sessions=_count(sessions),
        approved_lately=_count(lately),
        **latest_restricting_changes("pk"),
    )


@dataclass(frozen=True)
class FirstSteps:
    """What a new installation needs, and whether each step is done. Only people with an authenticator count."""

    administrators: bool
    groups: bool
    people: bool
    rules: bool
    recipients: bool
    incident: bool
    payment: bool

    @property
    def are_done(self) -> bool:
        return all(astuple(self))


@dataclass(frozen=True)
class TeamGaps:
    """What the steps on groups and people still lack."""

    empty_groups: list[str]
    """The names of the groups without an active member."""
    has_preparer: bool
    has_approver: bool
    are_enough_invited: bool
    """Whether the accounts that are not set up yet would be enough, or invitations wait for approval."""
    waiting: int
    """How many invitations wait for approval."""
    unfinished: int
    """How many active accounts have no authenticator yet."""
    links: int
    """How many links the reader has to pass on."""
    codes: int
    """How many start codes the reader has to pass on."""


@dataclass(frozen=True)
class TeamState:
    """What the Team page shows besides the people. `has_others`: besides administrators."""

    steps: FirstSteps
    gaps: TeamGaps
    has_others: bool
    review_due_at: datetime | None


def team_state(reader: User) -> TeamState:
    """The first steps, and when the access review is due. One query."""
    alone = BreakGlassChange.objects.unacknowledged().filter(change=AccountChange.INVITED_ALONE)
    preparers = enrolled_people().filter(groups__name=Role.PREPARER)
    approvers = enrolled_people().filter(groups__name=Role.APPROVER)
    active = User.objects.filter(is_active=True)
    invited_approvers = active.filter(groups__name=Role.APPROVER)
    invited = active.filter(Exists(invited_approvers.exclude(pk=OuterRef("pk"))), groups__name=Role.PREPARER)
    waiting = Operation.objects.filter(IS_OPEN, kind=StaffChangeKind.name, payload__change=StaffChange.INVITE)
    empty_groups = active_groups().exclude(
        Exists(enrolled_people().filter(memberships__group=OuterRef("pk")))
    )
    are_two = Q(number_of_administrators__gte=REQUIRED_ADMINISTRATORS)
    steps = {
        "administrators": are_two,
        "groups": Exists(active_groups()) & ~Exists(empty_groups),
        "people": Exists(preparers.filter(Exists(approvers.exclude(pk=OuterRef("pk"))))),
        "rules": Exists(PolicyVersion.objects.all()),
        "recipients": Exists(RecipientVersion.objects.filter(operation__isnull=False)),
        "incident": are_two & ~Exists(alone),
        "payment": Exists(Attempt.objects.all()),
    }
    last_review = AccessReview.objects.values("signed_at")[:1]
    found = (
        User.objects.order_by("created_at")
        .annotate(number_of_administrators=_count(enrolled_administrators()))
        .values_list(
            Exists(User.objects.exclude(groups__name=Role.ADMINISTRATOR)),
            Coalesce(Subquery(last_review), "created_at"),
            Subquery(
                empty_groups.order_by()
                .values(one=Value(1))
                .annotate(names=JoinedTexts("name"))
                .values("names")
            ),
            Exists(preparers),
            Exists(approvers),
            Case(When(Exists(invited) | Exists(waiting), then=True), default=False),
            _count(waiting),
            _count(people_not_set_up()),
            _count(open_halves(reader, "link")),
            _count(open_halves(reader, "code")),
            *(Case(When(done, then=True), default=False) for done in steps.values()),
        )[0]
    )
    has_others, began, empty, *rest = found
    about_people, done = rest[: -len(steps)], rest[-len(steps) :]
    gaps = TeamGaps(sorted(split_texts(empty)), *about_people)
    return TeamState(FirstSteps(*done), gaps, has_others, review_due_after(began))


def find_members(members: QuerySet[User], text: str) -> QuerySet[User]:
    """Those whose name or address contains the text."""
    return members.filter(Q(full_name__icontains=text) | Q(email__icontains=text)) if text else members


def groups_with_size() -> QuerySet[StaffGroup]:
    """The groups that are not retired, each with `size`, and `active_memberships` by name: of active people."""
    active = Q(memberships__user__is_active=True)
    members = GroupMembership.objects.filter(user__is_active=True).select_related("user")
    by_name = Prefetch("memberships", members.order_by("user__full_name"), to_attr="active_memberships")
    return active_groups().annotate(size=Count("memberships", filter=active)).prefetch_related(by_name)


def waiting_change(person: User) -> Operation | None:
    """The change of this person that waits for approval, if there is one."""
    waiting = Operation.objects.filter(IS_OPEN, kind=StaffChangeKind.name, payload__person=person.pk)
    return waiting.first()


def _count(rows: QuerySet[Any]) -> Coalesce:
    number = rows.order_by().values(one=Value(1)).annotate(number=Count("pk")).values("number")
    return Coalesce(Subquery(number), 0)
