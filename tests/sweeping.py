"""One round of the sweeper's jobs of operations, in this process and thread."""

from backoffice.core.isolation import run_isolated
from backoffice.core.web.request_context import call_context
from backoffice.operations.jobs import JOBS


def sweep_operations() -> None:
    """Send, check and expire what is due; without the inspection, which moves nothing and takes long."""
    with call_context(request_id="sweep"):
        for name, job in JOBS.items():
            if name != "inspect_due":
                run_isolated(name, job)
