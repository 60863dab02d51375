"""What people do to an operation. Every one is a form that is sent once and answered with its page."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from backoffice.accounts.http import StaffRequest
from backoffice.accounts.services import second_factor_at
from backoffice.operations import permissions, services
from backoffice.operations.errors import OperationError
from backoffice.operations.forms import DecisionForm, RejectionForm, ReleaseForm, SignedForm
from backoffice.operations.models import Operation
from backoffice.operations.panel import may_check
from backoffice.operations.states import Status
from backoffice.operations.views.detail import find, page


@sensitive_post_parameters("token", "code")
@require_POST
@permission_required(permissions.APPROVE, raise_exception=True)
def approve(request: StaffRequest, pk: UUID) -> HttpResponse:
    form = DecisionForm(request.POST, request=request)
    return _carry_out(request, pk, form, services.approve_operation, ("digest", "comment"), _countersigned)


@sensitive_post_parameters("token", "code")
@require_POST
@permission_required((permissions.APPROVE, permissions.RELEASE), raise_exception=True)
def approve_and_send(request: StaffRequest, pk: UUID) -> HttpResponse:
    form = DecisionForm(request.POST, request=request)
    names = ("digest", "comment", "token")
    return _carry_out(request, pk, form, services.approve_and_release_operation, names, _handed_over)


@sensitive_post_parameters("code")
@require_POST
@permission_required(permissions.APPROVE, raise_exception=True)
def reject(request: StaffRequest, pk: UUID) -> HttpResponse:
    form = RejectionForm(request.POST, request=request)
    return _carry_out(request, pk, form, services.reject_operation, ("digest", "reason"), _rejected)


@sensitive_post_parameters("token", "code")
@require_POST
@permission_required(permissions.RELEASE, raise_exception=True)
def release(request: StaffRequest, pk: UUID) -> HttpResponse:
    form = ReleaseForm(request.POST, request=request)
    return _carry_out(request, pk, form, services.release_operation, ("digest", "token"), _handed_over)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def cancel(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = find(request, pk)
    try:
        services.cancel_operation(pk, actor=request.user)
    except OperationError as exc:
        messages.error(request, str(exc))
    else:
        messages.success(request, "Cancelled. Nothing was sent.")
    return redirect(operation)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def check(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Have the service's list of transactions read now, instead of at the next turn of the timer."""
    operation = find(request, pk)
    if not may_check(request.user, operation):
        raise PermissionDenied
    seen = services.confirm_operation(pk, actor=request.user)
    messages.info(
        request, f"The service's list was read just now. The operation is: {seen.get_status_display()}."
    )
    return redirect(operation)


def _carry_out(
    request: StaffRequest,
    pk: UUID,
    form: SignedForm,
    service: Callable[..., Operation],
    names: tuple[str, ...],
    done: Callable[[Operation], str],
) -> HttpResponse:
    """Call the service with the named fields; on refusal the page comes back with the reason and what was typed."""
    operation = find(request, pk)
    if form.is_valid():
        values = {name: form.cleaned_data[name] for name in names}
        try:
            changed = service(pk, actor=request.user, second_factor_at=second_factor_at(request), **values)
        except OperationError as exc:
            form.add_error(None, str(exc))
            operation = find(request, pk)
        else:
            messages.success(request, done(changed))
            return redirect(changed)
    return page(request, operation, refused=form)


def _countersigned(operation: Operation) -> str:
    if operation.status == Status.PENDING:
        return "Your countersignature is kept. Another person must countersign too; nothing is sent yet."
    return "Countersigned. Nothing is sent before somebody gives the word."


def _handed_over(_operation: Operation) -> str:
    return "Handed over for sending. This page shows by itself what becomes of it."


def _rejected(operation: Operation) -> str:
    return f"Rejected. {operation.maker} will read your reason; nothing was sent."
