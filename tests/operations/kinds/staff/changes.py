"""Staff changes for tests, as the form would describe them."""

import uuid
from typing import Any

from backoffice.accounts.groups import groups_of
from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.staff import role_names
from backoffice.operations.kinds.staff_change import NamedGroup, StaffChange, StaffChangePayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.workflow import prepare
from tests import factories


def invitation(*roles: str, name: str = "Ada Obi", groups: tuple[StaffGroup, ...] = ()) -> StaffChangePayload:
    return StaffChangePayload(
        change=StaffChange.INVITE,
        full_name=name,
        email=f"{name.split()[0].lower()}@countersign.example",
        roles=tuple(sorted(roles)),
        groups=tuple(NamedGroup(id=group.pk, name=group.name) for group in groups),
        reason="Joins on Monday",
    )


def of_person(change: StaffChange, person: User, **afterwards: Any) -> StaffChangePayload:
    roles = tuple(role_names(person))
    groups = tuple(
        NamedGroup(id=key, name=name) for key, name in groups_of([person.pk]).get(person.pk, {}).items()
    )
    members: dict[str, Any] = {
        "change": change,
        "person": person.pk,
        "full_name": person.full_name,
        "email": person.email,
        "roles": roles,
        "groups": groups,
        "roles_before": roles,
        "groups_before": groups,
        "reason": "Agreed with the board",
    }
    return StaffChangePayload(**members | afterwards)


def rights(person: User, *roles: str, groups: tuple[StaffGroup, ...] = ()) -> StaffChangePayload:
    named = tuple(NamedGroup(id=group.pk, name=group.name) for group in groups)
    return of_person(StaffChange.RIGHTS, person, roles=tuple(sorted(roles)), groups=named)


def of_group(change: StaffChange, name: str = "", group: StaffGroup | None = None) -> StaffChangePayload:
    return StaffChangePayload(
        change=change,
        group=group.pk if group else 0,
        group_name=name,
        group_name_before=group.name if group else "",
        reason="Reorganisation",
    )


def proposed(payload: StaffChangePayload, preparer: User) -> Operation:
    return prepare.prepare_operation(uuid.uuid4(), actor=preparer, kind="staff_change", payload=payload)


def agreed(payload: StaffChangePayload, preparer: User, approver: User) -> Operation:
    """The change, proposed by one and approved by the other."""
    return factories.approve(proposed(payload, preparer), approver)
