"""Whether the delegations in the database are those that the audit log records and that two people agreed on."""

from django.db.models import QuerySet

from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.encryption import SealState
from backoffice.operations.kinds.delegation import DelegationKind
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation

_Agreed = tuple[object, object, object]  # the person, the stand-in, and the reference of the operation


def altered_delegations() -> list[str]:
    """The delegations that have no valid seal, were not agreed on by the operation and the entry of the log that they
    should have, or ended otherwise than the log records; and the approved operations whose delegation is gone.
    """
    operations = Operation.objects.filter(kind=DelegationKind.name, status=Status.SUCCEEDED).order_by(
        "reference"
    )
    agreed_by = dict(operations.values_list("pk", "reference"))
    recorded, ended = _recorded(), _recorded_ends()
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


def _recorded() -> dict[str, _Agreed]:
    """The person, the stand-in and the operation of each delegation in the audit log, by the delegation's id: as
    the newest entry has it. An entry that cannot be read counts as empty.
    """
    entries = _entries(Action.DELEGATION_AGREED).values_list("target_id", "detail")
    details = ((pk, detail if isinstance(detail, dict) else {}) for pk, detail in entries)
    return {
        pk: (detail.get("person"), detail.get("stand_in"), detail.get("operation")) for pk, detail in details
    }


def _recorded_ends() -> set[str]:
    return set(_entries(Action.DELEGATION_ENDED).values_list("target_id", flat=True))


def _entries(action: Action) -> QuerySet[Entry]:
    return Entry.objects.filter(target_type=Delegation._meta.label_lower, action=action).order_by("position")
