"""The desk of unknown outcomes, and the switch that stops all sending."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.core.pagination import keyset_page
from backoffice.operations import permissions, selectors, services
from backoffice.operations.desk import OLDEST_FIRST, case_now, cases_as_known, open_cases
from backoffice.operations.errors import OperationError
from backoffice.operations.forms import PauseForm
from backoffice.operations.pause import standing_pause

CASES_ON_A_PAGE = 5


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def desk(request: StaffRequest) -> HttpResponse:
    """Every operation whose outcome people have to look at, the oldest first, as last known."""
    found = open_cases(selectors.visible_operations(request.user))
    page = keyset_page(found, order=OLDEST_FIRST, cursor=request.GET.get("cursor"), size=CASES_ON_A_PAGE)
    return render(request, "operations/desk.html", {"page": page, "cases": cases_as_known(page.rows)})


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def case(request: StaffRequest, pk: UUID) -> HttpResponse:
    """One case on a page of its own; with `?read=1` what the service tells now. A closed one leads to its operation."""
    operation = get_object_or_404(selectors.visible_operations(request.user), pk=pk)
    attempt = open_cases(selectors.visible_operations(request.user)).filter(operation=operation).first()
    if attempt is None:
        messages.info(
            request, f"{operation.reference} is no open case: it is {operation.get_status_display()}."
        )
        return redirect(operation)
    cases = [case_now(attempt)] if "read" in request.GET else cases_as_known([attempt])
    return render(request, "operations/desk.html", {"cases": cases, "only": operation})


@polled
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def evidence(request: StaffRequest, pk: UUID) -> HttpResponse:
    """What the service shows of one case now, or what it showed last. Nothing (204) once the case is closed."""
    attempt = open_cases(selectors.visible_operations(request.user)).filter(operation=pk).first()
    if attempt is None:
        get_object_or_404(selectors.visible_operations(request.user), pk=pk)
        return HttpResponse(status=204)
    return render(request, "operations/_evidence.html", {"case": case_now(attempt)})


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PAUSE, raise_exception=True)
def pause(request: StaffRequest) -> HttpResponse:
    """Stop all sending at once, with a reason; or see who stopped it and why."""
    form = PauseForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.pause_sending(actor=request.user, reason=form.cleaned_data["reason"])
        except OperationError as exc:
            form.add_error(None, str(exc))
        else:
            messages.success(request, "Sending is paused. Nothing leaves before two people let it go on.")
            return redirect("operations:pause")
    context = {"form": form, "standing": standing_pause()}
    return render(request, "operations/pause.html", context, status=422 if request.method == "POST" else 200)
