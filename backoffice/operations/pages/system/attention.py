"""What of the installation needs attention now, and the next step: the top of the System page."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from backoffice.audit.checkpoints import DeliveryStatus, DestinationState
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.database.role import database_role
from backoffice.core.models import ProcessRow
from backoffice.operations.models.monitoring import Heartbeat
from backoffice.operations.monitoring.inspection import SystemHealth
from backoffice.operations.pages.system.processes import Processes

DISK_LOW = 1_000_000_000  # bytes


@dataclass(frozen=True)
class Attention:
    """One thing that needs attention: what was found, the next step, and the URL for it."""

    text: str
    step: str
    url: str = ""
    is_urgent: bool = True


FURTHER_ATTENTION: dict[str, Callable[[], Iterable[Attention]]] = {}
"""By the name of an app above this one: the function that gives what it finds. Each app registers its own."""


def of_integrity(health: SystemHealth, chain_fault: str) -> Iterator[Attention]:
    """Integrity checks, incidents and the audit log."""
    incidents = reverse("operations:incidents")
    if health.violations:
        number = len(health.violations)
        text = ngettext("{n} integrity check failed.", "{n} integrity checks failed.", number).format(
            n=number
        )
        yield Attention(text, gettext("Pause payments, then view the details."), incidents)
    if health.is_late:
        yield Attention(
            gettext("The integrity checks are not running."),
            gettext("Ask the operator to start the sweeper process and check its log."),
        )
    if health.open_incidents:
        number = health.open_incidents
        text = ngettext("{n} open incident.", "{n} open incidents.", number).format(n=number)
        advice = ngettext(
            "Find out what happened, then acknowledge the incident.",
            "Find out what happened, then acknowledge each incident.",
            number,
        )
        yield Attention(text, advice, incidents)
    if health.open_break_glass:
        number = health.open_break_glass
        text = ngettext(
            "{n} account change by one person alone.", "{n} account changes by one person alone.", number
        ).format(n=number)
        advice = ngettext(
            "Another person must check and acknowledge it.",
            "Another person must check and acknowledge each of them.",
            number,
        )
        yield Attention(text, advice, f"{incidents}#account-changes")
    if chain_fault:
        text = gettext("The last verification of the audit log found a fault: {fault}.").format(
            fault=chain_fault
        )
        yield Attention(
            text, gettext("Pause payments, and ask the operator to follow the runbook."), "#log-head"
        )


def of_database_role() -> Iterator[Attention]:
    """What the runtime role may do beyond its work; nothing in the sandbox, and on SQLite, which has no roles."""
    if settings.ENVIRONMENT == "sandbox":
        return
    role = cached_in_process("database-role", database_role, seconds=60)
    if role is None or not role.problems:
        return
    yield Attention(
        gettext("The database role {role} has more rights than running Countersign needs.").format(
            role=role.name
        ),
        ". ".join(
            [
                *(problem.sentence for problem in role.problems),
                gettext("Ask the operator to run manage.py setup again."),
            ]
        ),
        is_urgent=False,
    )


def of_processes(processes: Processes) -> Iterator[Attention]:
    """Processes that do not run or cannot work, and full disks."""
    for kind in processes.missing_kinds:
        if kind != ProcessRow.Kind.WEB:  # one of them shows this page
            yield Attention(
                gettext("No process of this kind is running: {kind}.").format(kind=kind.label),
                _missing_step(kind),
                "#processes",
                is_urgent=kind == ProcessRow.Kind.SWEEPER,
            )
    for group in processes.groups:
        for problem in group.problems:
            text = gettext("{kind} on {machine}: {problem}.")
            yield Attention(
                text.format(kind=group.label, machine=group.machine, problem=problem),
                gettext("Ask the operator: the runbook has a section “A process is not ready”."),
                "#processes",
            )
    for machine in processes.machines:
        if machine.free < DISK_LOW:
            yield Attention(
                gettext("The disk of {machine} is almost full.").format(machine=machine.name),
                gettext("Ask the operator to free disk space."),
                "#database",
            )
    if len(processes.versions) > 1:
        yield Attention(
            gettext("Processes run different versions of Countersign: {versions}.").format(
                versions=", ".join(sorted(processes.versions))
            ),
            gettext("Ask the operator to restart the processes of the older version."),
            "#processes",
            is_urgent=False,
        )


def _missing_step(kind: ProcessRow.Kind) -> str:
    if kind == ProcessRow.Kind.SWEEPER:
        return gettext("Ask the operator to start it: without it, nothing is checked and nothing expires.")
    return gettext(
        "Ask the operator to start it. Until then, the sweeper process sends the operations, about a "
        "second later."
    )


def of_jobs(
    late: Sequence[str], failing: Sequence[Heartbeat], on_machines: Mapping[str, tuple[str, str]]
) -> Iterator[Attention]:
    """Jobs of the sweeper. One that fails on one machine may succeed on another: `on_machines` has it nevertheless."""
    texts = {
        job.job: gettext("The job {job} fails: {error}.").format(job=job.job, error=job.error)
        for job in failing
    }
    for job, (machine, error) in on_machines.items():
        texts[job] = gettext("The job {job} fails on {machine}: {error}.").format(
            job=job, machine=machine, error=error
        )
    for text in texts.values():
        yield Attention(
            text,
            gettext("Ask the operator to find its traceback in the log of the sweeper."),
            "#jobs",
        )
    if late:
        yield Attention(
            gettext("Late jobs: {jobs}.").format(jobs=", ".join(late)),
            gettext("Ask the operator to check the sweeper."),
            "#jobs",
            is_urgent=False,
        )


def of_evidence(destinations: Sequence[DestinationState], journal_problem: str) -> Iterator[Attention]:
    """The journal of sent requests, and the head of the log outside the database."""
    if journal_problem:
        yield Attention(
            journal_problem, gettext("View the journal of sent requests."), "#journal", is_urgent=False
        )
    if not destinations and settings.ENVIRONMENT != "sandbox":
        yield Attention(
            gettext("The audit log is not stored outside the database."),
            gettext("Ask the operator to set COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS."),
            "#checkpoints",
            is_urgent=False,
        )
    bad = {DeliveryStatus.CONTRADICTED, DeliveryStatus.OVERDUE, DeliveryStatus.FAILING}
    for state in destinations:
        if state.status in bad:
            yield Attention(
                f"{state.row.address}: {state.status.label}.",
                gettext("View the checkpoints of the audit log."),
                "#checkpoints",
                is_urgent=state.status != DeliveryStatus.FAILING,
            )


def of_provider(processes: Processes, *, lacks_otp_secret: bool) -> Iterator[Attention]:
    """The provider's responses, and what it needs from us."""
    for responses in processes.provider:
        if responses.is_failing:
            text = gettext("{failed} of {calls} requests to the provider failed in the last hour.")
            yield Attention(
                text.format(failed=responses.failed, calls=responses.calls),
                gettext("Ask the operator to run manage.py gateway check."),
                "#provider",
            )
    if lacks_otp_secret:
        yield Attention(
            gettext("No authenticator secret is stored: nothing that needs a one-time code is sent."),
            gettext("An administrator can store one below; a second person approves it."),
            "#otp",
        )
