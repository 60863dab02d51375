"""Delegations made without pages, as two people would have agreed on them."""

import uuid
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from backoffice.accounts.models import StaffGroup, User
from backoffice.operations.kinds.delegation import DelegationPayload
from backoffice.policies.delegations import Delegation


def delegated(person: User, stand_in: User, group: StaffGroup, **changes: Any) -> Delegation:
    """A delegation that began two days ago and lasts for another two; agreed on long enough ago."""
    now = timezone.now()
    members: dict[str, Any] = {
        "starts_at": now - timedelta(days=2),
        "ends_at": now + timedelta(days=2),
        "agreed_at": now - timedelta(days=3),
        "operation": uuid.uuid4(),
        **changes,
    }
    delegation = Delegation(person=person, stand_in=stand_in, group=group, **members)
    delegation.make_seal()
    delegation.save(force_insert=True)
    return delegation


def leave(person: User, stand_in: User, of: StaffGroup, **changes: Any) -> DelegationPayload:
    """A week of leave that begins tomorrow."""
    first = timezone.localdate(timezone=ZoneInfo("Africa/Lagos")) + timedelta(days=1)
    members: dict[str, Any] = {
        "person": person.pk,
        "person_name": person.full_name,
        "stand_in": stand_in.pk,
        "stand_in_name": stand_in.full_name,
        "group": of.pk,
        "group_name": of.name,
        "first_day": first,
        "last_day": first + timedelta(days=6),
        "time_zone": "Africa/Lagos",
        "reason": "Annual leave",
        **changes,
    }
    return DelegationPayload(**members)
