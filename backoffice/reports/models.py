"""Tables of background exports and schedules, and the permitted state transitions of an export."""

import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet, TextChoices
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from backoffice.accounts.models import User, validate_time_zone
from backoffice.core import clock
from backoffice.reports.calendar import Frequency, RelativePeriod, frequency_text
from backoffice.reports.errors import failure_sentence, obstacle_sentence
from backoffice.reports.report import FileFormat


class ExportState(TextChoices):
    """The state of an export. The same word in code, database, screen and audit log."""

    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", pgettext_lazy("export status", "Failed")
    CANCELLED = "cancelled", pgettext_lazy("export status", "Cancelled")
    EXPIRED = "expired", pgettext_lazy("export status", "Expired")
    REMOVED = "removed", _("Deleted")


TRANSITIONS: dict[ExportState, frozenset[ExportState]] = {
    ExportState.WAITING: frozenset({ExportState.RUNNING, ExportState.FAILED, ExportState.CANCELLED}),
    # Back to running when the lease of a killed worker expired, and back to waiting when its worker was
    # stopped: in both cases another worker starts from the beginning.
    ExportState.RUNNING: frozenset(
        {
            ExportState.WAITING,
            ExportState.RUNNING,
            ExportState.DONE,
            ExportState.FAILED,
            ExportState.CANCELLED,
        }
    ),
    ExportState.DONE: frozenset({ExportState.EXPIRED, ExportState.REMOVED}),
    ExportState.FAILED: frozenset(),
    ExportState.CANCELLED: frozenset(),
    ExportState.EXPIRED: frozenset(),
    ExportState.REMOVED: frozenset(),
}

_TONES = {
    ExportState.WAITING: "warn",
    ExportState.RUNNING: "info",
    ExportState.DONE: "good",
    ExportState.FAILED: "bad",
}
ACTIVE_STATES = frozenset({ExportState.WAITING, ExportState.RUNNING})


def states_before(state: ExportState) -> frozenset[ExportState]:
    """The states from which this state can be reached."""
    return frozenset(earlier for earlier, onward in TRANSITIONS.items() if state in onward)


def _no_filters() -> dict[str, list[str]]:
    return {}


class Schedule(models.Model):
    """A report produced regularly, for each recipient with that person's own permissions.

    `next_at` is the next due time: the process that advances it requests the exports for that time.
    """

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    report = models.CharField(max_length=40)
    filters = models.JSONField(default=_no_filters)  # names and values, as in a query string
    columns = models.JSONField(default=list)  # names; empty: all columns
    format = models.CharField(max_length=4, choices=FileFormat, default=FileFormat.CSV)
    has_byte_order_mark = models.BooleanField(default=False)
    period = models.CharField(max_length=16, choices=RelativePeriod, default=RelativePeriod.ALL)
    frequency = models.CharField(max_length=8, choices=Frequency)
    day = models.PositiveSmallIntegerField(default=1)  # day of the week (Monday is 1) or of the month
    hour = models.PositiveSmallIntegerField()
    time_zone = models.CharField(max_length=64, validators=[validate_time_zone])
    language = models.CharField(max_length=5, default="en")  # of the files, not "auto"
    recipients = models.ManyToManyField(User, related_name="+")
    is_paused = models.BooleanField(default=False)
    next_at = models.DateTimeField(db_index=True)
    last_at = models.DateTimeField(null=True)
    # The recipients that got no file in the last run, and why.
    last_obstacles = models.JSONField(default=list)

    class Meta:
        default_permissions = ()
        ordering = ("name", "pk")
        constraints = [models.CheckConstraint(condition=Q(hour__lt=24), name="schedule_hour_below_24")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("reports:schedule", args=[self.pk])

    @property
    def frequency_text(self) -> str:
        """How often, in words."""
        return frequency_text(self.frequency, self.day)

    @property
    def last_obstacles_text(self) -> str:
        """The recipients that got no file in the last run, and why, in words."""
        return "; ".join(map(obstacle_sentence, self.last_obstacles))


class ExportJob(models.Model):
    """One background export of a report, for one person.

    A running one belongs to its runner for as long as that holds its lease. The file is complete and in the
    store of exports before the state is `done`; a partial file of a killed runner never is.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="exports")
    report = models.CharField(max_length=40)
    filters = models.JSONField(default=_no_filters)
    columns = models.JSONField(default=list)
    format = models.CharField(max_length=4, choices=FileFormat, default=FileFormat.CSV)
    has_byte_order_mark = models.BooleanField(default=False)
    time_zone = models.CharField(max_length=64)
    language = models.CharField(max_length=5, default="en")  # of the file, not "auto"
    state = models.CharField(max_length=9, choices=ExportState, default=ExportState.WAITING)
    rows = models.PositiveBigIntegerField(default=0)
    estimate = models.PositiveBigIntegerField(null=True)
    failure = models.JSONField(default=dict)  # a `FailureCode` and its parameters, if it failed

    name = models.CharField(max_length=120, blank=True)  # file name of the download
    stored_as = models.CharField(max_length=80, blank=True)  # random name in the store of exports
    size = models.PositiveBigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)

    # Only for reports that read the mirror.
    covers_until = models.DateTimeField(null=True)  # end of its period, if past when requested or scheduled
    as_of = models.DateTimeField(null=True)  # how far the mirror was synced when it started

    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    runner = models.CharField(max_length=40, blank=True)  # the lease of its last runner, with its number
    tries = models.PositiveSmallIntegerField(default=0)

    schedule = models.ForeignKey(Schedule, on_delete=models.SET_NULL, null=True, related_name="exports")
    due_at = models.DateTimeField(null=True)
    mail_due_at = models.DateTimeField(null=True)  # when to send the email; null: none, or sent

    class Meta:
        default_permissions = ()
        ordering = ("-created_at", "-id")
        indexes = [
            models.Index(fields=["person", "-created_at", "-id"], name="export_by_person"),
            models.Index(
                fields=["created_at"], name="export_active", condition=Q(state__in=sorted(ACTIVE_STATES))
            ),
            models.Index(fields=["expires_at"], name="export_done", condition=Q(state=ExportState.DONE)),
            models.Index(
                fields=["mail_due_at"], name="export_mail_due", condition=Q(mail_due_at__isnull=False)
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["schedule", "due_at", "person"], name="export_once_per_due_time"),
            models.CheckConstraint(condition=Q(state__in=ExportState.values), name="export_state_known"),
            models.CheckConstraint(
                condition=~Q(state=ExportState.DONE)
                | (Q(size__isnull=False) & ~Q(sha256="") & ~Q(stored_as="")),
                name="export_done_has_a_file",
            ),
        ]

    def __str__(self) -> str:
        return self.name or f"the report {self.report}"

    def get_absolute_url(self) -> str:
        return reverse("reports:export", args=[self.pk])

    @property
    def failure_text(self) -> str:
        """Why it failed, in words; empty if it did not."""
        return failure_sentence(self.failure) if self.failure else ""

    @property
    def is_active(self) -> bool:
        """Whether it is waiting or running."""
        return ExportState(self.state) in ACTIVE_STATES

    @property
    def tone(self) -> str:
        """The colour of the state's badge."""
        return _TONES.get(ExportState(self.state), "")

    @property
    def expected_rows(self) -> int:
        """The estimate, or the rows already written if these are more."""
        return max(self.estimate or 0, self.rows)

    @property
    def has_rows(self) -> bool:
        """Whether `rows` counts rows of a file that is being written, exists or existed."""
        return self.state in {ExportState.RUNNING, ExportState.DONE, ExportState.EXPIRED, ExportState.REMOVED}

    @property
    def stage(self) -> str:
        """Announced to screen readers: the state and, while running, every quarter of the rows."""
        if self.state != ExportState.RUNNING or not self.estimate:
            return self.state
        return f"{min(3, 4 * self.rows // self.estimate) * 25} %"

    @property
    def request_fields(self) -> dict[str, Any]:
        """What was requested, to request it again."""
        names = (
            "report",
            "filters",
            "columns",
            "format",
            "has_byte_order_mark",
            "time_zone",
            "language",
            "estimate",
        )
        return {name: getattr(self, name) for name in names}


_MAIL_LATE_AFTER = timedelta(minutes=15)


def late_mails() -> QuerySet[ExportJob]:
    """Exports whose mail should have been sent by now: the mail server is away or refuses it."""
    mailed = ExportJob.objects.filter(
        mail_due_at__isnull=False, state__in=[ExportState.DONE, ExportState.FAILED]
    )
    return mailed.filter(ended_at__lte=clock.now() - _MAIL_LATE_AFTER)


def work_folder() -> Path:
    """The folder of this machine in which files are made, readable only by this system user."""
    path = Path(settings.DATA_DIR) / "exports"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def change_state(job: ExportJob, to: ExportState, **changes: Any) -> bool:
    """Compare-and-set the state; returns whether this call did it.

    State and runner must be unchanged since `job` was read, so a runner that lost its lease changes nothing.
    """
    if job.state not in states_before(to):
        return False
    won = ExportJob.objects.filter(pk=job.pk, state=job.state, runner=job.runner).update(state=to, **changes)
    if won:
        job.state = to
        for name, value in changes.items():
            setattr(job, name, value)
    return bool(won)
