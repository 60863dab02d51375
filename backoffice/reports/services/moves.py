"""Every move of an export from one state to another goes through here."""

from typing import Any

from backoffice.reports.models import ExportJob
from backoffice.reports.states import State, before


def move(job: ExportJob, to: State, **changes: Any) -> bool:
    """Move the export on, if nobody has since it was read (compare and set); whether it was this call.

    Compared are the state and who runs it, so a runner that lost its lease moves nothing.
    """
    if job.state not in before(to):
        return False
    won = ExportJob.objects.filter(pk=job.pk, state=job.state, runner=job.runner).update(state=to, **changes)
    if won:
        job.state = to
        for name, value in changes.items():
            setattr(job, name, value)
    return bool(won)
