"""The Team page: people and groups."""

from collections.abc import Container, Iterable
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
from backoffice.accounts.restrictions import Restriction, restrictions_of
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import last_day, local_day, local_time
from backoffice.core.web.pagination import keyset_page
from backoffice.governance.bootstrap import people_with_renewable_link
from backoffice.governance.team import find_members, groups_with_size, team_members, team_state

VIEW_TEAM = "accounts.view_user"
PEOPLE_PER_PAGE = 50
_LONGEST_SEARCH = 60


@dataclass(frozen=True)
class UnfinishedSetup:
    """How far an active account is that has no authenticator yet, and what the reader can do about it."""

    text: str
    step: str = ""
    """What the reader has to do, on the page of the operation; empty if nothing."""
    operation: UUID | None = None
    may_have_new_link: bool = False
    """Whether the reader, as an administrator, can propose a new link."""
    may_renew_alone: bool = False
    """Whether the reader, as the only administrator, can create a new link at once."""


@dataclass(frozen=True)
class TeamRow:
    """One person in the list, with what is shown of the rights."""

    person: User
    roles: list[str]
    groups: list[str]
    restriction: Restriction | None
    setup: UnfinishedSetup | None


@require_safe
@permission_required(VIEW_TEAM, raise_exception=True)
def team(request: StaffRequest) -> HttpResponse:
    """The people, by name, and a search."""
    text = request.GET.get("q", "").strip()[:_LONGEST_SEARCH]
    found = find_members(team_members(timezone.now()), text).prefetch_related("groups")
    order, cursor = ("full_name", "id"), request.GET.get("cursor")
    page = keyset_page(found, order=order, cursor=cursor, size=PEOPLE_PER_PAGE)
    is_whole = not (text or page.previous_cursor or page.next_cursor)
    state = team_state(request.user)
    is_alone = not (state.steps.administrators or state.has_others)
    rows = team_rows(page.rows, request.user, people_with_renewable_link() if is_alone else ())
    due = state.review_due_at
    context = {
        "page": page,
        "rows": rows,
        "q": text,
        "review_due_at": due if due is not None and due < timezone.now() else None,
        "first_steps": state.steps if is_whole else None,
        "has_others": state.has_others,
        "gaps": state.gaps,
        "can_be_approved": state.steps.administrators,
    }
    return render(request, "governance/team.html", context)


@require_safe
@permission_required(VIEW_TEAM, raise_exception=True)
def group_list(request: StaffRequest) -> HttpResponse:
    """The groups with the number of their active members."""
    return render(request, "governance/groups.html", {"groups": groups_with_size()})


def team_rows(people: list[User], reader: User, renewable: Container[int] = ()) -> list[TeamRow]:
    """What the list shows of people of `team_members` with prefetched roles. One query, for their groups.

    `renewable` as for `setup_of`.
    """
    groups = groups_of(person.pk for person in people)
    return [
        TeamRow(
            person,
            role_labels(person),
            list(groups.get(person.pk, {}).values()),
            max(restrictions_of(vars(person)), key=lambda one: one.until, default=None),
            setup_of(person, reader, renewable),
        )
        for person in people
    ]


def setup_of(person: User, reader: User, renewable: Container[int] = ()) -> UnfinishedSetup | None:
    """How far the set-up of a person of `team_members` is; None once the account has an authenticator.

    `renewable` are the people for whom one administrator alone may create a new link.
    """
    if not person.is_active or vars(person)["has_second_factor"]:
        return None
    link: SetupLink | None = getattr(person, "setup_link", None)
    text = _setup_text(person, link)
    if link is not None and link.expires_at > timezone.now():
        if link.link_for_id == reader.pk and link.link_shown_at is None:
            return UnfinishedSetup(text, gettext("Pass on the link"), link.operation)
        if link.code_for_id == reader.pk and link.code_shown_at is None:
            return UnfinishedSetup(text, gettext("Pass on the start code"), link.operation)
    is_other = person.pk != reader.pk
    return UnfinishedSetup(
        text, may_have_new_link=is_other, may_renew_alone=is_other and person.pk in renewable
    )


def _setup_text(person: User, link: SetupLink | None) -> str:
    if link is None:
        has_password = person.has_usable_password()
        return gettext("Password set, authenticator missing.") if has_password else gettext("No valid link.")
    if link.expires_at <= timezone.now():
        return gettext("Link expired {time}.").format(time=local_time(link.expires_at))
    is_passed_on = link.operation is None or link.link_shown_at is not None
    if person.last_login is not None:  # only a reset takes the authenticator away
        text = (
            gettext("Second factor reset, link valid until {time}.")
            if is_passed_on
            else gettext("Second factor reset, link not passed on yet. Valid until {time}.")
        )
    else:
        text = (
            gettext("Invited, link valid until {time}.")
            if is_passed_on
            else gettext("Invited, link not passed on yet. Valid until {time}.")
        )
    return text.format(time=local_time(link.expires_at))


def role_labels(person: User) -> list[str]:
    """The person's roles as the reader calls them; needs prefetched roles."""
    held = {role.name for role in person.groups.all()}
    return [str(role.label) for role in Role if role.value in held]


def shown_rights(rows: Iterable[AccessRow]) -> list[AccessRow]:
    """The same with each role as the reader calls it, and the first and last day of each right in the reader's time
    zone.
    """
    labels = {role.value: str(role.label) for role in Role}
    return [
        replace(
            row,
            right=labels.get(row.right, row.right) if row.kind == RightKind.ROLE else row.right,
            since=local_day(datetime.fromisoformat(row.since)),
            until=last_day(datetime.fromisoformat(row.until)) if row.until else "",
        )
        for row in rows
    ]
