"""The pause of all payments, incidents, the last inspection, and the heartbeats of the sweeper's jobs."""

from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.audit.models import CheckpointDestination
from backoffice.core.database.queries import CompiledQuery, composed_once
from backoffice.core.database.writes import NEVER_DELETED, appended
from backoffice.ledger.models import Transaction
from backoffice.operations.models.evidence import evidence_in_words
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind, LostAttemptState, PauseCause
from backoffice.operations.states import PROVEN_NOT_EXECUTED, Outcome


class Pause(models.Model):
    """A period in which nothing is sent. It lasts until an operation approved by a second person ends it.

    A person starts it with a reason, or Countersign itself because of a cause.
    """

    WRITES = appended("ended_at", "ended_by")

    paused_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    paused_at = models.DateTimeField()
    reason = models.CharField(max_length=500, blank=True)
    cause = models.CharField(max_length=32, choices=PauseCause, blank=True)
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
            models.CheckConstraint(
                condition=(Q(paused_by__isnull=False, cause="") & ~Q(reason=""))
                | Q(paused_by__isnull=True, cause__in=PauseCause.values, reason=""),
                name="pause_by_a_person_or_a_cause",
            ),
        ]

    def __str__(self) -> str:
        return "payments"

    @property
    def by(self) -> str:
        """Who paused: a person, or Countersign itself."""
        return "Countersign" if self.paused_by is None else str(self.paused_by)

    @property
    def why(self) -> str:
        """The person's reason, or the cause in words."""
        return str(self.get_cause_display()) if self.cause else self.reason


def is_paused() -> bool:
    """Whether payments are paused now, read from the database."""
    return Pause.objects.filter(ended_at__isnull=True).exists()


def current_pause() -> Pause | None:
    """The pause in effect now, with the user who started it."""
    return _current_pause().first()


@composed_once
def _current_pause() -> CompiledQuery[Pause]:
    return CompiledQuery(Pause.objects.select_related("paused_by").filter(ended_at__isnull=True))


POSSIBLY_PAID = frozenset(
    {
        IncidentKind.EXECUTED_DESPITE_PROOF,
        IncidentKind.EXECUTED_AFTER_ALL,
        IncidentKind.NOW_EXECUTED,
        IncidentKind.LATE_RESPONSE,
    }
)
"""What says that an operation was executed although it is recorded as not executed."""


_SUBJECTS = ("operation", "transaction", "pause", "destination")


def _is_only(subject: str) -> Q:
    return Q(**{f"{name}__isnull": name != subject for name in _SUBJECTS})


class Incident(models.Model):
    """Evidence that contradicts an operation's record, a transaction that belongs to no operation, the finding because
    of which payments were paused, or a destination that lacks checkpoints of the audit log.

    It changes nothing; people find out what is true. An incident's evidence never changes: later evidence of
    the same kind raises a further incident, linked by `further_to`.
    """

    WRITES = NEVER_DELETED

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, related_name="incidents")
    transaction = models.ForeignKey(
        Transaction, on_delete=models.PROTECT, null=True, related_name="incidents"
    )
    pause = models.ForeignKey(Pause, on_delete=models.PROTECT, null=True, related_name="incidents")
    destination = models.ForeignKey(
        CheckpointDestination, on_delete=models.PROTECT, null=True, related_name="incidents", db_index=False
    )
    kind = models.CharField(max_length=32, choices=IncidentKind)
    evidence = models.JSONField()  # the values that were seen, for `evidence_in_words`
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
                condition=_is_only("operation")
                | _is_only("transaction")
                | _is_only("pause")
                | _is_only("destination"),
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
            models.UniqueConstraint(
                fields=["pause"],
                condition=Q(further_to__isnull=True),
                name="incident_first_once_per_pause",
            ),
            models.UniqueConstraint(
                fields=["destination"],
                condition=Q(further_to__isnull=True),
                name="incident_first_once_per_destination",
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
    def subject(self) -> Operation | Transaction | Pause | CheckpointDestination | None:
        """What it is about."""
        return self.operation or self.transaction or self.pause or self.destination

    @property
    def sentence(self) -> str:
        """The contradiction in words."""
        return str(self.get_kind_display())

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The evidence in words: name and text."""
        return evidence_in_words(self.evidence)

    @property
    def is_open(self) -> bool:
        return self.acknowledged_at is None

    @property
    def is_delivered_again(self) -> bool:
        """Whether the destination has got checkpoints since."""
        undelivered = self.evidence.get("undelivered") if isinstance(self.evidence, dict) else None
        return (
            self.destination is not None
            and isinstance(undelivered, int)
            and self.destination.position >= undelivered
        )


class LostAttemptManager(models.Manager["LostAttempt"]):
    def maybe_executed(self) -> "models.QuerySet[LostAttempt]":
        """Those that no response proves as not executed."""
        return self.exclude(outcome__in=PROVEN_NOT_EXECUTED)

    def keeps_open(self, operation: Operation) -> bool:
        """Whether this operation may have been executed before a restore, so that it must not end as unsent.

        An operation that was prepared anew under the same id, from a form that was still open, has another
        reference. It is not sent either.
        """
        lost = self.maybe_executed().filter(operation=operation.pk)
        return lost.filter(line__reference=operation.reference).exists()


class LostAttempt(models.Model):
    """An attempt that a journal outside the database proves and that this database did not have: it was restored
    to an earlier moment, or a standby was promoted without the last commits.

    It is evidence: while its outcome is not proven as not executed, the operation is not sent again.
    """

    WRITES = NEVER_DELETED

    incident = models.ForeignKey(Incident, on_delete=models.PROTECT, related_name="lost_attempts")
    # Without a constraint: the operation itself may have been lost.
    operation = models.ForeignKey(
        Operation, on_delete=models.DO_NOTHING, db_constraint=False, related_name="lost_attempts"
    )
    number = models.PositiveSmallIntegerField()
    started_at = models.DateTimeField()
    machine = models.CharField(max_length=255)  # whose journal has it
    line = models.JSONField()  # as it was written before the request
    # From the line written after the response; open and empty without one.
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.OPEN)
    transaction_id = models.TextField(blank=True)
    # Made from the line, so that the operation is closed by matching; null if that is not possible, or not yet.
    attempt = models.OneToOneField(Attempt, on_delete=models.PROTECT, null=True, related_name="lost_attempt")

    objects = LostAttemptManager()

    class Meta:
        default_permissions = ()
        ordering = ("pk",)
        constraints = [
            models.UniqueConstraint(fields=["operation", "started_at"], name="lost_attempt_once"),
            models.CheckConstraint(
                condition=Q(outcome__in=Outcome.values), name="lost_attempt_outcome_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.line.get('reference', self.operation_id)}, attempt {self.number}"

    @property
    def amount(self) -> Decimal | None:
        """The amount that was sent, in the currency of `line`; None for what moves no money."""
        amount = self.line.get("amount")
        return None if amount is None else Decimal(amount)

    @property
    def state(self) -> LostAttemptState:
        """What became of it here; until it is closed, the provider may have executed it."""
        attempt = self.attempt
        if (attempt.outcome if attempt and attempt.closed_at else self.outcome) in PROVEN_NOT_EXECUTED:
            return LostAttemptState.NOT_EXECUTED
        if attempt and attempt.resolution_id:
            return LostAttemptState.RESOLVED
        if attempt:
            return LostAttemptState.MATCHED if attempt.closed_at else LostAttemptState.RECREATED
        try:
            _ = self.operation
        except Operation.DoesNotExist:
            return LostAttemptState.OPERATION_MISSING
        return LostAttemptState.NOT_COMPARED

    @property
    def evidence(self) -> str:
        """What the journal says about the response, in words."""
        if self.outcome == Outcome.OPEN:
            return gettext("The journal does not prove an outcome.")
        return gettext("Outcome: {outcome}.").format(outcome=self.get_outcome_display())


class Inspection(models.Model):
    """The last run of the integrity checks, and how far the audit log was verified: one row.

    It also keeps the time to approval, which takes too long to count on a page.
    """

    at = models.DateTimeField()
    took = models.FloatField(default=0)  # seconds
    violations = models.JSONField(default=dict)  # rule → how many, and the references of the first of them
    log_position = models.PositiveBigIntegerField(default=0)
    log_hash = models.CharField(max_length=64, blank=True)
    # The last operation checked in the rotation through all of them.
    inspected_to = models.UUIDField(null=True)
    # operations approved in the last thirty days, and their median time to approval
    approved_count = models.PositiveIntegerField(default=0)
    median_approval_time = models.DurationField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=Q(pk=1), name="inspection_one_row")]

    def __str__(self) -> str:
        return "integrity checks"


class Heartbeat(models.Model):
    """When a job of the sweeper last finished a round, and when and how it last failed, in any process."""

    job = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField(null=True)  # empty while it has only failed
    failed_at = models.DateTimeField(null=True)
    # The name of the exception, without its text. The previous release inserts rows without it.
    error = models.CharField(max_length=120, blank=True, db_default="")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.job

    @property
    def is_failing(self) -> bool:
        """Whether it failed since it last finished a round."""
        return self.failed_at is not None and (self.at is None or self.failed_at > self.at)
