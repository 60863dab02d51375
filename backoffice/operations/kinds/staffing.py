"""Who would be active with which roles and groups after a change, and what that must not leave behind."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

from django.db.models import Exists, OuterRef

from backoffice.accounts.break_glass import REQUIRED_ADMINISTRATORS
from backoffice.accounts.groups import active_groups
from backoffice.accounts.models import User
from backoffice.accounts.roles import PERMISSIONS, Role, enrolled_people
from backoffice.operations.errors import OperationError
from backoffice.operations.permissions import APPROVE, PREPARE, PROPOSE
from backoffice.operations.refusals.codes import Refusal
from backoffice.policies.people import joined_groups, joined_roles, read_groups, read_roles

NEW_PERSON = 0
"""Stands for a person who has no account yet."""


@dataclass(frozen=True)
class Staffing:
    """The active people by id: name, roles and ids of groups; who of them has an authenticator; and the groups that are
    not retired.
    """

    names: Mapping[int, str]
    roles: Mapping[int, frozenset[str]]
    groups: Mapping[int, frozenset[int]]
    enrolled: frozenset[int]
    active_groups: frozenset[int]

    @classmethod
    def now(cls) -> Self:
        """As it is in the database now. Two queries."""
        people = User.objects.filter(is_active=True).values_list(
            "pk",
            "full_name",
            joined_roles("pk"),
            joined_groups("pk"),
            Exists(enrolled_people().filter(pk=OuterRef("pk"))),
        )
        found = list(people)
        return cls(
            names={pk: name for pk, name, *_ in found},
            roles={pk: read_roles(roles) for pk, _, roles, *_ in found},
            groups={pk: read_groups(groups) for pk, _, _, groups, _ in found},
            enrolled=frozenset(pk for pk, *_, is_enrolled in found if is_enrolled),
            active_groups=frozenset(active_groups().values_list("pk", flat=True)),
        )

    def with_person(
        self, person: int, *, name: str, roles: Collection[str], groups: Collection[int]
    ) -> "Staffing":
        """The same with this person active, with exactly these roles and groups."""
        return replace(
            self,
            names={**self.names, person: name},
            roles={**self.roles, person: frozenset(roles)},
            groups={**self.groups, person: frozenset(groups)},
        )

    def without_person(self, person: int) -> "Staffing":
        """The same with this person deactivated."""
        return replace(
            self,
            names={key: name for key, name in self.names.items() if key != person},
            roles={key: roles for key, roles in self.roles.items() if key != person},
            groups={key: groups for key, groups in self.groups.items() if key != person},
        )

    def without_group(self, group: int) -> "Staffing":
        """The same with this group retired."""
        groups = {person: members - {group} for person, members in self.groups.items()}
        return replace(self, groups=groups, active_groups=self.active_groups - {group})

    def holders(self, permission: str) -> frozenset[int]:
        """The active people whose roles include this permission."""
        roles = {role.value for role, names in PERMISSIONS.items() if permission in names}
        return frozenset(person for person, held in self.roles.items() if held & roles)

    def enrolled_only(self) -> "Staffing":
        """The same without the people who have no authenticator yet, since they can approve nothing."""
        return replace(self, roles={key: held for key, held in self.roles.items() if key in self.enrolled})

    @property
    def administrators(self) -> frozenset[int]:
        return frozenset(person for person, held in self.roles.items() if Role.ADMINISTRATOR in held)


StaffingCheck = Callable[[Staffing, Staffing], None]
"""Compares the staffing before and after a change. Raises OperationError if the change must not be made."""


def check_administrators(before: Staffing, after: Staffing) -> None:
    """Raises OperationError if fewer than two active administrators would be left, and fewer than before: of all, or
    of those with an authenticator.
    """
    for earlier, later in ((before, after), (before.enrolled_only(), after.enrolled_only())):
        left = len(later.administrators)
        if left < REQUIRED_ADMINISTRATORS and left < len(earlier.administrators):
            raise OperationError(Refusal.TOO_FEW_ADMINISTRATORS)


def check_somebody_approves(before: Staffing, after: Staffing) -> None:
    """Raises OperationError if somebody who prepares would be left without another person who approves.

    Only if the change causes it: until the first approver is active, preparers may be invited.
    """
    if alone := newly_without_approver(before, after):
        raise OperationError(Refusal.NOBODY_TO_APPROVE, people=", ".join(alone))


def newly_without_approver(before: Staffing, after: Staffing) -> list[str]:
    """The names of those who prepare and would have nobody who approves, if the change causes it."""
    if not before.holders(APPROVE):
        return []
    return sorted(after.names[person] for person in _without_approver(after) - _without_approver(before))


def _without_approver(staffing: Staffing) -> frozenset[int]:
    approvers = staffing.holders(APPROVE)
    preparers = staffing.holders(PREPARE) | staffing.holders(PROPOSE)
    return frozenset(person for person in preparers if not approvers - {person})


STAFFING_CHECKS: list[StaffingCheck] = [check_administrators, check_somebody_approves]
"""All are made when a change is proposed and again when it is applied.

`kinds/__init__.py` adds that the approval policy in effect can still be satisfied.
"""


def check_staffing(before: Staffing, after: Staffing) -> None:
    """Raises OperationError, with the reason as a code, if the change must not be made."""
    for check in STAFFING_CHECKS:
        check(before, after)
