"""Which approvals count, how far they complete what is required, and in whose place a person can approve.

Approving, releasing and claiming an operation all use these functions. An approval counts while its approver may still
approve. A stand-in's counts only if the person on leave may still approve too, and the delegation covers the time of
the approval.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime

from django.db.models import Q

from backoffice.accounts.models import User
from backoffice.accounts.roles import users_with_permission, without_reactivated_outside
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.operations import errors
from backoffice.operations.approval.requirements import agreed_levels, required_levels
from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.registry import KINDS, approval_permission_for, read_content
from backoffice.operations.models.operations import Approval, Operation
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation, in_effect, leaves_of, locked_delegation
from backoffice.policies.document import Levels
from backoffice.policies.evaluator import Person, Progress, capacity, progress
from backoffice.policies.people import names_nobody, read_people


def approvals_of(operation: Operation) -> list[Approval]:
    """Its approvals with their people and delegations."""
    return list(operation.approvals.select_related("approver", "on_behalf_of", "delegation"))


def people_of(approvals: Iterable[Approval]) -> frozenset[int]:
    """Everybody who approved, and everybody for whom a stand-in did."""
    return frozenset(pk for approval in approvals for pk in approval.involved)


def counting(approvals: Iterable[Approval], entitled: Collection[int]) -> list[Approval]:
    """Those of these approvals that count while these people may approve."""
    return [one for one in approvals if one.involved <= set(entitled) and _is_covered(one)]


def _is_covered(approval: Approval) -> bool:
    """Whether it was given in the approver's own right, or as the delegation allowed at that time."""
    if approval.on_behalf_of_id is None and approval.delegation_id is None:
        return True
    found = approval.delegation
    return (
        found is not None
        and (found.person_id, found.stand_in_id) == (approval.on_behalf_of_id, approval.approver_id)
        and found.covers(approval.approved_at)
    )


def counting_approvals(operation: Operation, approvals: Sequence[Approval] | None = None) -> list[Approval]:
    """Those of its approvals that count now."""
    given = approvals_of(operation) if approvals is None else approvals
    if not given:
        return []
    involved = users_with_permission(approval_permission_for(operation.kind)).filter(pk__in=people_of(given))
    entitled = without_reactivated_outside(involved).order_by().values_list("pk", flat=True)
    return counting(given, set(entitled))


def approval_progress(operation: Operation, approvals: Sequence[Approval] | None = None) -> Progress:
    """How far its approvals that count now, or these, complete what is required. Raises as `required_levels`."""
    given = counting_approvals(operation) if approvals is None else approvals
    return _progress(operation, required_levels(operation), given)


def decided_progress(operation: Operation) -> Progress:
    """How far its approvals that count now complete what its rules require. Raises as `agreed_levels`.

    Without the approval that takes the place of cooling: cooling may end before it is given.
    """
    return _progress(operation, agreed_levels(operation), counting_approvals(operation))


def _progress(operation: Operation, levels: Levels, approvals: Sequence[Approval]) -> Progress:
    return progress(levels, _approvers(operation, levels, approvals), preparer_id=operation.preparer_id)


def in_whose_right(approval: Approval) -> int:
    """The person as whom it counts: the approver, or the one on leave."""
    return approval.on_behalf_of_id or approval.approver_id


def _approvers(operation: Operation, levels: Levels, approvals: Sequence[Approval]) -> list[Person]:
    """As whom these approvals count, in their order: with today's roles and groups if a level requires any."""
    ordered = sorted(approvals, key=lambda one: (one.approved_at, one.pk))
    people = {in_whose_right(one): Person(id=in_whose_right(one), name="") for one in ordered}
    if not names_nobody(levels):
        found = read_people(approval_permission_for(operation.kind), list(people))
        people = {person.id: person for person in found}
    return [as_counted(one, people[in_whose_right(one)]) for one in ordered]


def approved_for(approval: Approval) -> dict[str, object]:
    """What the audit log records of a stand-in's approval; nothing of another one."""
    if approval.on_behalf_of is None or approval.delegation is None:
        return {}
    return {"on_behalf_of": approval.on_behalf_of_id, "approved_by": approval.approved_by}


def as_counted(approval: Approval, person: Person) -> Person:
    """The person as whom it counts, with who approved for that person."""
    stand_in = None if approval.on_behalf_of_id is None else approval.approver_id
    return Person(
        id=person.id, name=person.name, roles=person.roles, groups=person.groups, stand_in_id=stand_in
    )


def delegation_to_approve(person: User, operation: Operation) -> Delegation | None:
    """The delegation by which this person approves at the open level; None in the own right.

    Raises OperationError (`Refusal.ON_LEAVE`) for a person who is on leave now, NotInLevelError for one who can approve
    neither as themselves nor as a stand-in, and as `required_levels`.
    """
    delegations = list(in_effect().filter(Q(person=person) | Q(stand_in=person)).select_related("stand_in"))
    own = next((one for one in delegations if one.person_id == person.pk), None)
    if own is not None:
        raise errors.OperationError(
            Refusal.ON_LEAVE, stand_in=str(own.stand_in), until=own.ends_at.isoformat()
        )
    found = approval_progress(operation).open
    if found is None or found.level.of.is_everyone:
        return None
    people = read_people(
        approval_permission_for(operation.kind), {person.pk, *(one.person_id for one in delegations)}
    )
    by_id = {one.id: one for one in people}
    answer = capacity(
        by_id[person.pk],
        found.level,
        people=by_id,
        leaves=leaves_of(delegations, clock.now()),
        preparer_id=operation.preparer_id,
        approved=people_of(operation.approvals.all()),
        affected=affected_people(operation),
    )
    if answer.hindrance is not None:
        raise errors.NotInLevelError(found.level)
    if answer.in_place_of is None:
        return None
    away = answer.in_place_of.id
    delegation = next(one for one in delegations if one.person_id == away)
    if _has_end_on_record(delegation):
        raise errors.NotInLevelError(found.level)
    return delegation


def time_to_store(delegation: Delegation | None) -> datetime:
    """The time of an approval that is stored now; for a stand-in, one that the delegation covers.

    Raises OperationError if the delegation ended after it was checked: the approval would be stored, and not count.
    """
    if delegation is None:
        return clock.now()
    current = locked_delegation(delegation.pk)
    now = clock.now()
    if not current.covers(now):
        raise errors.OperationError(Refusal.DELEGATION_ENDED, person=str(current.person))
    return now


def _has_end_on_record(delegation: Delegation) -> bool:
    """Whether the audit log says that it ended early: a row put back to before its end still has a valid seal."""
    return Entry.objects.filter(
        action=Action.DELEGATION_ENDED,
        target_type=Delegation._meta.label_lower,
        target_id=str(delegation.pk),
    ).exists()


def affected_people(operation: Operation) -> frozenset[int]:
    """The people whose rights it changes; nobody if its content cannot be read, since then it cannot be approved."""
    with suppress(errors.ContentUnreadableError):
        kind, payload = read_content(operation)
        return kind.affected_people(payload)
    return frozenset()


def lacks_approvals(operation: Operation) -> bool:
    """Whether an approved operation needs more approvals, since a policy was tightened, an approver may no longer
    approve, or cooling holds its recipient. Raises as `required_levels`.
    """
    if operation.status != Status.APPROVED or isinstance(KINDS.get(operation.kind), LocalKind):
        return False
    given = approvals_of(operation)
    if len(given) < operation.approvals_needed:
        return False
    return not approval_progress(operation, counting_approvals(operation, given)).is_complete
