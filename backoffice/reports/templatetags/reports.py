"""Template filters for exports."""

from django import template

from backoffice.reports.models import ExportJob, ExportState

register = template.Library()
_TONES = {
    ExportState.WAITING: "warn",
    ExportState.RUNNING: "info",
    ExportState.DONE: "good",
    ExportState.FAILED: "bad",
}


@register.filter
def tone(state: str) -> str:
    """The colour of a state's badge."""
    return _TONES.get(ExportState(state), "")


@register.filter
def expected_rows(job: ExportJob) -> int:
    """The expected number of rows: the estimate, or the rows already written if these are more."""
    return max(job.estimate or 0, job.rows)
