"""Words for exports in templates."""

from django import template

from backoffice.reports.models import ExportJob
from backoffice.reports.states import State

register = template.Library()
_TONES = {
    State.WAITING: "warn",
    State.RUNNING: "info",
    State.DONE: "good",
    State.FAILED: "bad",
}


@register.filter
def tone(state: str) -> str:
    """The colour of a state's badge."""
    return _TONES.get(State(state), "")


@register.filter
def at_least(job: ExportJob) -> int:
    """How many rows to expect: an estimate never stands behind what is written."""
    return max(job.estimate or 0, job.rows)
