"""Who may do what, since when and by whose approval: the report of an access review."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db.models import FilteredRelation, JSONField, Q, QuerySet, Subquery, Value
from django.db.models.functions import Concat, Now

from backoffice.accounts.models import AccessReview, User
from backoffice.accounts.restrictions import BreakGlassChange, RightsGrant
from backoffice.audit.actions import Action
from backoffice.audit.canonical import canonical_time
from backoffice.audit.models import Entry

REVIEW_INTERVAL = timedelta(days=92)
"""Time from the last review, or from the first account, until the next one is due: once a quarter."""


class RightKind(StrEnum):
    ROLE = "role"
    GROUP = "group"
    STAND_IN = "stand-in"  # approves for a person on leave
    NONE = "none"  # a person without any right is listed once


_ORDER = {kind: place for place, kind in enumerate(RightKind)}


@dataclass(frozen=True)
class AccessRow:
    """One right of one person; `until` is set if it ends by itself. For a stand-in, `right` names the person on leave.

    `agreed_by` names who prepared and who approved it, or who ran which command. It is empty if no grant is on record:
    for roles of the first administrators and of accounts older than these records, and for a membership that was not
    made with Countersign.
    """

    person: int
    name: str
    email: str
    kind: RightKind
    right: str
    since: str
    agreed_by: str
    until: str = ""


def access_rows(people: Iterable[int] | None = None) -> list[AccessRow]:
    """The rights of these people, or of all active people, by name. Two queries; three if there are stand-ins."""
    chosen = (
        User.objects.filter(is_active=True) if people is None else User.objects.filter(pk__in=list(people))
    )
    origins = _origins(chosen)
    rows: dict[tuple[int, str], AccessRow] = {}
    stand_ins: dict[tuple[int, str], tuple[AccessRow, UUID]] = {}
    columns = ("pk", "full_name", "email", "created_at", "groups__name")
    memberships = ("memberships__group", "memberships__group__name")
    lasting = Q(stood_in__ends_at__gt=Now(), stood_in__ended_at__isnull=True)
    found = chosen.annotate(stands_in=FilteredRelation("stood_in", condition=lasting))
    found = found.order_by("full_name", "pk", "groups__name", "memberships__group__name")
    for pk, name, email, created_at, role, group_id, group, *delegation in found.values_list(
        *columns, *memberships, *_DELEGATION
    ):
        rights = [(RightKind.ROLE, role, f"role:{role}")] if role else []
        rights += [(RightKind.GROUP, group, f"group:{group_id}")] if group else []
        for kind, right, key in rights or [(RightKind.NONE, "", "")]:
            since, by = origins.get((pk, key), (created_at, ""))
            rows[pk, key] = AccessRow(pk, name, email, kind, right, canonical_time(since), by)
        away, of_group, starts_at, ends_at, operation = delegation
        if operation:
            right, since, until = f"{away} ({of_group})", canonical_time(starts_at), canonical_time(ends_at)
            row = AccessRow(pk, name, email, RightKind.STAND_IN, right, since, "", until)
            stand_ins[pk, f"stand-in:{operation}"] = row, operation
    rows |= _with_agreed(stand_ins) if stand_ins else {}
    return sorted(
        rows.values(), key=lambda row: (row.name, row.person, _ORDER[row.kind], row.right, row.since)
    )


def report_digest(rows: Iterable[AccessRow]) -> str:
    """SHA-256 of the report: two people sign off exactly these rows."""
    content = json.dumps(stored_rows(rows), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def stored_rows(rows: Iterable[AccessRow]) -> list[dict[str, Any]]:
    """The rows as JSON. An empty `until` is left out, as in earlier reviews, so that their digests still match."""
    return [{name: value for name, value in asdict(row).items() if value or name != "until"} for row in rows]


def review_due_at() -> datetime | None:
    """When the next access review is due; None while there is no account. One query."""
    last = AccessReview.objects.values("signed_at")[:1]
    times = User.objects.order_by("created_at").values_list(Subquery(last), "created_at").first()
    return review_due_after(times and (times[0] or times[1]))


def review_due_after(began: datetime | None) -> datetime | None:
    """When the next review is due after the last one, or after the first account was made."""
    return began + REVIEW_INTERVAL if began else None


# Of a delegation, by its relation to people: it belongs to an application above this one.
_DELEGATION = (
    "stands_in__person__full_name",
    "stands_in__group__name",
    "stands_in__starts_at",
    "stands_in__ends_at",
    "stands_in__operation",
)


def _with_agreed(
    stand_ins: Mapping[tuple[int, str], tuple[AccessRow, UUID]],
) -> dict[tuple[int, str], AccessRow]:
    agreed = _agreed_by(operation for _, operation in stand_ins.values())
    return {
        key: replace(row, agreed_by=" + ".join(agreed.get(str(operation), ())))
        for key, (row, operation) in stand_ins.items()
    }


def _agreed_by(operations: Iterable[UUID]) -> dict[str, list[str]]:
    """By operation: the names of who prepared it and who approved it, from the audit log."""
    entries = Entry.objects.filter(
        action__in=[Action.OPERATION_PREPARED, Action.OPERATION_APPROVED],
        target_type="operations.operation",
        target_id__in=[str(operation) for operation in operations],
    )
    names: dict[str, list[str]] = defaultdict(list)
    for operation, name in entries.order_by("position").values_list("target_id", "actor__full_name"):
        names[operation].append(name or "")
    return names


_Origin = tuple[datetime, str]


def _origins(people: QuerySet[User]) -> dict[tuple[int, str], _Origin]:
    """By person and right (`role:Approver`, `group:3`): when and by whom it was given last.

    A change with break-glass lists all roles afterwards: it gave those that nothing gave before.
    """
    by_shell = Concat(Value("break-glass: "), "os_user", Value("@"), "host")
    no_groups = Value([], output_field=JSONField())
    changes = BreakGlassChange.objects.with_break_glass().filter(user__in=people).order_by()
    grants = RightsGrant.objects.filter(user__in=people).order_by()
    agreed = grants.values_list(
        "user", "at", "roles", "groups", "prepared_by__full_name", "approved_by__full_name"
    )
    alone = changes.values_list("user", "at", "roles", no_groups, by_shell, Value(""))
    found: dict[tuple[int, str], _Origin] = {}
    for user, at, roles, groups, first, second in sorted(agreed.union(alone, all=True), key=itemgetter(1)):
        by = f"{first} + {second}" if second else first
        rights = [f"role:{name}" for name in roles] + [f"group:{key}" for key in groups]
        given = {(user, right): (at, by) for right in rights}
        found = given | found if by.startswith("break-glass: ") else found | given
    return found
