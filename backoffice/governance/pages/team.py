"""The Team page: people and groups."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from backoffice.accounts.access_report import AccessRow, RightKind
from backoffice.accounts.groups import groups_of
from backoffice.accounts.models import SetupLink, User
from backoffice.accounts.rights import Restriction, restrictions_of
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import local_day
from backoffice.core.web.pagination import keyset_page
from backoffice.governance.team import find_members, groups_with_size, team_members, team_state

VIEW_TEAM = "accounts.view_user"
PEOPLE_PER_PAGE = 50
_LONGEST_SEARCH = 60


@dataclass(frozen=True)
class Invitation:
    """The state of an invitation until the invited person has signed in."""

    text: str
    step: str = ""
    """What the reader has to do, on the page of the operation; empty if nothing."""
    operation: UUID | None = None


@dataclass(frozen=True)
class TeamRow:
    """One person in the list, with what is shown of the rights."""

    person: User
    roles: list[str]
    groups: list[str]
    restriction: Restriction | None
    invitation: Invitation | None


@require_safe
@permission_required(VIEW_TEAM, raise_exception=True)
def team(request: StaffRequest) -> HttpResponse:
    """The people, by name, and a search."""
    text = request.GET.get("q", "").strip()[:_LONGEST_SEARCH]
    found = find_members(team_members(timezone.now()), text).prefetch_related("groups")
    order, cursor = ("full_name", "id"), request.GET.get("cursor")
    page = keyset_page(found, order=order, cursor=cursor, size=PEOPLE_PER_PAGE)
    rows = team_rows(page.rows, request.user)
    is_whole = not (text or page.previous_cursor or page.next_cursor)
    state = team_state()
    due = state.review_due_at
    context = {
        "page": page,
        "rows": rows,
        "q": text,
        "review_due_at": due if due is not None and due < timezone.now() else None,
        "first_steps": state.steps if is_whole else None,
        "has_others": state.has_others,
    }
    return render(request, "governance/team.html", context)


@require_safe
@permission_required(VIEW_TEAM, raise_exception=True)
def group_list(request: StaffRequest) -> HttpResponse:
    """The groups with the number of their active members."""
    return render(request, "governance/groups.html", {"groups": groups_with_size()})


def team_rows(people: list[User], reader: User) -> list[TeamRow]:
    """What the list shows of people of `team_members` with prefetched roles. One query, for their groups."""
    groups = groups_of(person.pk for person in people)
    return [
        TeamRow(
            person,
            role_labels(person),
            list(groups.get(person.pk, {}).values()),
            max(restrictions_of(vars(person)), key=lambda one: one.until, default=None),
            invitation_of(person, reader),
        )
        for person in people
    ]


def invitation_of(person: User, reader: User) -> Invitation | None:
    """The state of the invitation; None once the person has signed in. Needs the fetched `setup_link`."""
    link: SetupLink | None = getattr(person, "setup_link", None)
    if link is None or person.last_login is not None or not person.is_active:
        return None
    if link.expires_at <= timezone.now():
        return Invitation(gettext("Invited. The link has expired."))
    is_passed_on = link.operation is None or link.link_shown_at is not None
    text = gettext("Invited, has not signed in yet.")
    if not is_passed_on:
        text = gettext("Invited. Link not passed on yet.")
    if not is_passed_on and link.link_for_id == reader.pk:
        return Invitation(text, gettext("Pass on the link"), link.operation)
    if link.code_for_id == reader.pk and link.code_shown_at is None:
        return Invitation(text, gettext("Pass on the start code"), link.operation)
    return Invitation(text)


def role_labels(person: User) -> list[str]:
    """The person's roles as the reader calls them; needs prefetched roles."""
    held = {role.name for role in person.groups.all()}
    return [str(role.label) for role in Role if role.value in held]


def shown_rights(rows: Iterable[AccessRow]) -> list[AccessRow]:
    """The same with each role as the reader calls it, and the day of each right in the reader's time zone."""
    labels = {role.value: str(role.label) for role in Role}
    return [
        replace(
            row,
            right=labels.get(row.right, row.right) if row.kind == RightKind.ROLE else row.right,
            since=local_day(datetime.fromisoformat(row.since)),
            until=local_day(datetime.fromisoformat(row.until)) if row.until else "",
        )
        for row in rows
    ]
