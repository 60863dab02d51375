"""The payments created here, and one of them on the page of its operation."""

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.core.pagination import keyset_page
from backoffice.ledger.payments import can_be_asked
from backoffice.operations import permissions
from backoffice.operations.payments import made_payment, made_payments, payments_made
from backoffice.operations.selectors import NEWEST_FIRST

PER_PAGE = 20


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def payments(request: StaffRequest) -> HttpResponse:
    """The list as last told; htmx asks the service, and so does `?read=1` without JavaScript."""
    return render(request, "operations/payments.html", _listed(request, ask="read" in request.GET))


@polled
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def payments_now(request: StaffRequest) -> HttpResponse:
    """The rows alone, with what the service tells now of those that may have changed."""
    return render(request, "operations/_payments.html", _listed(request, ask=True))


@polled
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def payment_now(request: StaffRequest, pk: UUID) -> HttpResponse:
    """What the service tells now of the payment that an operation created; 404 if it created none."""
    made = made_payment(get_object_or_404(payments_made(request.user), pk=pk), ask=True)
    if made is None:
        raise Http404("This operation created no payment")
    context = {"operation": made.operation, "payment": made, "can_be_asked": can_be_asked(), "fresh": True}
    return render(request, "operations/_payment.html", context)


def _listed(request: StaffRequest, *, ask: bool) -> dict[str, Any]:
    found = keyset_page(
        payments_made(request.user), order=NEWEST_FIRST, cursor=request.GET.get("cursor"), size=PER_PAGE
    )
    return {
        "page": found,
        "payments": made_payments(found.rows, ask=ask),
        "can_be_asked": can_be_asked(),
        "fresh": ask,
    }
