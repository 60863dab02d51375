"""What the System page shows of processes and machines, from one query of their reports."""

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.core.models import ProcessRow
from backoffice.core.telemetry.processes import SILENT_AFTER
from backoffice.core.telemetry.readiness import Part

PARTS = {
    Part.DATABASE: _("the database cannot be reached"),
    Part.MIGRATIONS: _("the database lacks migrations of this version of Countersign"),
    Part.BROKER: _("the broker cannot be reached"),
    Part.KEYS: _("the API key in use cannot be decrypted, or the encryption keys are not valid"),
}
_PURPOSES = {
    "encryption": _("Encryption key"),
    "checkpoints": _("Checkpoint key"),
    "provider": _("API key in use"),
}
_CALLS = {"read": _("Reads"), "change": _("Payments and changes")}


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of one kind on one machine: how many report now, and the newest report of any."""

    machine: str
    kind: str
    label: str
    running: int
    at: datetime
    problems: list[str]


@dataclass(frozen=True)
class Machine:
    """Free space on the disk of its data folder, in bytes."""

    name: str
    free: int
    total: int


@dataclass(frozen=True)
class KeyAge:
    """A key by its id. `since` is None for the API key that was configured at installation."""

    label: str
    id: str
    since: datetime | None


@dataclass(frozen=True)
class ProviderResponses:
    """The calls of one kind in the last hour; times in words."""

    label: str
    calls: int
    failed: int
    average: str
    slowest: str

    @property
    def is_failing(self) -> bool:
        """Whether more than a fifth of at least five calls failed."""
        return self.calls >= 5 and self.failed * 5 > self.calls


class Processes:
    """All that processes reported in the last day. One query."""

    def __init__(self) -> None:
        rows = ProcessRow.objects.annotate(now=Now()).order_by("machine", "kind", "-at")
        self._rows = list(rows)
        self._silent_before = (self._rows[0].now if self._rows else timezone.now()) - SILENT_AFTER
        newest = max(self._rows, key=lambda row: row.at, default=None)
        self.newest: dict[str, Any] = newest.report if newest else {}

    @property
    def running(self) -> list[ProcessRow]:
        """Those that reported within the last minute."""
        return [row for row in self._rows if row.at >= self._silent_before]

    @property
    def groups(self) -> list[ProcessGroup]:
        """By machine and kind."""
        keys = dict.fromkeys((row.machine, row.kind) for row in self._rows)
        return [self._group(*key) for key in keys]

    def _group(self, machine: str, kind: str) -> ProcessGroup:
        rows = [row for row in self._rows if (row.machine, row.kind) == (machine, kind)]
        running = [row for row in rows if row.at >= self._silent_before]
        failed = dict.fromkeys(part for row in running for part in row.report.get("failed_parts", []))
        problems = [part_problem(part) for part in failed]
        return ProcessGroup(
            machine, kind, str(rows[0].get_kind_display()), len(running), rows[0].at, problems
        )

    @property
    def machines(self) -> list[Machine]:
        """Those with a process that runs."""
        newest = {row.machine: row.report for row in self.running}
        return [
            Machine(name, report.get("disk_free", 0), report.get("disk_total", 0))
            for name, report in newest.items()
        ]

    @property
    def missing_kinds(self) -> list[ProcessRow.Kind]:
        """The kinds of which no process runs anywhere."""
        kinds = {row.kind for row in self.running}
        return [kind for kind in ProcessRow.Kind if kind.value not in kinds]

    @cached_property
    def failing_jobs(self) -> dict[str, tuple[str, str]]:
        """The jobs that fail on a machine, with its name and that of the exception."""
        return {
            job: (row.machine, error)
            for row in self.running
            for job, error in row.report.get("failing_jobs", {}).items()
        }

    @property
    def versions(self) -> set[str]:
        """The releases that run."""
        return {row.report.get("version", "") for row in self.running}

    @property
    def keys(self) -> list[KeyAge]:
        return [
            KeyAge(
                str(_PURPOSES.get(key["purpose"], key["purpose"])),
                gettext(key["id"]),
                datetime.fromisoformat(key["since"]) if key["since"] else None,
            )
            for key in self.newest.get("keys", [])
        ]

    @property
    def provider(self) -> list[ProviderResponses]:
        """The provider's responses in the last hour."""
        return [
            ProviderResponses(
                str(_CALLS.get(one["call"], one["call"])),
                one["calls"],
                one["failed"],
                _seconds(one["average"]),
                _seconds(one["slowest"]),
            )
            for one in self.newest.get("provider", [])
        ]


def part_problem(part: str) -> str:
    """What is wrong with a part of readiness, in words."""
    return str(PARTS.get(Part(part), part)) if part in set(Part) else part


def _seconds(value: float) -> str:
    return gettext("{seconds} s").format(seconds=f"{value:.2f}")
