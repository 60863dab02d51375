"""The rows of a batch: those to check first, what became of each, and pause and cancel."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.models import User
from backoffice.accounts.roles import restriction_on
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.pagination import keyset_page
from backoffice.operations import permissions, policy
from backoffice.operations.batches import control
from backoffice.operations.batches.retried_rows import retryable_rows
from backoffice.operations.batches.summary import (
    SENT,
    BatchProgress,
    BatchSummary,
    batch_progress,
    batch_summary,
    common_reasons,
    may_send_rows,
    status_of,
)
from backoffice.operations.errors import ContentUnreadableError, OperationError
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.batches import Batch
from backoffice.operations.models.operations import Operation
from backoffice.operations.policy import may_check_status
from backoffice.operations.selectors import visible_operations
from backoffice.operations.states import NEEDS_ATTENTION, NOT_EXECUTED, Status
from backoffice.operations.workflow.bulk_release import OpenBulkRelease, is_sent_by, unfinished_bulk_release

_ORDER = ("-attention", "number")
_MOVING = (Status.SENDING, Status.PROCESSING)
# Which rows are shown: the word in the address, the label, the condition.
_VIEWS = {
    "": (pgettext_lazy("rows", "All"), Q()),
    "first": (_("Check first"), Q(attention__gt=0)),
    "unsent": (pgettext_lazy("rows", "Not sent"), ~Q(operation__status__in=SENT)),
    "open": (pgettext_lazy("rows", "In progress"), Q(operation__status__in=_MOVING)),
    "unknown": (Status.UNKNOWN.label, Q(operation__status__in=NEEDS_ATTENTION)),
    "failed": (pgettext_lazy("rows", "Failed"), Q(operation__status=Status.FAILED)),
}


_VIEW_OF = {
    **dict.fromkeys((Status.APPROVED, Status.CANCELLED, Status.EXPIRED), "unsent"),
    **dict.fromkeys(_MOVING, "open"),
    **dict.fromkeys(NEEDS_ATTENTION, "unknown"),
    Status.FAILED: "failed",
}
"""Which of them has the rows of a status, for those that have one."""


@dataclass(frozen=True)
class BatchControls:
    """What this user may do with a batch now. The services check again."""

    may_pause: bool = False
    may_resume: bool = False
    may_cancel: bool = False
    to_retry: int = 0  # rows that can be prepared again
    may_send: bool = False


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def batch(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = batch_or_404(request, pk)
    return render(request, "operations/batches/batch.html", _context(request, operation))


@does_not_extend_session
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def batch_live(request: StaffRequest, pk: UUID) -> HttpResponse:
    """204 while the open page is up to date; otherwise its content."""
    operation = batch_or_404(request, pk)
    context = _context(request, operation)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    return render(request, "operations/batches/_batch.html", context)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def batch_pause(request: StaffRequest, pk: UUID) -> HttpResponse:
    text = gettext("Batch paused. Operations not yet sent will not be sent until it is resumed.")
    return _run(request, pk, control.pause_batch, text)


@require_POST
@permission_required(permissions.RELEASE, raise_exception=True)
def batch_resume(request: StaffRequest, pk: UUID) -> HttpResponse:
    text = gettext("Batch resumed. Its unsent operations can now be sent.")
    return _run(request, pk, control.resume_batch, text)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def batch_cancel(request: StaffRequest, pk: UUID) -> HttpResponse:
    return _run(
        request,
        pk,
        control.cancel_batch,
        gettext("Batch cancelled. Operations not yet sent will not be sent."),
    )


def _run(request: StaffRequest, pk: UUID, service: Callable[..., Batch], done: str) -> HttpResponse:
    if not may_check_status(request.user):
        raise PermissionDenied
    operation = batch_or_404(request, pk)
    try:
        service(pk, actor=request.user)
    except OperationError as exc:
        messages.error(request, str(exc))
    else:
        messages.info(request, done)
    return redirect("operations:batch", operation.pk)


def batch_or_404(request: StaffRequest, pk: UUID) -> Operation:
    found = visible_operations(request.user).select_related(
        "batch__retry_of", "batch__paused_by", "batch__cancelled_by"
    )
    return get_object_or_404(found, pk=pk, batch__isnull=False)


def _context(request: StaffRequest, operation: Operation) -> dict[str, Any]:
    shown = request.GET.get("show", "")
    shown = shown if shown in _VIEWS else ""
    summary = batch_summary(operation)
    progress = summary.progress if summary else batch_progress(operation)
    condition = common_reasons(operation).stands_out() if shown == "first" else Q()
    rows = operation.rows.filter(condition, _VIEWS[shown][1]).select_related("operation", "duplicate_of")
    dates = (operation.batch.paused_at, operation.batch.cancelled_at)
    marks = "".join("x" if one else "-" for one in dates)
    is_moving = progress.in_flight or progress.unsent or operation.status == Status.APPROVED
    bulk_release = unfinished_bulk_release(operation) if progress.unsent or progress.in_flight else None
    return {
        "operation": operation,
        "open_bulk_release": bulk_release,
        "summary": summary,
        "status": status_of(operation, summary),
        "batch": operation.batch,
        "payload": _payload(operation),
        "progress": progress,
        "by_status": [
            (status, status.label, n, _VIEW_OF.get(status)) for status, n in progress.by_status.items()
        ],
        "page": keyset_page(rows, order=_ORDER, cursor=request.GET.get("cursor")),
        "views": [(name, label) for name, (label, _condition) in _VIEWS.items()],
        "shown": shown,
        "controls": _controls(request.user, operation, progress, summary, bulk_release),
        "seen": f"{operation.status}.{(summary or progress).fingerprint}.{marks}{_mark(bulk_release)}",
        "polls": bool(is_moving),
    }


def _payload(operation: Operation) -> Any:
    """The content of the batch; None if it cannot be read."""
    try:
        return read_content(operation)[1]
    except ContentUnreadableError:
        return None


def _mark(open_bulk_release: OpenBulkRelease | None) -> str:
    """Changes whenever what is shown of it does."""
    return f"{open_bulk_release.bulk_release}.{open_bulk_release.waiting}" if open_bulk_release else ""


def _controls(
    person: User,
    operation: Operation,
    progress: BatchProgress,
    summary: BatchSummary | None,
    open_bulk_release: OpenBulkRelease | None,
) -> BatchControls:
    batch = operation.batch
    is_open = operation.status in {Status.APPROVED, Status.SUCCEEDED} and not batch.cancelled_at
    has_unsent = bool(progress.unsent or progress.waiting)
    return BatchControls(
        may_pause=is_open and has_unsent and not batch.paused_at and policy.may_check_status(person),
        may_resume=is_open and bool(batch.paused_at) and _may_resume(person, operation),
        may_cancel=is_open and has_unsent and _may_cancel(person, batch),
        to_retry=_to_retry(person, operation, progress),
        may_send=may_send_rows(person, operation, summary)
        and not is_sent_by(open_bulk_release, person, summary.to_send if summary else 0),
    )


def _to_retry(person: User, operation: Operation, progress: BatchProgress) -> int:
    """How many rows this user can prepare again. No query while none has ended unpaid or is a duplicate."""
    ended = operation.is_closed and progress.waiting
    unpaid = sum(progress.by_status.get(status, 0) for status in NOT_EXECUTED)
    may = (ended or unpaid or progress.duplicates) and person.has_perm(permissions.PREPARE)
    return retryable_rows(operation.pk).count() if may else 0


def _may_resume(person: User, operation: Operation) -> bool:
    return person.has_perm(permissions.RELEASE) and person != operation.preparer


def _may_cancel(person: User, batch: Batch) -> bool:
    """Not offered to others, whose right would take further queries; the service decides."""
    works_on_it = person == batch.operation.preparer or person.has_perm(permissions.APPROVE)
    return works_on_it and restriction_on(person, permissions.APPROVE) is None
