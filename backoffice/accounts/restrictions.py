"""What restricts a person for a time: changes of the account that one person made alone, and new rights that two gave.

`models` imports this module, so its foreign keys name the user model by the setting.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from backoffice.core.database.writes import APPEND_ONLY, appended


class AccountChange(models.TextChoices):
    """What was changed in an account. The label is the sentence, with its parameter in braces."""

    CREATED = "created", _("The account of {person} was created")
    ROLES_CHANGED = "roles_changed", _("The roles of {person} were changed")
    REACTIVATED = "reactivated", _("The account of {person} was reactivated")
    DEACTIVATED = "deactivated", _("The account of {person} was deactivated")
    PASSWORD_RESET = "password_reset", _("The password of {person} was reset")
    SECOND_FACTOR_RESET = "second_factor_reset", _("Password and second factor of {person} were reset")
    INVITED_ALONE = (
        "invited_alone",
        _(
            "One person alone created the account of {person}, of the first two administrators, or renewed its link"
        ),
    )


class RestrictionCause(StrEnum):
    """What keeps a person from deciding for a time. `roles.WITHHELD` lists the permissions that each withholds."""

    BREAK_GLASS = "break_glass"
    NEW_RIGHTS = "new_rights"
    RECOVERED_ACCOUNT = "recovered_account"

    @property
    def lasts(self) -> timedelta:
        """How long it restricts, by the setting of the process that checks it; nothing is stored with the change."""
        if self is RestrictionCause.BREAK_GLASS:
            return timedelta(hours=settings.BREAK_GLASS_RESTRICTION_HOURS)
        return timedelta(hours=settings.NEW_RIGHTS_WAIT_HOURS)


@dataclass(frozen=True)
class Restriction:
    """Why a person may not decide for now, and until when."""

    cause: RestrictionCause
    until: datetime


ADMINISTRATOR = "Administrator"
"""The role that approves staff changes. The others are in `roles`, which imports this module."""
_RECOVERIES = (AccountChange.REACTIVATED, AccountChange.SECOND_FACTOR_RESET)
_OTHERS_NEEDED = 2  # one to prepare and one to approve

_Change = TypeVar("_Change", bound=models.Model)


class RestrictingManager(models.Manager[_Change]):
    """Changes of accounts, each of which restricts its person for the time of its cause."""

    cause: ClassVar[RestrictionCause]

    def in_effect(self) -> QuerySet[_Change]:
        """Changes whose restriction has not ended, by the database's clock."""
        return self.filter(at__gt=Now() - self.cause.lasts)


def restriction_times() -> tuple[timedelta, ...]:
    """How long each cause restricts: what composed queries depend on."""
    return tuple(cause.lasts for cause in RestrictionCause)


def longest_restriction_hours() -> int:
    """The hours after which no change of an account made until now restricts it any more."""
    return round(max(restriction_times()) / timedelta(hours=1))


def restrictions_of(annotated: Mapping[str, Any]) -> tuple[Restriction, ...]:
    """The restrictions in a row that has `latest_restricting_changes`."""
    times = {cause: annotated.get(f"{cause.value}_at") for cause in RestrictionCause}
    return tuple(Restriction(cause, at + cause.lasts) for cause, at in times.items() if at)


class BreakGlassChangeManager(RestrictingManager["BreakGlassChange"]):
    cause = RestrictionCause.BREAK_GLASS

    def unacknowledged(self) -> QuerySet["BreakGlassChange"]:
        return self.filter(acknowledged_at__isnull=True)

    def with_break_glass(self) -> QuerySet["BreakGlassChange"]:
        return self.exclude(change=AccountChange.INVITED_ALONE)

    def in_effect(self) -> QuerySet["BreakGlassChange"]:
        return super().in_effect().exclude(change=AccountChange.INVITED_ALONE)


class BreakGlassChange(models.Model):
    """One change of an account by one person alone: an incident until another person acknowledges it.

    With break-glass: the person can then neither approve, send nor resolve for a day. Or it is the second administrator
    of a new installation, whom the first one (`invited_by`) invited or whoever made the first one at the shell made:
    neither of the two administrators can acknowledge that.
    """

    WRITES = appended("acknowledged_by", "acknowledged_at", "note")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="break_glass_changes"
    )
    change = models.CharField(max_length=32, choices=AccountChange)
    roles = models.JSONField(default=list)  # names of the person's roles after the change
    reason = models.CharField(max_length=500, blank=True)
    os_user = models.CharField(max_length=255, blank=True)
    host = models.CharField(max_length=255, blank=True)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    at = models.DateTimeField()
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    acknowledged_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=500, blank=True)

    objects: ClassVar[BreakGlassChangeManager] = BreakGlassChangeManager()

    class Meta:
        default_permissions = ()
        ordering = ("-at", "-pk")
        indexes = [
            models.Index(fields=["user", "at"], name="break_glass_restriction"),
            models.Index(
                fields=["-at", "-id"], name="break_glass_open", condition=Q(acknowledged_at__isnull=True)
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(change__in=AccountChange.values), name="break_glass_known"),
            models.CheckConstraint(
                condition=(
                    ~Q(change=AccountChange.INVITED_ALONE)
                    & Q(invited_by__isnull=True)
                    & ~Q(reason="")
                    & ~Q(os_user="")
                    & ~Q(host="")
                )
                | Q(change=AccountChange.INVITED_ALONE, invited_by__isnull=False),
                name="break_glass_with_origin",
            ),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by__isnull=True, note="")
                | (Q(acknowledged_at__isnull=False, acknowledged_by__isnull=False) & ~Q(note="")),
                name="break_glass_acknowledged_by_a_person_with_a_note",
            ),
            models.CheckConstraint(
                condition=Q(acknowledged_by__isnull=True)
                | (
                    ~Q(acknowledged_by=F("user"))
                    & (Q(invited_by__isnull=True) | ~Q(acknowledged_by=F("invited_by")))
                ),
                name="break_glass_acknowledged_by_another_person",
            ),
        ]

    def __str__(self) -> str:
        return self.sentence

    @property
    def sentence(self) -> str:
        """The change in words."""
        return str(self.get_change_display()).format(person=self.user)

    @property
    def restricted_until(self) -> datetime:
        """When the person may approve, send and resolve again, after break-glass."""
        return self.at + RestrictionCause.BREAK_GLASS.lasts

    @property
    def is_open(self) -> bool:
        return self.acknowledged_at is None

    @property
    def is_break_glass(self) -> bool:
        return self.change != AccountChange.INVITED_ALONE

    def is_about(self, person: models.Model) -> bool:
        """Whether the person had a part in it, and so cannot acknowledge it."""
        return person.pk in {self.user_id, self.invited_by_id}


class RightsGrantManager(RestrictingManager["RightsGrant"]):
    cause = RestrictionCause.NEW_RIGHTS


class RecoveryManager(RestrictingManager["RightsGrant"]):
    """Reactivations and resets of second factors.

    They restrict only while two other administrators can approve staff changes. Otherwise an installation would be
    locked out for a day.
    """

    cause = RestrictionCause.RECOVERED_ACCOUNT

    def in_effect(self) -> QuerySet["RightsGrant"]:
        recent = self._recent()
        return recent.alias(others=Subquery(self._free_administrators(recent))).filter(
            others__gte=_OTHERS_NEEDED
        )

    def _recent(self) -> QuerySet["RightsGrant"]:
        return super().in_effect().filter(change__in=_RECOVERIES)

    def _free_administrators(self, recent: QuerySet["RightsGrant"]) -> QuerySet[Any, Any]:
        """The number of unrestricted administrators besides the person of the outer query; no row if there are none."""
        free = (
            get_user_model()
            .objects.filter(
                is_active=True,
                groups__name=ADMINISTRATOR,
                authenticators__confirmed=True,
            )
            .exclude(pk=OuterRef("user"))
            .exclude(Exists(BreakGlassChange.objects.in_effect().filter(user=OuterRef("pk"))))
            .exclude(Exists(recent.filter(user=OuterRef("pk"))))
        )
        return free.order_by().values(one=Value(1)).annotate(n=Count("pk", distinct=True)).values("n")


class RightsGrant(models.Model):
    """Rights that two people gave to a third one: an account, a role, a group, or a new second factor.

    The person can neither approve, send nor resolve for a day (`RestrictionCause.NEW_RIGHTS`); after a recovery of the
    account, nor agree on staff changes (`RestrictionCause.RECOVERED_ACCOUNT`). `roles` and `groups` are those that
    the person did not have before: names of roles, ids of groups. The first administrator invites the second one
    alone; only that has neither operation nor approver.
    """

    WRITES = APPEND_ONLY

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="grants")
    change = models.CharField(max_length=32, choices=AccountChange)
    roles = models.JSONField(default=list)
    groups = models.JSONField(default=list)
    at = models.DateTimeField()
    operation = models.UUIDField(null=True)
    prepared_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )

    objects: ClassVar[RightsGrantManager] = RightsGrantManager()
    recoveries: ClassVar[RecoveryManager] = RecoveryManager()

    class Meta:
        default_permissions = ()
        ordering = ("-at", "-pk")
        indexes = [models.Index(fields=["user", "at"], name="rights_grant_restriction")]
        constraints = [
            models.CheckConstraint(condition=Q(change__in=AccountChange.values), name="rights_grant_known"),
            models.CheckConstraint(
                condition=Q(operation__isnull=True, approved_by__isnull=True, change=AccountChange.CREATED)
                | Q(operation__isnull=False, approved_by__isnull=False),
                name="rights_grant_by_two_people",
            ),
            models.CheckConstraint(
                condition=~Q(prepared_by=F("user"))
                & (
                    Q(approved_by__isnull=True)
                    | (~Q(approved_by=F("user")) & ~Q(approved_by=F("prepared_by")))
                ),
                name="rights_grant_by_other_people",
            ),
        ]

    def __str__(self) -> str:
        return str(self.get_change_display()).format(person=self.user)


RESTRICTING: tuple[RestrictingManager[Any], ...] = (
    BreakGlassChange.objects,
    RightsGrant.objects,
    RightsGrant.recoveries,
)
"""Every kind of change that restricts, one for each cause."""


def latest_restricting_changes(person: str) -> dict[str, Subquery]:
    """Annotations with the time of the latest change in effect of each cause; `person` refers to the person's id."""
    return {
        f"{manager.cause.value}_at": Subquery(
            manager.in_effect().filter(user=OuterRef(person)).order_by("-at").values("at")[:1]
        )
        for manager in RESTRICTING
    }
