"""The page of one operation, and the look that an open page takes at it by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.accounts.models import User
from backoffice.ledger.payments import can_be_asked
from backoffice.operations import permissions, selectors
from backoffice.operations.account_forms import SavedAccountForm
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.forms import DecisionForm, RejectionForm, ReleaseForm, SignedForm, Wants
from backoffice.operations.kinds import Facts, content_of, facts_of
from backoffice.operations.known_accounts import is_savable, with_saved_name
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.panel import came_back, panel_for, without_content
from backoffice.operations.payments import made_payment
from backoffice.operations.progress import fingerprint, pace, steps
from backoffice.operations.turns import turn_of


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def detail(request: StaffRequest, pk: UUID) -> HttpResponse:
    return page(request, find(request, pk))


@polled
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def live(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Nothing (204) while the operation is as the open page shows it; otherwise all of it anew."""
    operation = find(request, pk)
    if request.GET.get("seen") == fingerprint(operation, turn_of(operation)):
        return HttpResponse(status=204)
    notice = f"This has just changed. It is now: {operation.get_status_display()}."
    return render(request, "operations/_operation.html", _context(request, operation, notice=notice))


def find(request: StaffRequest, pk: UUID) -> Operation:
    """The operation with all that its page shows; 404 if this person may not see it."""
    return get_object_or_404(with_saved_name(selectors.operation_page(request.user)), pk=pk)


def page(
    request: StaffRequest,
    operation: Operation,
    *,
    refused: SignedForm | None = None,
    saving: SavedAccountForm | None = None,
) -> HttpResponse:
    """The whole page; with a refused form (422) what was typed stays, and the reason stands beside it."""
    context = _context(request, operation, refused=refused)
    if saving is not None:
        context["saving"] = saving
    return render(request, "operations/detail.html", context, status=422 if refused or saving else 200)


def _context(
    request: StaffRequest, operation: Operation, *, refused: SignedForm | None = None, notice: str = ""
) -> dict[str, Any]:
    timeline, said, turn = selectors.timeline(operation), _said(operation), turn_of(operation)
    wants = wants_of(operation)
    panel = panel_for(request.user, operation, turn)
    if said.facts is None:
        panel = without_content(panel)
    return {
        "operation": operation,
        "facts": said.facts,
        "cautions": said.cautions,
        "attempts": said.attempts,
        "steps": steps(operation, turn),
        "panel": panel,
        "payment": made_payment(operation, ask="read" in request.GET),
        "can_be_asked": can_be_asked(),
        "turn": turn,
        "came_back": came_back(operation, timeline, turn),
        "refused": refused,
        "decision": _form(DecisionForm, refused, request, wants) if panel.may_decide else None,
        "rejection": _form(RejectionForm, refused, request, wants) if panel.may_decide else None,
        "release": _form(ReleaseForm, refused, request, wants) if panel.may_release else None,
        "saving": SavedAccountForm() if _may_save(request.user, operation) else None,
        "timeline": timeline,
        "seen": fingerprint(operation, turn),
        "pace": pace(operation),
        "notice": notice,
    }


def _may_save(person: User, operation: Operation) -> bool:
    """Whether this person may keep the account that it pays under a name."""
    return person.has_perm(permissions.PREPARE) and is_savable(operation)


@dataclass(frozen=True)
class Said:
    """What the kind says about one operation: all that is signed, what to beware of, and what the service made in
    each attempt. Nothing if the content cannot be read."""

    facts: Facts | None = None
    cautions: Sequence[str] = ()
    attempts: Sequence[tuple[Attempt, Facts]] = ()


def _said(operation: Operation) -> Said:
    attempts = list(operation.attempts.all())
    try:
        kind, payload = content_of(operation)
    except UnreadableContentError:
        return Said(attempts=[(attempt, []) for attempt in attempts])
    return Said(
        facts=facts_of(kind, payload),
        cautions=[] if operation.is_closed else kind.cautions(payload),
        attempts=[(attempt, kind.outcome_facts(payload, attempt.result or {})) for attempt in attempts],
    )


def wants_of(operation: Operation) -> Wants:
    """What its kind asks of whoever decides about it; nothing if the content cannot be read."""
    try:
        kind, payload = content_of(operation)
    except UnreadableContentError:
        return Wants()
    return Wants(token=kind.needs_token, confirmation=kind.confirmation(payload))


def _form(
    form_type: type[SignedForm], refused: SignedForm | None, request: StaffRequest, wants: Wants
) -> SignedForm:
    """The refused form where it is of this type, otherwise an empty one."""
    return refused if isinstance(refused, form_type) else form_type(request=request, wants=wants)
