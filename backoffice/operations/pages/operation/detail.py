"""The page of one operation: what it shows to this user, its polling, and the receipt.

What its forms do is in `actions.py`.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.messages.storage.base import Message
from django.db.models import DateTimeField, UUIDField
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.restrictions import restriction_times
from backoffice.accounts.second_factor import has_fresh_second_factor
from backoffice.accounts.sessions import StaffRequest
from backoffice.audit.log import read_entries
from backoffice.audit.models import Entry
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.database.queries import Argument, CompiledQuery, composed_once
from backoffice.core.web.formatting import in_words
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
from backoffice.operations.errors import ContentUnreadableError, OperationError, PolicyAlteredError
from backoffice.operations.kinds.base import Facts, FieldMatch, MoneyKind, Payload
from backoffice.operations.kinds.payment import PaymentKind
from backoffice.operations.kinds.registry import KINDS, AnyKind, facts_of, read_content
from backoffice.operations.kinds.staff_change import progress_of_handover
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.pages.operation.forms import (
    ApprovalForm,
    BaseDecisionForm,
    DecisionRequirements,
    RejectionForm,
    ReleaseForm,
)
from backoffice.operations.pages.operation.next_step import next_step, nothing_sent_text, reason_not_sent
from backoffice.operations.pages.operation.paid_elsewhere import (
    PaymentResolution,
    payment_resolution,
    with_resolution,
)
from backoffice.operations.pages.operation.panel import panel_for, without_decisions
from backoffice.operations.pages.operation.status import (
    STOPPED,
    fingerprint,
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
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
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
    if not request.user.has_perm(permissions.VIEW):
        raise Http404
    operation = _operation_page(restriction_times()).first(pk=pk, now=timezone.now())
    if operation is None:
        raise Http404
    selectors.fetch_history(operation)
    return operation


@composed_once
def _operation_page(_times: tuple[timedelta, ...]) -> CompiledQuery[Operation]:
    operations = with_queue(
        with_registered_recipient(selectors.operation_page()), Argument("now", DateTimeField())
    )
    return CompiledQuery(operations.filter(pk=Argument("pk", UUIDField())))


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
    requirements = decision_requirements(operation)
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
        "retry": selectors.retry_of_payment(operation) if panel.may_copy else None,
        "summary": kind_texts.summary,
        "payment": created_payment(operation, ask="read" in request.GET),
        "can_be_asked": can_read_payments(),
        "handover": progress_of_handover(operation, request.user),
        "is_second_factor_fresh": has_fresh_second_factor(request),
        "turn": turn,
        "expected_wait": _expected_wait(turn) if panel.may_approve_and_send or panel.may_release else None,
        "came_back": "" if resolution.pending else reason_not_sent(operation, timeline, turn),
        "refused": refused,
        "decision": _form(ApprovalForm, refused, request, requirements) if panel.may_approve else None,
        "rejection": _form(RejectionForm, refused, request, requirements) if panel.may_decide else None,
        "release": _form(ReleaseForm, refused, request, requirements) if panel.may_release else None,
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
    """Whether its sheet may be called a receipt. That of a batch proves no payment: its rows are paid one by one.
    Neither does that of an off-ramp payment, which was created: whether its customer pays is not known here.
    """
    is_created = operation.kind == PaymentKind.name
    return operation.status == Status.SUCCEEDED and not is_created and not is_applied_batch(operation)


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
        return in_words(unresolved_sentence, cause) if cause else ""


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
    requirements: DecisionRequirements,
) -> BaseDecisionForm:
    """The refused form if it is of this type, otherwise an empty one."""
    return (
        refused if isinstance(refused, form_type) else form_type(request=request, requirements=requirements)
    )


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
    Refusal.BATCH_APPROVED,
}


def audit_timeline(operation: Operation) -> list[Entry]:
    """The audit entries of one operation, oldest first, each with its actor's name at the time.

    Without those about forms that were not accepted.
    """
    entries = Entry.objects.filter(target_type=operation._meta.label_lower, target_id=str(operation.pk))
    found = read_entries(entries.order_by("position"))
    return [entry for entry in found if entry.code_of("refusal") not in _FORM_REFUSALS]


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
