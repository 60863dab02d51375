"""Who can approve an operation now, in whose place, and why everybody else cannot, as the policy evaluator decides."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from backoffice.core import clock
from backoffice.operations.approval.progress import (
    affected_people,
    as_counted,
    counting,
    in_whose_right,
    people_of,
)
from backoffice.operations.approval.requirements import required_levels
from backoffice.operations.kinds.registry import approval_permission_for
from backoffice.operations.models.operations import Approval, Operation
from backoffice.policies.delegations import Delegation, leaves_of
from backoffice.policies.document import Levels
from backoffice.policies.evaluator import Capacity, Person, Progress, capacity, progress
from backoffice.policies.people import Staff, read_staff


@dataclass(frozen=True)
class Approvers:
    """How far the levels are, the approvals that count, and everybody's capacity at the open level, by name.

    `capacities` is empty if no level is open.
    """

    levels: Levels
    progress: Progress
    counted: Sequence[Approval]
    capacities: Sequence[tuple[Person, Capacity]]
    delegations: Sequence[Delegation]

    @property
    def able(self) -> list[tuple[Person, Capacity]]:
        """Those who can approve now."""
        return [(person, found) for person, found in self.capacities if found.hindrance is None]

    @property
    def missing_people(self) -> int:
        """How many more people than those who can approve the open level needs."""
        return max(self.progress.open.missing - len(self.able), 0) if self.progress.open else 0


def approvers_of(operation: Operation, levels: Levels | None = None) -> Approvers:
    """Who can approve this operation. Raises as `required_levels`, unless the levels are given. Needs its approvals."""
    if levels is None:
        levels = required_levels(operation)
    staff = read_staff(approval_permission_for(operation.kind), asked=[level.of for level in levels])
    return answer(operation, levels, staff, list(operation.approvals.all()))


def answer(operation: Operation, levels: Levels, staff: Staff, approvals: Sequence[Approval]) -> Approvers:
    """As `approvers_of`, with the people and approvals read already."""
    people = staff.by_id
    may_approve = {
        one.id for one in staff.people if one.is_active and one.may_approve and not one.is_withheld
    }
    counted = counting(approvals, may_approve)
    given = [as_counted(one, people[in_whose_right(one)]) for one in counted]
    found = progress(levels, given, preparer_id=operation.preparer_id)
    if found.open is None:
        return Approvers(levels, found, counted, [], staff.delegations)
    terms: dict[str, Any] = {
        "people": people,
        "leaves": leaves_of(staff.delegations, clock.recent()) if staff.delegations else (),
        "preparer_id": operation.preparer_id,
        "approved": people_of(approvals),
        "affected": affected_people(operation),
    }
    capacities = [(one, capacity(one, found.open.level, **terms)) for one in staff.people]
    return Approvers(levels, found, counted, capacities, staff.delegations)
