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
from backoffice.operations.errors import OperationAction, OperationError, Refusal
from backoffice.operations.forms import (
    ApproveAndSendForm,
    DecisionForm,
    RejectionForm,
    ReleaseForm,
    SignedForm,
)
from backoffice.operations.kinds import permission_for
from backoffice.operations.models import Operation
from backoffice.operations.panel import works_on_operations
from backoffice.operations.states import AWAITING_THE_SERVICE, Status
from backoffice.operations.views.detail import find, page, wants_of


@sensitive_post_parameters("token", "code")
@require_POST
@permission_required(permissions.APPROVE, raise_exception=True)
def approve(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = find(request, pk)
    form = DecisionForm(request.POST, request=request, wants=wants_of(operation))
    return _carry_out(
        request,
        operation,
        form,
        OperationAction.APPROVE,
        ("digest", "comment", "confirmation"),
        _countersigned,
    )


@sensitive_post_parameters("token", "code")
@require_POST
@permission_required((permissions.APPROVE, permissions.RELEASE), raise_exception=True)
def approve_and_send(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = find(request, pk)
    form = ApproveAndSendForm(request.POST, request=request, wants=wants_of(operation))
    names = ("digest", "comment", "confirmation", "token")
    return _carry_out(
        request,
        operation,
        form,
        OperationAction.APPROVE_AND_RELEASE,
        names,
        _handed_over,
    )


@sensitive_post_parameters("code")
@require_POST
@permission_required(permissions.APPROVE, raise_exception=True)
def reject(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = find(request, pk)
    form = RejectionForm(request.POST, request=request, wants=wants_of(operation))
    return _carry_out(
        request,
        operation,
        form,
        OperationAction.REJECT,
        ("digest", "reason"),
        _rejected,
    )


@sensitive_post_parameters("token", "code")
@require_POST
@permission_required(permissions.RELEASE, raise_exception=True)
def release(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = find(request, pk)
    form = ReleaseForm(request.POST, request=request, wants=wants_of(operation))
    return _carry_out(
        request,
        operation,
        form,
        OperationAction.RELEASE,
        ("digest", "token"),
        _handed_over,
    )


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def cancel(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Take back what one prepared, by whoever may prepare operations of its kind."""
    operation = find(request, pk)
    if not request.user.has_perm(permission_for(operation.kind)):
        raise PermissionDenied
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
    if not works_on_operations(request.user):
        raise PermissionDenied
    operation = find(request, pk)
    if operation.status in AWAITING_THE_SERVICE:
        operation = services.confirm_operation(pk, actor=request.user)
        read = "The service's list was read just now."
    else:
        read = "There is nothing to ask the service about any more."
    at_desk = request.POST.get("next") == "desk"
    subject = operation.reference if at_desk else "The operation"
    messages.info(request, f"{read} {subject} is: {operation.get_status_display()}.")
    return redirect("operations:desk") if at_desk else redirect(operation)


_SERVICES: dict[OperationAction, Callable[..., Operation]] = {
    OperationAction.APPROVE: services.approve_operation,
    OperationAction.APPROVE_AND_RELEASE: services.approve_and_release_operation,
    OperationAction.REJECT: services.reject_operation,
    OperationAction.RELEASE: services.release_operation,
}


def _carry_out(
    request: StaffRequest,
    operation: Operation,
    form: SignedForm,
    action: OperationAction,
    names: tuple[str, ...],
    done: Callable[[Operation], str],
) -> HttpResponse:
    """Call the service of this action; on refusal the page comes back with the reason and what was typed.

    Services put what they refuse on record themselves; what the form refuses is put on record here.
    """
    pk = operation.pk
    if not form.is_valid():
        services.record_refusal(pk, action, request.user, _missing(form))
    else:
        values = {name: form.cleaned_data[name] for name in names if name in form.fields}
        try:
            changed = _SERVICES[action](
                pk, actor=request.user, second_factor_at=second_factor_at(request), **values
            )
        except OperationError as exc:
            form.add_error(None, str(exc))
            operation = find(request, pk)
        else:
            messages.success(request, done(changed))
            return redirect(changed)
    return page(request, operation, refused=form)


def _missing(form: SignedForm) -> OperationError:
    """The fields that are wrong, in one reason."""
    return OperationError(Refusal.FORM_INVALID, fields=", ".join(form.errors))


def _countersigned(operation: Operation) -> str:
    if operation.status == Status.SUCCEEDED:
        return "Countersigned and applied. Nothing was sent."
    if operation.status == Status.PENDING:
        return "Your countersignature is kept. Another person must countersign too; nothing is sent yet."
    return "Countersigned. Nothing is sent before somebody gives the word."


def _handed_over(_operation: Operation) -> str:
    return "Handed over for sending. This page shows by itself what becomes of it."


def _rejected(operation: Operation) -> str:
    return f"Rejected. {operation.maker} will read your reason; nothing was sent."
