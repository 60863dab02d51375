"""The access review: the report that two people sign off, and the signed ones."""

from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from backoffice.accounts.access_report import (
    AccessRow,
    access_rows,
    report_digest,
    review_due_after,
    review_due_at,
)
from backoffice.accounts.models import AccessReview
from backoffice.accounts.sessions import StaffRequest
from backoffice.governance.pages.team import VIEW_TEAM, shown_rights
from backoffice.operations.kinds.access_review import AccessReviewKind
from backoffice.operations.models.operations import Operation

SHOWN_ROWS, SHOWN_REVIEWS = 100, 8


@require_safe
@permission_required(VIEW_TEAM, raise_exception=True)
def access_review(request: StaffRequest) -> HttpResponse:
    """The first rights of all active people now, and the signed reviews. The report of rights has all rows."""
    rows = access_rows()
    signed = AccessReview.objects.select_related("prepared_by", "approved_by").defer("rows")
    reviews = list(signed[:SHOWN_REVIEWS])
    due = review_due_after(reviews[0].signed_at) if reviews else review_due_at()
    context = {
        "digest": report_digest(rows),
        "rows": shown_rights(rows[:SHOWN_ROWS]),
        "total": len(rows),
        "due": due,
        "is_overdue": due is not None and due < timezone.now(),
        "reviews": reviews,
    }
    return render(request, "governance/access_review.html", context)


@require_safe
@permission_required(VIEW_TEAM, raise_exception=True)
def reviewed(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The rows of one review: as signed off, or as they are now while it waits for approval."""
    operation = get_object_or_404(Operation, pk=pk, kind=AccessReviewKind.name)
    review = AccessReview.objects.filter(operation=pk).first()
    rows = [AccessRow(**row) for row in review.rows] if review else access_rows()
    has_changed = review is None and report_digest(rows) != operation.payload["digest"]
    context = {
        "operation": operation,
        "review": review,
        "rows": shown_rights(rows[:SHOWN_ROWS]),
        "total": len(rows),
        "query": f"?review={pk}" if review else "",
        "has_changed": has_changed and not operation.is_closed,
    }
    return render(request, "governance/reviewed.html", context)
