"""Whether roles, groups and delegations are those that the audit log records, and passwords and authenticators were
set here.
"""

from collections.abc import Mapping

from django.contrib.auth.models import Group
from django.db.models import QuerySet

from backoffice.accounts.models import AuthenticatorDevice, SetupLink, User
from backoffice.accounts.roles import PERMISSIONS, without_reactivated_outside
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.encryption import SealedRow, SealState
from backoffice.operations.kinds.delegation import DelegationKind
from backoffice.operations.kinds.staffing import Staffing
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation

_ROLES_AFTER = {Action.STAFF_CREATED: "roles", Action.STAFF_ROLES_CHANGED: "after"}
_GROUPS_AFTER = {Action.STAFF_GROUPS_CHANGED: "group_ids"}
"""For each action that sets them, the member of its entry that has all of them afterwards."""
_Agreed = tuple[object, object, object]  # the person, the stand-in, and the reference of the operation


def unrecorded_rights() -> list[str]:
    """The active people whose roles or groups are not those of their newest entries or whom the newest one
    deactivates, and the roles whose permissions are not those of this release.

    Read again if something is found: a change may have been made between the queries.
    """
    return _found() and _found()


def altered_accounts() -> list[str]:
    """The active people whose password, authenticator or one-time link was not stored by this program."""
    people = User.objects.filter(is_active=True)
    rows: list[SealedRow] = [
        *people,
        *AuthenticatorDevice.objects.filter(user__in=people).select_related("user"),
        *SetupLink.objects.filter(user__in=people).select_related("user"),
    ]
    return sorted({row.owner for row in rows if not row.is_genuine})


def _found() -> list[str]:
    staffing = Staffing.now()
    (roles, unreadable), (groups, others) = _recorded(_ROLES_AFTER), _recorded(_GROUPS_AFTER)
    recorded = set(without_reactivated_outside(User.objects.all()).values_list("pk", flat=True))
    people = [
        f"{name} ({pk})"
        for pk, name in staffing.names.items()
        if pk not in recorded
        or staffing.roles[pk] != roles.get(str(pk))
        or staffing.groups[pk] != groups.get(str(pk), frozenset()) & staffing.active_groups
    ]
    return sorted(people) + _roles_with_other_permissions() + unreadable + others


def _recorded(members: Mapping[Action, str]) -> tuple[dict[str, frozenset[object]], list[str]]:
    """What the newest of these entries records for each person, by id; and the entries that cannot be read, which
    give no right.
    """
    entries = Entry.objects.filter(target_type=User._meta.label_lower, action__in=members)
    recorded: dict[str, frozenset[object]] = {}
    unreadable = []
    columns = ("position", "target_id", "action", "detail")
    for position, person, action, detail in entries.order_by("position").values_list(*columns):
        stored = detail.get(members[Action(action)], []) if isinstance(detail, dict) else None
        rights = stored if isinstance(stored, list) else [None]
        is_readable = all(isinstance(one, str | int) for one in rights)
        recorded[person] = frozenset(rights) if is_readable else frozenset()
        if not is_readable or not person.isdecimal():
            unreadable.append(f"entry {position} of the audit log cannot be read")
    return recorded, unreadable


def _roles_with_other_permissions() -> list[str]:
    held: dict[str, set[str]] = {}
    columns = ("name", "permissions__content_type__app_label", "permissions__codename")
    for role, app, codename in Group.objects.values_list(*columns):
        held.setdefault(role, set()).update({f"{app}.{codename}"} if codename else ())
    expected = {role.value: names for role, names in PERMISSIONS.items()}
    return sorted(role for role, names in held.items() if names != expected.get(role, set()))


def altered_delegations() -> list[str]:
    """The delegations that have no valid seal, were not agreed on by the operation and the entry of the log that they
    should have, or ended otherwise than the log records; and the approved operations whose delegation is gone.
    """
    operations = Operation.objects.filter(kind=DelegationKind.name, status=Status.SUCCEEDED).order_by(
        "reference"
    )
    agreed_by = dict(operations.values_list("pk", "reference"))
    recorded, ended = _recorded_delegations(), _recorded_ends()
    stored = list(Delegation.objects.select_related("person", "stand_in").order_by("pk"))
    found = [
        f"{one} ({one.pk})"
        for one in stored
        if one.seal_state() != SealState.VALID
        or recorded.get(str(one.pk)) != (one.person_id, one.stand_in_id, agreed_by.get(one.operation))
        or (str(one.pk) in ended) != (one.ended_at is not None)
    ]
    kept = {one.operation for one in stored}
    return found + [reference for pk, reference in agreed_by.items() if pk not in kept]


def _recorded_delegations() -> dict[str, _Agreed]:
    """The person, the stand-in and the operation of each delegation in the audit log, by the delegation's id: as
    the newest entry has it. An entry that cannot be read counts as empty.
    """
    entries = _delegation_entries(Action.DELEGATION_AGREED).values_list("target_id", "detail")
    details = ((pk, detail if isinstance(detail, dict) else {}) for pk, detail in entries)
    return {
        pk: (detail.get("person"), detail.get("stand_in"), detail.get("operation")) for pk, detail in details
    }


def _recorded_ends() -> set[str]:
    return set(_delegation_entries(Action.DELEGATION_ENDED).values_list("target_id", flat=True))


def _delegation_entries(action: Action) -> QuerySet[Entry]:
    return Entry.objects.filter(target_type=Delegation._meta.label_lower, action=action).order_by("position")
