"""The page of one operation: approve, reject, release, cancel, check status, and its polling.

Each action is a form that is submitted once; if refused, the page is shown again with the reason and the
input.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.messages.storage.base import Message
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import get_language, gettext, ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.second_factor import has_fresh_second_factor, second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.audit.models import Entry
from backoffice.core.cached_reads import cached_in_process
from backoffice.ledger.accounts import unresolved_sentence
from backoffice.operations import permissions, selectors
from backoffice.operations.allow_list import recipient_warnings, requirements_for
from backoffice.operations.approval.requirements import RequiredNow
from backoffice.operations.batches.summary import (
    BatchSummary,
    batch_summary,
    is_applied_batch,
    may_send_rows,
    rows_to_check,
    status_of,
)
from backoffice.operations.delivery.balance_queue import QueuePosition, queue_position, with_queue
from backoffice.operations.delivery.expected_wait import seconds_per_payment
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.errors import ContentUnreadableError, OperationError, PolicyAlteredError
from backoffice.operations.kinds.base import Facts, FieldMatch, MoneyKind, Payload
from backoffice.operations.kinds.registry import (
    KINDS,
    AnyKind,
    approval_permission_for,
    facts_of,
    permission_for,
    read_content,
)
from backoffice.operations.kinds.staff_change import progress_of_handover
from backoffice.operations.lifecycle import transitions
from backoffice.operations.lifecycle.transitions import OperationAction
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.pages.operation.forms import (
    ApprovalForm,
    ApproveAndSendForm,
    BaseDecisionForm,
    DecisionRequirements,
    RejectionForm,
    ReleaseForm,
)
from backoffice.operations.pages.operation.paid_elsewhere import (
    PaymentResolution,
    payment_resolution,
    with_resolution,
)
from backoffice.operations.pages.operation.panel import (
    next_step,
    nothing_sent_text,
    panel_for,
    reason_not_sent,
    without_decisions,
)
from backoffice.operations.pages.operation.status import (
    STOPPED,
    approvals_missing,
    creates_operations,
    fingerprint,
    is_applied_locally,
    page_state,
    poll_seconds,
    steps,
    total_debit,
)
from backoffice.operations.pages.operation.summary import DecisionSummary, decision_summary
from backoffice.operations.pages.operation.waiting import Waiting, required_of, waiting_of, with_escalation
from backoffice.operations.pages.payments import can_read_payments, created_payment
from backoffice.operations.pages.recipient_choice import can_be_registered, with_registered_recipient
from backoffice.operations.payee_look_alikes import look_alike_warnings
from backoffice.operations.policy import may_check_status, may_decide_any
from backoffice.operations.refusals import Refusal
from backoffice.operations.states import AWAITING_PROVIDER, Status
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow.bulk_release import is_sent_by, unfinished_bulk_release


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def detail(request: StaffRequest, pk: UUID) -> HttpResponse:
    return render_page(request, operation_or_404(request, pk))


@does_not_extend_session
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def live(request: StaffRequest, pk: UUID) -> HttpResponse:
    """204 while the open page is up to date; otherwise its whole content."""
    operation = operation_or_404(request, pk)
    rows = batch_summary(operation)
    resolution = payment_resolution(request.user, operation)
    if request.GET.get("seen") == _seen(operation, queue_position(operation), rows, resolution):
        return HttpResponse(status=204)
    updated = gettext("This page was updated. Status: {status}.").format(
        status=status_of(operation, rows).label
    )
    notices = [Message(messages.INFO, updated)]
    return render(request, "operations/_operation.html", _context(request, operation) | {"notices": notices})


def operation_or_404(request: StaffRequest, pk: UUID) -> Operation:
    """The operation with all that its page shows; 404 if this user may not see it."""
    visible = with_queue(with_registered_recipient(selectors.operation_page(request.user)))
    operation = get_object_or_404(visible, pk=pk)
    selectors.fetch_history(operation)
    return operation


def _visible_or_404(request: StaffRequest, pk: UUID) -> Operation:
    """The same without what only the page shows, for a request that redirects unless it is refused."""
    return get_object_or_404(selectors.visible_operations(request.user), pk=pk)


def _decidable_or_404(request: StaffRequest, pk: UUID) -> Operation:
    """As `_visible_or_404`; PermissionDenied without the permission that decides on this kind."""
    if not may_decide_any(request.user):
        raise PermissionDenied
    operation = _visible_or_404(request, pk)
    if not request.user.has_perm(approval_permission_for(operation.kind)):
        raise PermissionDenied
    return operation


def render_page(
    request: StaffRequest,
    operation: Operation,
    *,
    refused: BaseDecisionForm | None = None,
) -> HttpResponse:
    """The whole page; a refused form (422) keeps its input and shows the reason."""
    # Its own messages instead of those above the content, which the polling would leave as they are.
    context = _context(request, operation, refused=refused) | {
        "messages": (),
        "notices": _notices(request, operation),
    }
    return render(request, "operations/detail.html", context, status=422 if refused else 200)


def _context(
    request: StaffRequest, operation: Operation, *, refused: BaseDecisionForm | None = None
) -> dict[str, Any]:
    timeline, turn = audit_timeline(operation), queue_position(operation)
    required = required_of(operation)
    waiting = with_escalation(waiting_of(operation, required), timeline)
    kind_texts = _kind_texts(operation, waiting, required)
    wants = decision_requirements(operation)
    resolution = payment_resolution(request.user, operation)
    panel = with_resolution(panel_for(request.user, operation, turn, waiting), resolution)
    rows = batch_summary(operation)
    open_bulk_release = unfinished_bulk_release(operation) if rows and rows.is_moving else None
    if kind_texts.facts is None:
        panel = without_decisions(panel)
    return {
        "operation": operation,
        "status": status_of(operation, rows),
        "is_receipt": _is_receipt(operation),
        "batch_summary": rows,
        "open_bulk_release": open_bulk_release,
        "rows_to_check": rows_to_check(operation),
        "may_send_rows": may_send_rows(request.user, operation, rows)
        and not is_sent_by(open_bulk_release, request.user, rows.to_send if rows else 0),
        "facts": kind_texts.facts,
        "content_page": KINDS[operation.kind].content_page if operation.kind in KINDS else "",
        "cautions": kind_texts.cautions,
        "attempts": kind_texts.attempts,
        "look_alikes": kind_texts.look_alikes,
        "payment_resolution": resolution,
        "nothing_sent": nothing_sent_text(operation),
        "steps": steps(operation, turn),
        "panel": panel,
        "summary": kind_texts.summary,
        "payment": created_payment(operation, ask="read" in request.GET),
        "can_be_asked": can_read_payments(),
        "handover": progress_of_handover(operation, request.user),
        "is_second_factor_fresh": has_fresh_second_factor(request),
        "turn": turn,
        "expected_wait": _expected_wait(turn) if panel.may_approve_and_send or panel.may_release else None,
        "came_back": "" if resolution.pending else reason_not_sent(operation, timeline, turn),
        "refused": refused,
        "decision": _form(ApprovalForm, refused, request, wants) if panel.may_approve else None,
        "rejection": _form(RejectionForm, refused, request, wants) if panel.may_decide else None,
        "release": _form(ReleaseForm, refused, request, wants) if panel.may_release else None,
        "can_be_registered": request.user.has_perm(permissions.PREPARE) and can_be_registered(operation),
        "timeline": timeline,
        "seen": _seen(operation, turn, rows, resolution),
        "polls": rows.is_moving if rows else not operation.is_closed,
        "pace": poll_seconds(operation),
    }


def _seen(
    operation: Operation,
    turn: QueuePosition | None,
    rows: BatchSummary | None,
    resolution: PaymentResolution,
) -> str:
    """The fingerprint of the page, those of the rows of an applied batch and of a pending resolution included."""
    further = (rows.fingerprint if rows else "", resolution.fingerprint)
    return "-".join(filter(None, (fingerprint(operation, turn), *further)))


def _is_receipt(operation: Operation) -> bool:
    """Whether its sheet may be called a receipt. That of a batch proves no payment: its rows are paid one by one."""
    return operation.status == Status.SUCCEEDED and not is_applied_batch(operation)


def _expected_wait(turn: QueuePosition | None) -> int | None:
    """How many seconds an operation that is sent now will probably wait; None if nothing is ahead, or for an unknown
    time.
    """
    if turn is None or turn.blocked_by or not turn.ahead:
        return None
    return round(turn.ahead * seconds_per_payment()[turn.balance])


@dataclass(frozen=True)
class AttemptRow:
    """An attempt, what the provider created by it, and the next step."""

    attempt: Attempt
    facts: Facts
    next_step: str

    @property
    def name_not_checked(self) -> str:
        """Why the name at the bank could not be read before sending; empty if it was, or none is needed."""
        cause = self.attempt.name_not_checked
        return unresolved_sentence(cause) if cause else ""


@dataclass(frozen=True)
class KindTexts:
    """What the kind shows of one operation: its facts, its cautions, and the result of each attempt.

    Without facts if the content cannot be read.
    """

    facts: Facts | None = None
    summary: DecisionSummary | None = None
    cautions: Sequence[str] = ()
    attempts: Sequence[AttemptRow] = ()
    look_alikes: Sequence[tuple[LookAlike, list[FieldMatch]]] = ()


def _recipient_warnings(
    operation: Operation, kind: AnyKind, payload: Payload, required: RequiredNow | OperationError | None
) -> list[str]:
    """Nothing if the policies were altered: then it is not sent, and its page says so."""
    if isinstance(required, RequiredNow):
        return recipient_warnings(operation.pk, kind, payload, required.recipients)
    with suppress(PolicyAlteredError):
        recipients = requirements_for(selectors.current_policy(), operation)
        return recipient_warnings(operation.pk, kind, payload, recipients)
    return []


def _kind_texts(
    operation: Operation,
    waiting: Waiting | None = None,
    required: RequiredNow | OperationError | None = None,
) -> KindTexts:
    attempts = list(operation.attempts.all())
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return KindTexts(
            summary=decision_summary(operation, None, None, waiting),
            attempts=[AttemptRow(attempt, [], next_step(operation, attempt)) for attempt in attempts],
        )
    return KindTexts(
        facts=facts_of(kind, payload),
        summary=decision_summary(operation, kind, payload, waiting),
        cautions=[]
        if operation.is_closed
        else [
            *kind.cautions(payload),
            *_look_alikes_of_payee(operation, kind, payload),
            *_recipient_warnings(operation, kind, payload, required),
        ],
        attempts=[
            AttemptRow(
                attempt, kind.outcome_facts(payload, attempt.result or {}), next_step(operation, attempt)
            )
            for attempt in attempts
        ],
        look_alikes=[
            (one, kind.match_fields(payload, one.as_record()))
            for one in operation.look_alikes.all()
            if isinstance(kind, MoneyKind)
        ],
    )


def _look_alikes_of_payee(operation: Operation, kind: AnyKind, payload: Payload) -> list[str]:
    """The warnings of the last minute: the page is loaded again while it is open, and nothing is decided by them."""
    state = getattr(operation, "registered_state", "") or ""
    return cached_in_process(
        f"look-alikes-of-payee-{operation.pk}-{state}-{get_language()}",
        lambda: look_alike_warnings(kind, payload, state),
        _LOOK_ALIKES_KEPT_SECONDS,
    )


_LOOK_ALIKES_KEPT_SECONDS = 60


def decision_requirements(operation: Operation) -> DecisionRequirements:
    """What the kind requires for a decision; nothing if the content cannot be read."""
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return DecisionRequirements()
    undeclared = [one for one in operation.look_alikes.all() if one.declared_at is None]
    return DecisionRequirements(
        otp=kind.asks_for_otp,
        confirmation=kind.confirmation(payload),
        acknowledgement=kind.acknowledgement(payload),
        look_alikes=undeclared,
        holder_changes=[one for one in operation.holder_changes.all() if one.confirmed_at is None],
    )


def _form(
    form_type: type[BaseDecisionForm],
    refused: BaseDecisionForm | None,
    request: StaffRequest,
    wants: DecisionRequirements,
) -> BaseDecisionForm:
    """The refused form if it is of this type, otherwise an empty one."""
    return refused if isinstance(refused, form_type) else form_type(request=request, wants=wants)


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def receipt(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The operation on one sheet of paper: its content, people and times, and its entries in the audit log."""
    operation = operation_or_404(request, pk)
    kind_texts, entries = _kind_texts(operation), audit_timeline(operation)
    rows = batch_summary(operation)
    attempts = [row for row in kind_texts.attempts if row.attempt.provider_transaction_id or row.facts]
    context = {
        "operation": operation,
        "status": status_of(operation, rows),
        "batch_summary": rows,
        "is_receipt": _is_receipt(operation),
        "facts": kind_texts.facts or [],
        "attempt": attempts[-1] if attempts else None,
        "total": total_debit(operation),
        "entries": entries,
        "now": timezone.now(),
    }
    return render(request, "operations/receipt.html", context)


# What was missing or wrong in a form, or was done already when it arrived; the form itself said so. It is in the
# audit log, but nothing happened.
_FORM_REFUSALS = {
    Refusal.FORM_INVALID,
    Refusal.REASON_MISSING,
    Refusal.OTP_MISSING,
    Refusal.SECOND_FACTOR_STALE,
    Refusal.CONFIRMATION_WRONG,
    Refusal.ACKNOWLEDGEMENT_MISSING,
    Refusal.ALREADY_APPROVED,
    Refusal.ALREADY_RELEASED,
    Refusal.WRONG_STATUS,
    Refusal.STATUS_CHANGED,
}


def audit_timeline(operation: Operation) -> list[Entry]:
    """The audit entries of one operation, oldest first, each with its actor's name at the time.

    Without those about forms that were not accepted.
    """
    entries = Entry.objects.filter(target_type=operation._meta.label_lower, target_id=str(operation.pk))
    return [
        entry
        for entry in entries.order_by("position")
        if entry.detail.get("refusal", {}).get("code") not in _FORM_REFUSALS
    ]


def _notices(request: StaffRequest, operation: Operation) -> list[Message]:
    """The messages of the last action, as far as they agree with the operation.

    One about another state than the present one is dropped, and none is green beside a red status.
    """
    current = [
        message
        for message in messages.get_messages(request)
        if (message.extra_tags or page_state(operation)) == page_state(operation)
    ]
    if operation.status not in STOPPED:
        return current
    return [
        Message(messages.INFO, message.message) if message.level == messages.SUCCESS else message
        for message in current
    ]


@sensitive_post_parameters("otp", "code")
@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def approve(request: StaffRequest, pk: UUID) -> HttpResponse:
    operation = _decidable_or_404(request, pk)
    form = ApprovalForm(request.POST, request=request, wants=decision_requirements(operation))
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
    form = ApproveAndSendForm(request.POST, request=request, wants=decision_requirements(operation))
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
    form = RejectionForm(request.POST, request=request, wants=decision_requirements(operation))
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
    form = ReleaseForm(request.POST, request=request, wants=decision_requirements(operation))
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
            form.add_error(None, str(exc))
        else:
            messages.add_message(request, *done(changed), extra_tags=page_state(changed))
            return redirect(changed)
    return render_page(request, operation_or_404(request, pk), refused=form)


def _form_problems(form: BaseDecisionForm) -> OperationError:
    """The errors of the form as one reason."""
    return OperationError(Refusal.FORM_INVALID, fields=", ".join(form.errors))


def _approved_message(operation: Operation) -> tuple[int, str]:
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
