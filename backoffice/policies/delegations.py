"""Delegations: for a period of leave, a person of the same group approves for an approver. Two people agreed on each.

A delegation ends by itself, or early by either of its two people. It gives a right, so the stand-in can act only after
the waiting time for new rights.
"""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext

from backoffice.accounts.models import StaffGroup, User
from backoffice.audit.canonical import canonical_time
from backoffice.core.database.writes import appended
from backoffice.core.encryption import SealedRow, SealState
from backoffice.policies.evaluator import Leave


class Delegation(SealedRow):
    """Who is on leave, who approves for that person, from when until before when."""

    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="delegations")
    stand_in = models.ForeignKey(User, on_delete=models.PROTECT, related_name="stood_in")
    group = models.ForeignKey(StaffGroup, on_delete=models.PROTECT, related_name="+")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    agreed_at = models.DateTimeField()
    operation = models.UUIDField(unique=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    WRITES = appended("seal", "ended_at", "ended_by")

    class Meta:
        default_permissions = ()
        ordering = ("-starts_at", "-pk")
        indexes = [models.Index(fields=["ends_at"], name="delegation_in_effect")]
        constraints = [
            models.CheckConstraint(condition=~Q(person=F("stand_in")), name="delegation_to_another_person"),
            models.CheckConstraint(condition=Q(starts_at__lt=F("ends_at")), name="delegation_has_a_period"),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_by__isnull=True)
                | Q(ended_at__isnull=False, ended_by__isnull=False),
                name="delegation_ended_by_somebody",
            ),
        ]

    def __str__(self) -> str:
        return gettext("{stand_in} for {person}").format(stand_in=self.stand_in, person=self.person)

    def sealed_content(self) -> Mapping[str, object]:
        """That this person acts for that one in this period, by this operation, and who ended it when."""
        return {
            "delegation": str(self.operation),
            "person": self.person_id,
            "stand_in": self.stand_in_id,
            "group": self.group_id,
            "starts_at": canonical_time(self.starts_at),
            "ends_at": canonical_time(self.ends_at),
            "agreed_at": canonical_time(self.agreed_at),
            "ended": [canonical_time(self.ended_at), self.ended_by_id] if self.ended_at else None,
        }

    @property
    def owner(self) -> str:
        return str(self)

    @property
    def acts_from(self) -> datetime:
        """When the stand-in can first approve: the start, or the end of the waiting time for new rights."""
        return max(self.starts_at, self.agreed_at + timedelta(hours=settings.NEW_RIGHTS_WAIT_HOURS))

    @property
    def ends(self) -> datetime:
        """When it ends, or ended early."""
        return self.ends_at if self.ended_at is None else min(self.ends_at, self.ended_at)

    def covers(self, moment: datetime) -> bool:
        """Whether the stand-in could approve at this moment, by the delegation as it was stored."""
        return self.acts_from <= moment < self.ends and self.seal_state() == SealState.VALID


def locked_delegation(pk: int) -> Delegation:
    """The delegation with its people, as last committed. Nobody ends it early before this transaction ends."""
    people = Delegation.objects.select_related("person", "stand_in")
    return people.select_for_update(of=("self",), no_key=True).get(pk=pk)


def in_effect() -> QuerySet[Delegation]:
    """The delegations whose leave lasts now, by the database's clock."""
    return Delegation.objects.filter(starts_at__lte=Now(), ends_at__gt=Now(), ended_at__isnull=True)


def overlapping(starts_at: datetime, ends_at: datetime) -> QuerySet[Delegation]:
    """The delegations that were not ended early and whose period has a moment in common with this one."""
    return Delegation.objects.filter(starts_at__lt=ends_at, ends_at__gt=starts_at, ended_at__isnull=True)


def leaves_of(delegations: Collection[Delegation], now: datetime) -> list[Leave]:
    """These delegations as input of the evaluator, in a fixed order."""
    return [
        Leave(one.person_id, one.stand_in_id, one.group_id, one.covers(now))
        for one in sorted(delegations, key=lambda one: (one.person_id, one.pk))
    ]
