"""Apply a change of staff that two administrators agreed on, in the transaction of the last approval."""

from collections.abc import Callable

from django.db.models import Q

from backoffice.accounts import groups, setup_links, staff
from backoffice.accounts.models import User
from backoffice.accounts.restrictions import AccountChange, RightsGrant
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.staff_change import StaffChange, StaffChangePayload, check_applicable
from backoffice.operations.models.operations import Operation
from backoffice.operations.refusals.codes import Refusal


def apply_staff_change(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    """Make the change, after the checks of its proposal. The caller holds `lock_staff`.

    Raises OperationError if it can no longer be made, or if the person who gets roles or groups brought in both people
    who agreed on it.
    """
    check_applicable(payload)
    if payload.change == StaffChange.RIGHTS and payload.gives_rights:
        _check_invited_by_others(payload.person, {operation.preparer_id, actor.pk})
    _EFFECTS[payload.change](operation, payload, actor)


def _check_invited_by_others(person: int, agreed: set[int]) -> None:
    """Otherwise one person could get rights through two accounts that they invited themselves.

    The invitation of the second administrator does not count: until then there is only one person. Resets and
    reactivations are not checked, or the first administrators could not be helped by those whom they invited.
    """
    invited = RightsGrant.objects.filter(
        Q(prepared_by=person) | Q(approved_by=person),
        change=AccountChange.CREATED,
        operation__isnull=False,
        user__in=agreed,
    )
    if set(invited.values_list("user", flat=True)) == agreed:
        raise OperationError(Refusal.OWN_INVITEES)


def _invite(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    user = staff.create_staff(
        payload.email,
        full_name=payload.full_name,
        roles=payload.roles,
        actor=actor,
        operation=operation.reference,
    )
    _set_groups(user, operation, payload, actor)
    _hand_over(user, operation, actor)
    _grant(user, AccountChange.CREATED, operation, payload, actor)


def _change_rights(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    user = User.objects.get(pk=payload.person)
    if payload.roles != payload.roles_before:
        staff.set_roles(user.pk, roles=payload.roles, actor=actor, operation=operation.reference)
    _set_groups(user, operation, payload, actor)
    if payload.gives_rights:
        _grant(user, AccountChange.ROLES_CHANGED, operation, payload, actor)


def _reactivate(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    user = staff.reactivate_staff(payload.person, actor=actor, operation=operation.reference)
    _grant(user, AccountChange.REACTIVATED, operation, payload, actor)


def _reset_second_factor(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    user = staff.reset_second_factor(payload.person, actor=actor, operation=operation.reference)
    _hand_over(user, operation, actor)
    _grant(user, AccountChange.SECOND_FACTOR_RESET, operation, payload, actor)


def _create_group(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    group = groups.create_group(payload.group_name)
    audit.record(Action.GROUP_CREATED, actor=actor, target=group, operation=operation.reference)


def _rename_group(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    group = groups.rename_group(payload.group, name=payload.group_name)
    before = payload.group_name_before
    audit.record(
        Action.GROUP_RENAMED, actor=actor, target=group, before=before, operation=operation.reference
    )


def _retire_group(operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    group, members = groups.retire_group(payload.group)
    audit.record(
        Action.GROUP_RETIRED, actor=actor, target=group, operation=operation.reference, notified=members
    )


_EFFECTS: dict[StaffChange, Callable[[Operation, StaffChangePayload, User], None]] = {
    StaffChange.INVITE: _invite,
    StaffChange.RIGHTS: _change_rights,
    StaffChange.REACTIVATE: _reactivate,
    StaffChange.SECOND_FACTOR: _reset_second_factor,
    StaffChange.CREATE_GROUP: _create_group,
    StaffChange.RENAME_GROUP: _rename_group,
    StaffChange.RETIRE_GROUP: _retire_group,
}


def _set_groups(user: User, operation: Operation, payload: StaffChangePayload, actor: User) -> None:
    if payload.groups == payload.groups_before:
        return
    ids = [group.id for group in payload.groups]
    groups.set_groups(user, ids, operation=operation.pk)
    audit.record(
        Action.STAFF_GROUPS_CHANGED,
        actor=actor,
        target=user,
        before=[group.name for group in payload.groups_before],
        after=[group.name for group in payload.groups],
        group_ids=ids,
        operation=operation.reference,
    )


def _hand_over(user: User, operation: Operation, actor: User) -> None:
    """The preparer can see the new link, the approver its start code."""
    setup_links.prepare_handover(user, operation=operation.pk, link_for=operation.preparer, code_for=actor)
    audit.record(Action.SETUP_LINK_CREATED, actor=actor, target=user, operation=operation.reference)


def _grant(
    user: User, change: AccountChange, operation: Operation, payload: StaffChangePayload, actor: User
) -> None:
    """Record what the person got, by whom; from now on the person waits before deciding about money."""
    RightsGrant.objects.create(
        user=user,
        change=change,
        roles=payload.new_roles,
        groups=payload.new_groups,
        at=clock.now(),
        operation=operation.pk,
        prepared_by=operation.preparer,
        approved_by=actor,
    )
