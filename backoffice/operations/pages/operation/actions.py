"""What the forms on the page of an operation do: approve, reject, release, cancel, check status.

Each is submitted once; if refused, the page is shown again with the reason and the input.
"""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.operations import permissions, selectors
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.registry import approval_permission_for, permission_for
from backoffice.operations.kinds.resume import ResumeKind
from backoffice.operations.lifecycle import transitions
from backoffice.operations.lifecycle.transitions import OperationAction
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.pages.operation.detail import decision_requirements, operation_or_404, render_page
from backoffice.operations.pages.operation.forms import (
    ApprovalForm,
    ApproveAndSendForm,
    BaseDecisionForm,
    RejectionForm,
    ReleaseForm,
    add_refusal,
)
from backoffice.operations.pages.operation.status import (
    approvals_missing,
    creates_operations,
    is_applied_locally,
    page_state,
)
from backoffice.operations.policy import may_check_status, may_decide_any
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import AWAITING_PROVIDER, Status
from backoffice.operations.workflow import approvals


def _visible_or_404(request: StaffRequest, pk: UUID) -> Operation:
    """The operation, for a request that redirects unless it is refused: without what only the page shows."""
    return get_object_or_404(selectors.visible_operations(request.user), pk=pk)


def _decidable_or_404(request: StaffRequest, pk: UUID) -> Operation:
    """As `_visible_or_404`; PermissionDenied without the permission that decides on this kind."""
    if not may_decide_any(request.user):
        raise PermissionDenied
    operation = _visible_or_404(request, pk)
    if not request.user.has_perm(approval_permission_for(operation.kind)):
        raise PermissionDenied
    return operation


@sensitive_post_parameters("otp", "code")
@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def approve(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = _decidable_or_404(request, pk)
    form = ApprovalForm(request.POST, request=request, requirements=decision_requirements(operation))
    return _run_decision(
        request,
        pk,
        form,
        OperationAction.APPROVE,
        ("digest", "comment", "confirmation"),
        _approved_message,
    )


@sensitive_post_parameters("otp", "code")
@require_POST
@permission_required((permissions.APPROVE, permissions.RELEASE), raise_exception=True)
def approve_and_send(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = _visible_or_404(request, pk)
    form = ApproveAndSendForm(request.POST, request=request, requirements=decision_requirements(operation))
    names = ("digest", "comment", "confirmation", "otp")
    return _run_decision(
        request,
        pk,
        form,
        OperationAction.APPROVE_AND_RELEASE,
        names,
        _released_message,
    )


@sensitive_post_parameters("code")
@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def reject(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = _decidable_or_404(request, pk)
    form = RejectionForm(request.POST, request=request, requirements=decision_requirements(operation))
    return _run_decision(
        request,
        pk,
        form,
        OperationAction.REJECT,
        ("digest", "reason"),
        _rejected_message,
    )


@sensitive_post_parameters("otp", "code")
@require_POST
@permission_required(permissions.RELEASE, raise_exception=True)
def release(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = _visible_or_404(request, pk)
    form = ReleaseForm(request.POST, request=request, requirements=decision_requirements(operation))
    return _run_decision(
        request,
        pk,
        form,
        OperationAction.RELEASE,
        ("digest", "otp", "statement"),
        _released_message,
    )


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def cancel(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Cancel the operation, as its preparer or anyone with the same permission where that is allowed."""
    operation = _visible_or_404(request, pk)
    if not request.user.has_perm(permission_for(operation.kind)):
        raise PermissionDenied
    try:
        approvals.cancel_operation(pk, actor=request.user)
    except OperationError as exc:
        messages.error(request, str(exc))
    else:
        messages.info(request, gettext("Operation cancelled. It will not be sent."), Status.CANCELLED)
    return redirect(operation)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def check_status(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Read the provider's list of transactions now, instead of at the next scheduled check."""
    if not may_check_status(request.user):
        raise PermissionDenied
    operation = _visible_or_404(request, pk)
    if operation.status in AWAITING_PROVIDER:
        operation = confirmation.confirm_operation(pk, actor=request.user)
        text = gettext("Status checked. {reference}: {status}.")
    else:
        text = gettext("Nothing to check. {reference}: {status}.")
    from_investigation = request.POST.get("next") == "investigation"
    status = operation.get_status_display()
    agrees_with = "" if from_investigation else page_state(operation)
    messages.info(request, text.format(reference=operation.reference, status=status), agrees_with)
    return redirect("operations:investigation") if from_investigation else redirect(operation)


_SERVICES: dict[OperationAction, Callable[..., Operation]] = {
    OperationAction.APPROVE: approvals.approve_operation,
    OperationAction.APPROVE_AND_RELEASE: approvals.approve_and_release_operation,
    OperationAction.REJECT: approvals.reject_operation,
    OperationAction.RELEASE: release_operation,
}


def _run_decision(
    request: StaffRequest,
    pk: UUID,
    form: BaseDecisionForm,
    action: OperationAction,
    names: tuple[str, ...],
    done: Callable[[Operation], tuple[int, str]],
) -> HttpResponse:
    """Call the service of this action; if refused, show the page again with the reason and the input.

    Services audit what they refuse; what the form refuses is audited here.
    """
    if not form.is_valid():
        transitions.record_refusal(pk, action, request.user, _form_problems(form))
    else:
        values = {name: form.cleaned_data[name] for name in names if name in form.cleaned_data}
        try:
            changed = _SERVICES[action](
                pk, actor=request.user, second_factor_at=second_factor_at(request), **values
            )
        except OperationError as exc:
            add_refusal(form, exc)
        else:
            messages.add_message(request, *done(changed), extra_tags=page_state(changed))
            return redirect(changed)
    return render_page(request, operation_or_404(request, pk), refused=form)


def _form_problems(form: BaseDecisionForm) -> OperationError:
    """The errors of the form as one reason."""
    return OperationError(Refusal.FORM_INVALID, fields=", ".join(form.errors))


def _approved_message(operation: Operation) -> tuple[int, str]:
    if operation.status == Status.SUCCEEDED and operation.kind == ResumeKind.name:
        return messages.SUCCESS, gettext(
            "Approved. Payments are resumed, and released operations are sent now."
        )
    if operation.status == Status.SUCCEEDED:
        return messages.SUCCESS, gettext("Approved and applied. Nothing was sent.")
    if operation.status == Status.PENDING:
        missing = approvals_missing(operation)
        text = ngettext(
            "Approved by you. {n} more approval is needed; nothing was sent.",
            "Approved by you. {n} more approvals are needed; nothing was sent.",
            missing,
        )
        return messages.SUCCESS, text.format(n=missing)
    if creates_operations(operation):
        text = gettext("Approved. The operations are being created; nothing is sent yet.")
        return messages.SUCCESS, text
    if is_applied_locally(operation):
        return messages.SUCCESS, gettext("Approved. It is being applied.")
    return messages.SUCCESS, gettext("Approved. It is not sent until someone chooses “Send”.")


def _released_message(_operation: Operation) -> tuple[int, str]:
    """No success yet: the provider has not been reached."""
    return messages.INFO, gettext("Released for sending. This page updates automatically.")


def _rejected_message(operation: Operation) -> tuple[int, str]:
    text = gettext("Rejected. Nothing was sent. {person} will see your reason.")
    return messages.INFO, text.format(person=operation.preparer)
