"""Tables of background exports and schedules, and the states of an export with the only transitions between them."""

import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q, TextChoices
from django.urls import reverse

from backoffice.accounts.models import User, validate_time_zone
from backoffice.reports.calendar import Frequency, RelativePeriod, frequency_text
from backoffice.reports.report import FileFormat


class ExportState(TextChoices):
    """Where an export stands. The same word in code, database, screen and audit log."""

    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"
    EXPIRED = "expired", "Expired"
    REMOVED = "removed", "Removed"


TRANSITIONS: dict[ExportState, frozenset[ExportState]] = {
    ExportState.WAITING: frozenset({ExportState.RUNNING, ExportState.FAILED, ExportState.CANCELLED}),
    # To running again when the lease of a killed worker ran out, and back to waiting when its worker was told to end:
    # another one starts anew, from nothing.
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

ACTIVE_STATES = frozenset({ExportState.WAITING, ExportState.RUNNING})


def states_before(state: ExportState) -> frozenset[ExportState]:
    """The states from which it may come to this one."""
    return frozenset(earlier for earlier, onward in TRANSITIONS.items() if state in onward)


def _no_filters() -> dict[str, list[str]]:
    return {}


class Schedule(models.Model):
    """A report that is made again and again, for each of its recipients by that person's own rights.

    `next_at` is the turn: whoever moves it on makes the exports of that moment.
    """

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=80)
    report = models.CharField(max_length=40)
    filters = models.JSONField(default=_no_filters)  # names and texts, as in an address
    columns = models.JSONField(default=list)  # headings; none of them: all
    format = models.CharField(max_length=4, choices=FileFormat, default=FileFormat.CSV)
    has_mark = models.BooleanField(default=False)
    period = models.CharField(max_length=16, choices=RelativePeriod, default=RelativePeriod.AS_IT_STANDS)
    frequency = models.CharField(max_length=8, choices=Frequency)
    day = models.PositiveSmallIntegerField(default=1)  # of the week, Monday 1, or of the month
    hour = models.PositiveSmallIntegerField()
    time_zone = models.CharField(max_length=64, validators=[validate_time_zone])
    recipients = models.ManyToManyField(User, related_name="+")
    is_paused = models.BooleanField(default=False)
    next_at = models.DateTimeField(db_index=True)
    last_at = models.DateTimeField(null=True)
    last_outcome = models.CharField(
        max_length=500, blank=True
    )  # whom it did not reach the last time, and why

    class Meta:
        default_permissions = ()
        ordering = ("name", "pk")
        constraints = [models.CheckConstraint(condition=Q(hour__lt=24), name="schedule_hour_of_a_day")]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        return reverse("reports:schedule", args=[self.pk])

    @property
    def rhythm(self) -> str:
        """How often, in words."""
        return frequency_text(self.frequency, self.day)


class ExportJob(models.Model):
    """One report on its way to a file, for one person.

    A runner holds it by `runner` until `lease_until`, by the database's clock. The file is there, whole and under its
    final name, before the state says `done`; whatever a killed runner left is not.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(User, on_delete=models.PROTECT, related_name="exports")
    report = models.CharField(max_length=40)
    filters = models.JSONField(default=_no_filters)
    columns = models.JSONField(default=list)
    format = models.CharField(max_length=4, choices=FileFormat, default=FileFormat.CSV)
    has_mark = models.BooleanField(default=False)
    time_zone = models.CharField(max_length=64)
    state = models.CharField(max_length=9, choices=ExportState, default=ExportState.WAITING)
    rows = models.PositiveBigIntegerField(default=0)
    estimate = models.PositiveBigIntegerField(null=True)
    problem = models.CharField(max_length=300, blank=True)

    name = models.CharField(max_length=120, blank=True)  # under which it is downloaded
    stored_as = models.CharField(max_length=80, blank=True)  # a random name in the folder of exports
    size = models.PositiveBigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)

    # Of reports that read what the service lists.
    covers_until = models.DateTimeField(
        null=True
    )  # where its days end, if they were over when it was asked for
    as_of = models.DateTimeField(null=True)  # up to when the list was here when it was begun

    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    runner = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    tries = models.PositiveSmallIntegerField(default=0)

    schedule = models.ForeignKey(Schedule, on_delete=models.SET_NULL, null=True, related_name="exports")
    due_at = models.DateTimeField(null=True)
    mail_at = models.DateTimeField(null=True)  # when to tell the person by e-mail; null: not, or done

    class Meta:
        default_permissions = ()
        ordering = ("-created_at", "-id")
        indexes = [
            models.Index(fields=["person", "-created_at", "-id"], name="export_of_a_person"),
            models.Index(
                fields=["created_at"], name="export_under_way", condition=Q(state__in=ACTIVE_STATES)
            ),
            models.Index(fields=["expires_at"], name="export_done", condition=Q(state=ExportState.DONE)),
            models.Index(fields=["mail_at"], name="export_to_tell", condition=Q(mail_at__isnull=False)),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["schedule", "due_at", "person"], name="export_once_for_each_due_moment"
            ),
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
    def file(self) -> Path:
        """Where the file lies. Only a job that is done has one."""
        return export_folder() / self.stored_as

    @property
    def is_under_way(self) -> bool:
        """Whether it will still come to something by itself."""
        return ExportState(self.state) in ACTIVE_STATES

    @property
    def has_rows(self) -> bool:
        """Whether its rows are those of a file that is being made, is there or was there."""
        return self.state in {ExportState.RUNNING, ExportState.DONE, ExportState.EXPIRED, ExportState.REMOVED}

    @property
    def stage(self) -> str:
        """What is announced of it: its state, and while it is made, every quarter of the rows that are expected."""
        if self.state != ExportState.RUNNING or not self.estimate:
            return self.state
        return f"{min(3, 4 * self.rows // self.estimate) * 25} %"

    @property
    def wish(self) -> dict[str, Any]:
        """What was asked for, to ask for it again."""
        names = ("report", "filters", "columns", "format", "has_mark", "time_zone", "estimate")
        return {name: getattr(self, name) for name in names}


def export_folder() -> Path:
    """The folder of finished files, which nobody but this installation reads."""
    path = Path(settings.DATA_DIR) / "exports"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


def change_state(job: ExportJob, to: ExportState, **changes: Any) -> bool:
    """Move the export on, if nobody has since it was read (compare and set); whether it was this call.

    Compared are the state and who runs it, so a runner that lost its lease moves nothing.
    """
    if job.state not in states_before(to):
        return False
    won = ExportJob.objects.filter(pk=job.pk, state=job.state, runner=job.runner).update(state=to, **changes)
    if won:
        job.state = to
        for name, value in changes.items():
            setattr(job, name, value)
    return bool(won)
