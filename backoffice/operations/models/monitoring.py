"""The pause of all payments, incidents, the last inspection, and the heartbeats of the sweeper's jobs."""

from django.db import models
from django.db.models import Q
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.ledger.models import Transaction
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import IncidentKind, shown


class Pause(models.Model):
    """A period in which nothing is sent. It lasts until an operation approved by a second person ends it."""

    paused_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    paused_at = models.DateTimeField()
    reason = models.CharField(max_length=500)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.OneToOneField(Operation, on_delete=models.PROTECT, null=True, related_name="+")

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                models.expressions.Value(1), condition=Q(ended_at__isnull=True), name="pause_one_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(ended_at__isnull=True, ended_by__isnull=True)
                | Q(ended_at__isnull=False, ended_by__isnull=False),
                name="pause_ended_by_two_people",
            ),
        ]

    def __str__(self) -> str:
        return "payments"


def is_paused() -> bool:
    """Whether payments are paused now, read from the database."""
    return Pause.objects.filter(ended_at__isnull=True).exists()


def current_pause() -> Pause | None:
    """The pause in effect now, with the user who started it."""
    return Pause.objects.select_related("paused_by").filter(ended_at__isnull=True).first()


class Incident(models.Model):
    """Evidence that contradicts an operation's record, or a transaction that belongs to no operation.

    It changes nothing; people find out what is true. An incident's evidence never changes: later evidence of
    the same kind raises a further incident, linked by `further_to`.
    """

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, related_name="incidents")
    transaction = models.ForeignKey(
        Transaction, on_delete=models.PROTECT, null=True, related_name="incidents"
    )
    kind = models.CharField(max_length=32, choices=IncidentKind)
    evidence = models.JSONField()  # the values that were seen; `reason_codes.shown` puts them into words
    # The earlier incident of the same kind that this one follows.
    further_to = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="followed_by")
    at = models.DateTimeField()
    acknowledged_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    acknowledged_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=500, blank=True)

    class Meta:
        default_permissions = ()
        permissions = [("acknowledge_incident", "Can acknowledge incidents")]
        ordering = ("-at", "-pk")
        indexes = [
            models.Index(fields=["-at", "-id"], name="incident_newest"),
            models.Index(
                fields=["-at", "-id"], name="incident_open", condition=Q(acknowledged_at__isnull=True)
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(operation__isnull=True, transaction__isnull=False)
                | Q(operation__isnull=False, transaction__isnull=True),
                name="incident_is_about_one_thing",
            ),
            models.UniqueConstraint(
                fields=["operation", "kind"],
                condition=Q(further_to__isnull=True),
                name="incident_first_once_per_operation",
            ),
            models.UniqueConstraint(
                fields=["transaction"],
                condition=Q(further_to__isnull=True),
                name="incident_first_once_per_transaction",
            ),
            models.CheckConstraint(condition=Q(kind__in=IncidentKind.values), name="incident_kind_known"),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by__isnull=True, note="")
                | (Q(acknowledged_at__isnull=False, acknowledged_by__isnull=False) & ~Q(note="")),
                name="incident_acknowledged_by_a_person_with_a_note",
            ),
        ]

    def __str__(self) -> str:
        return self.sentence

    def get_absolute_url(self) -> str:
        return reverse("operations:incident", args=[self.pk])

    @property
    def subject(self) -> Operation | Transaction | None:
        """The operation or the provider's transaction that it is about."""
        return self.operation or self.transaction

    @property
    def sentence(self) -> str:
        """The contradiction in words."""
        return str(self.get_kind_display())

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The evidence in words: name and text."""
        return shown(self.evidence)

    @property
    def is_open(self) -> bool:
        return self.acknowledged_at is None


class Inspection(models.Model):
    """The last run of the integrity checks, and how far the audit log was verified: one row.

    It also keeps the time to approval, which takes too long to count on a page.
    """

    at = models.DateTimeField()
    took = models.FloatField(default=0)  # seconds
    violations = models.JSONField(default=dict)  # rule → how many, and the references of the first of them
    log_position = models.PositiveBigIntegerField(default=0)
    log_hash = models.CharField(max_length=64, blank=True)
    inspected_to = models.UUIDField(
        null=True
    )  # the last operation checked in the rotation through all of them
    # operations approved in the last thirty days, and their median time to approval
    approved_count = models.PositiveIntegerField(default=0)
    median_approval_time = models.DurationField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="inspection_one_row")]

    def __str__(self) -> str:
        return "integrity checks"


class Heartbeat(models.Model):
    """When a job of the sweeper last finished a round, in any process."""

    job = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.job
