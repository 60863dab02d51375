"""Send several approved operations: the confirmation with totals and expected time, and the progress of each."""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe
from pydantic import SecretStr

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.models import User
from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.gateway import provider_profile
from backoffice.core.web.pagination import keyset_page
from backoffice.core.web.submissions import submission_id
from backoffice.operations import permissions, policy, selectors
from backoffice.operations.batches.retried_rows import retryable_rows
from backoffice.operations.delivery.expected_wait import OPERATIONS_PER_CODE, expected_seconds
from backoffice.operations.errors import (
    AlreadyReleasedError,
    ExpiredError,
    HolderChangedError,
    LookAlikeError,
    OperationError,
    SelfApprovalError,
    WrongStatusError,
)
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.models.batches import Batch, BatchRow
from backoffice.operations.models.bulk_releases import NOT_SENT, BulkRelease, ItemState
from backoffice.operations.models.holds import HolderChange, LookAlike
from backoffice.operations.models.monitoring import POSSIBLY_PAID, Incident, LostAttempt
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.pages.bulk import BulkRow, bulk_totals
from backoffice.operations.pages.operation.forms import (
    BaseDecisionForm,
    DecisionRequirements,
    add_refusal,
    otp_field,
)
from backoffice.operations.pages.operation.status import asks_for_otp, is_released, may_have_been_sent
from backoffice.operations.pages.operation_list import OperationFilterForm, waiting_operations
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.selectors import first_payment_text
from backoffice.operations.states import Status
from backoffice.operations.workflow.bulk_release import (
    MAX_OPERATIONS,
    continue_bulk_release,
    release_with_code,
    start_bulk_release,
    unfinished_bulk_release,
    waiting_for_code,
    waiting_without_code,
)

SHOWN = 50  # operations on the confirmation, the largest first; the totals are of all
LISTED_BATCHES = 3
_AT_ONCE = 500  # operations whose content is read at the same time

_NO_SUBMISSION = _("Open the list again, then confirm. Nothing was sent.")


class BulkReleaseForm(BaseDecisionForm):
    """Sends what the page shows, with the one-time code of one operation where one is needed."""

    otp = otp_field(required=True, help_text="")
    submission = forms.UUIDField(widget=forms.HiddenInput, error_messages={"required": _NO_SUBMISSION})
    field_order = ("otp", "code")

    def __init__(self, *args: Any, request: StaffRequest, asks_for_code: bool, **kwargs: Any) -> None:
        super().__init__(
            *args, request=request, requirements=DecisionRequirements(otp=asks_for_code), **kwargs
        )
        del self.fields["digest"]
        if asks_for_code:
            self.fields["otp"].help_text = _code_help()

    def clean_otp(self) -> SecretStr:
        return SecretStr(self.cleaned_data["otp"])


def _code_help() -> str:
    if provider_profile().otp_single_use:
        return gettext("For one operation. The page then asks for a new code for the next one.")
    text = gettext("For up to {count} operations. If more are waiting, the page asks for another code.")
    return text.format(count=OPERATIONS_PER_CODE)


@dataclass(frozen=True)
class SendSelection:
    """The operations to send, in the order of sending, and those that are skipped, with the reason for each.

    There may be thousands, so they have only the `_COLUMNS` that the totals and the order to send need.
    """

    operations: list[Operation]
    skipped: list[Operation]
    reasons: Mapping[UUID, str]
    is_cut: bool  # there are more than MAX_OPERATIONS

    @cached_property
    def digest(self) -> str:
        """Of exactly these operations and their contents, so that nothing is sent that was not shown."""
        shown = [f"{one.reference}:{one.digest}" for one in self.operations]
        return hashlib.sha256("\n".join(shown).encode()).hexdigest()

    @cached_property
    def with_code(self) -> int:
        """How many need a one-time code."""
        return sum(asks_for_otp(one) for one in self.operations)

    @cached_property
    def largest(self) -> list[Operation]:
        """The largest amounts of each currency, at most SHOWN."""
        return sorted(self.operations, key=lambda one: (one.currency, -(one.amount or 0)))[:SHOWN]


@sensitive_post_parameters("code", "otp")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.RELEASE, raise_exception=True)
def confirm(request: StaffRequest) -> HttpResponse:
    """What would be sent: the operations in the URL, or all that match its filters. POST starts a bulk release."""
    if request.method == "POST" and (done := _earlier_submission(request)):
        return redirect(done)
    selection = _selection(request)
    asks = selection.with_code > 0
    if request.method != "POST":
        form = BulkReleaseForm(request=request, asks_for_code=asks, initial={"submission": uuid4()})
        return _confirmation(request, selection, form)
    form = BulkReleaseForm(request.POST, request=request, asks_for_code=asks)
    form.full_clean()
    # Said beside every other error, as the page that reports it has the new list.
    if request.POST.get("selection") != selection.digest:
        form.add_error(None, gettext("The list has changed. Nothing was sent; check it again, then confirm."))
    if not form.is_valid() or not selection.operations:
        return _confirmation(request, selection, form, status=422)
    try:
        bulk_release = start_bulk_release(
            form.cleaned_data["submission"],
            selection.operations,
            actor=request.user,
            second_factor_at=second_factor_at(request),
        )
    except OperationError as exc:
        form.add_error(None, str(exc))
        return _confirmation(request, selection, form, status=422)
    if "otp" in form.fields and not _send(request, bulk_release, form):
        messages.error(request, " ".join(str(error) for errors in form.errors.values() for error in errors))
    return redirect(bulk_release)


def _earlier_submission(request: StaffRequest) -> BulkRelease | None:
    """The bulk release that the same form has started before, such as by a double click."""
    return BulkRelease.objects.filter(pk=submission_id(request.POST), released_by=request.user).first()


@sensitive_post_parameters("code", "otp")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def progress(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Each operation with its state. POST sends what waits, with the next one-time code where one is needed."""
    bulk_release = get_object_or_404(BulkRelease.objects.select_related("released_by"), pk=pk)
    if request.method != "POST" or bulk_release.released_by_id != request.user.pk:
        return _progress_page(request, bulk_release)
    form = _next_form(request, bulk_release, filled=True)
    if form is None:
        return redirect(bulk_release)
    if form.is_valid() and _send(request, bulk_release, form):
        return redirect(bulk_release)
    return _progress_page(request, bulk_release, form=form, status=422)


@does_not_extend_session
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def live(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The counts and rows of an open page. The whole page is loaded again when its form has to appear or disappear."""
    bulk_release = get_object_or_404(BulkRelease.objects.select_related("released_by"), pk=pk)
    context = _progress_context(request, bulk_release)
    response = render(request, "operations/_bulk_release_progress.html", context)
    if request.GET.get("asks") != context["asks"]:
        response["HX-Refresh"] = "true"
    return response


def _send(request: StaffRequest, bulk_release: BulkRelease, form: BulkReleaseForm) -> bool:
    """Send what waits, or one operation with a code. False, with the reason in the form, if nothing can be sent."""
    confirmed, otp = second_factor_at(request), form.cleaned_data.get("otp")
    try:
        if otp:
            release_with_code(bulk_release, actor=request.user, second_factor_at=confirmed, otp=otp)
        else:
            continue_bulk_release(bulk_release, actor=request.user, second_factor_at=confirmed)
    except OperationError as exc:
        add_refusal(form, exc)
        return False
    return True


def _next_form(
    request: StaffRequest, bulk_release: BulkRelease, *, filled: bool = False
) -> BulkReleaseForm | None:
    """The form that sends what waits.

    None for other people, if nothing waits, while a worker still releases them, and while a code is being used.
    """
    if bulk_release.released_by_id != request.user.pk or bulk_release.is_pending:
        return None
    asks = not waiting_without_code(bulk_release).exists()
    if asks and (not waiting_for_code(bulk_release).exists() or _is_code_in_use(bulk_release)):
        return None
    form = BulkReleaseForm(request.POST if filled else None, request=request, asks_for_code=asks)
    del form.fields["submission"]
    if asks:
        form.fields["otp"].widget.attrs["autofocus"] = True
    return form


def _is_code_in_use(bulk_release: BulkRelease) -> bool:
    """Whether an operation with a code is still queued: the next code would be entered too early and expire."""
    queued = bulk_release.items.queued()
    return queued.filter(operation__release__encrypted_otp__isnull=False).exists()


def _progress_page(
    request: StaffRequest,
    bulk_release: BulkRelease,
    *,
    form: BulkReleaseForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context = _progress_context(request, bulk_release)
    form = form or _next_form(request, bulk_release)
    return render(request, "operations/bulk_release.html", {**context, "form": form}, status=status)


def _progress_context(request: StaffRequest, bulk_release: BulkRelease) -> dict[str, Any]:
    counts, held = bulk_release.items.counts(), bulk_release.items.in_paused_batch().counts()
    free = {state: count - held.get(state, 0) for state, count in counts.items()}
    waiting = free.get(ItemState.WAITING, 0)
    items = bulk_release.items.with_state().select_related("operation", "operation__preparer")
    total = sum(counts.values())
    polls = bulk_release.is_pending or any(counts.get(state) for state in _CHANGING)
    unfinished = sum(counts.get(state, 0) for state in _UNFINISHED)
    return {
        "bulk_release": bulk_release,
        "counts": [(state, state.label, count) for state, count in counts.items()],
        "total": total,
        "finished": total - unfinished,
        "is_running": any(free.get(state) for state in _RUNNING) or (bulk_release.is_pending and waiting > 0),
        "waiting": waiting,
        "stopped_by": bulk_release.reason if waiting and not bulk_release.is_pending else "",
        "is_own": bulk_release.released_by_id == request.user.pk,
        "next_count": 1 if provider_profile().otp_single_use else min(waiting, OPERATIONS_PER_CODE),
        "unknown": counts.get(ItemState.UNKNOWN, 0),
        "is_all_sent": not any(counts.get(state) for state in NOT_SENT),
        "polls": polls,
        "batches": _batches(request, bulk_release, has_ended=not polls),
        "paused_batches": _paused_batches(bulk_release) if held else [],
        "asks": "1" if _next_form(request, bulk_release) else "0",
        "page": keyset_page(items, order=("position",), cursor=request.GET.get("cursor"), size=SHOWN),
        "paused": cached_pause(),
    }


_RUNNING = (ItemState.QUEUED, ItemState.SENDING, ItemState.PROCESSING)
_CHANGING = (*_RUNNING, ItemState.UNKNOWN, ItemState.WAITING)  # what an open page polls for
_UNFINISHED = (*_CHANGING, ItemState.REVIEW)


def _batches(
    request: StaffRequest, bulk_release: BulkRelease, *, has_ended: bool
) -> list[tuple[Operation, int]]:
    """The batches of which it sends rows, at most LISTED_BATCHES, each with how many rows this user can then retry."""
    rows = BatchRow.objects.filter(operation__in=bulk_release.items.values("operation"))
    found = selectors.visible_operations(request.user).filter(pk__in=rows.values("batch"))
    may_retry = has_ended and request.user.has_perm(permissions.PREPARE)
    return [(batch, retryable_rows(batch.pk).count() if may_retry else 0) for batch in found[:LISTED_BATCHES]]


def _paused_batches(bulk_release: BulkRelease) -> list[Batch]:
    """The paused batches of which operations are still to be sent."""
    to_send = bulk_release.items.filter(operation__status=Status.APPROVED).in_paused_batch()
    found = Batch.objects.filter(pk__in=to_send.values("operation__batch_row__batch"))
    return list(found.select_related("operation", "paused_by").order_by("paused_at"))


def _confirmation(
    request: StaffRequest, selection: SendSelection, form: BulkReleaseForm, status: int = 200
) -> HttpResponse:
    largest, skipped = selection.largest, selection.skipped[:SHOWN]
    batch = _whole_batch(request)
    rows = _rows([*largest, *skipped], selection.reasons)
    context = {
        "selection": selection,
        "largest": rows[: len(largest)],
        "skipped": rows[len(largest) :],
        "batch": batch,
        "open_bulk_release": unfinished_bulk_release(batch) if batch else None,
        "form": form,
        "totals": bulk_totals(selection.operations, debited=True),
        "not_debited": bulk_totals(selection.operations, debited=False),
        "expected": expected_seconds(selection.operations),
        "limit": MAX_OPERATIONS,
        "shown": SHOWN,
        "paused": cached_pause(),
        "codes_work_once": provider_profile().otp_single_use,
    }
    return render(request, "operations/bulk_send.html", context, status=status)


def _rows(operations: Collection[Operation], reasons: Mapping[UUID, str]) -> list[BulkRow]:
    """A row for each of these operations, with what a list shows. One query."""
    whole = selectors.with_first_payment(Operation.objects.all()).in_bulk([one.pk for one in operations])
    return [
        BulkRow(whole[one.pk], [], first_payment_text(whole[one.pk]), reasons.get(one.pk, ""))
        for one in operations
    ]


def _whole_batch(request: StaffRequest) -> Operation | None:
    """The batch in the address, if all of its operations are to be sent: no other filter is in the address."""
    filters = {name for name, value in request.GET.items() if value} - {"tab", "status"}
    if filters != {"batch"}:
        return None
    found = selectors.visible_operations(request.user).filter(batch__isnull=False)
    return found.filter(reference=request.GET["batch"]).first()


_COLUMNS = ("reference", "kind", "digest", "currency", "amount")
_IS_OF_STOPPED_BATCH = Q(batch__batch__paused_at__isnull=False) | Q(batch__batch__cancelled_at__isnull=False)


def _selection(request: StaffRequest) -> SendSelection:
    person, now = request.user, timezone.now()
    found = _chosen(request).select_related(None).only(*_COLUMNS, "payload")
    found = found.annotate(is_free=_is_free(person, now)).order_by("prepared_at", "batch_row__number", "id")
    ordered, doubtful = [], []
    for operation in found[: MAX_OPERATIONS + 1].iterator(chunk_size=_AT_ONCE):
        if not (vars(operation)["is_free"] and _is_content_right(operation)):
            doubtful.append(operation.pk)
        del operation.payload  # of thousands at once, it would take tens of megabytes
        ordered.append(operation)
    reasons = _skip_reasons(person, doubtful, now)
    considered = ordered[:MAX_OPERATIONS]
    return SendSelection(
        [one for one in considered if one.pk not in reasons],
        [one for one in considered if one.pk in reasons],
        reasons,
        is_cut=len(ordered) > MAX_OPERATIONS,
    )


def _chosen(request: StaffRequest) -> QuerySet[Operation]:
    """The operations in the address, or all that wait for this user and match its filters."""
    visible = selectors.visible_operations(request.user)
    if references := request.GET.getlist("operation"):
        return visible.filter(reference__in=references)
    form = OperationFilterForm({**request.GET.dict(), "tab": "waiting", "status": Status.APPROVED})
    return waiting_operations(request.user, form) if form.is_valid() else visible.none()


def _is_free(person: User, now: datetime) -> Combinable:
    """Whether no column is a reason to skip an operation. Others are checked one by one, as `_skip_reason` does."""
    if policy.restriction(person, permissions.RELEASE):
        return Value(value=False)
    held_by = (
        Release.objects.filter(expires_at__gt=now),
        LostAttempt.objects.all(),
        LookAlike.objects.filter(declared_at__isnull=True),
        HolderChange.objects.filter(confirmed_at__isnull=True),
        Incident.objects.filter(kind__in=POSSIBLY_PAID, acknowledged_at__isnull=True),
        BatchRow.objects.filter(_IS_OF_STOPPED_BATCH),
    )
    not_held = (~Exists(rows.filter(operation=OuterRef("pk"))) for rows in held_by)
    is_free = Q(~Q(preparer=person), *not_held, status=Status.APPROVED, expires_at__gt=now)
    return Case(When(is_free, then=True), default=False)


def _is_content_right(operation: Operation) -> bool:
    try:
        _check_content(operation)
    except OperationError:
        return False
    return True


def _skip_reasons(person: User, pks: Collection[UUID], now: datetime) -> dict[UUID, str]:
    """Why each of these operations cannot be sent from here; those that can are left out."""
    found = Operation.objects.filter(pk__in=pks).select_related("release", "batch_row__batch__batch")
    found = found.prefetch_related("look_alikes", "holder_changes", "lost_attempts", "incidents")
    reasons = {one.pk: _skip_reason(person, one, now) for one in found.iterator(chunk_size=_AT_ONCE)}
    return {pk: reason for pk, reason in reasons.items() if reason}


def _skip_reason(person: User, operation: Operation, now: datetime) -> str:
    """Why it cannot be sent from here; empty if it can. The service checks again, and more."""
    try:
        _check_is_sendable(person, operation, now)
    except OperationError as exc:
        return str(exc)
    return ""


def _check_is_sendable(person: User, operation: Operation, now: datetime) -> None:
    if operation.preparer_id == person.pk:
        raise SelfApprovalError
    if operation.status != Status.APPROVED:
        raise WrongStatusError(Refusal.STATUS_CHANGED, status=operation.status)
    if is_released(operation):
        raise AlreadyReleasedError
    if operation.has_expired(now):
        raise ExpiredError
    if may_have_been_sent(operation):
        raise OperationError(Refusal.SENT_BEFORE_RESTORE)
    if row := getattr(operation, "batch_row", None):
        policy.check_batch_continues(row.batch.batch)
    _check_nothing_to_compare(operation)
    if restricted := policy.restriction(person, permissions.RELEASE):
        raise restricted
    _check_content(operation)


def _check_content(operation: Operation) -> None:
    """Raise OperationError if the content itself must not be sent, which no column shows."""
    policy.check_content(operation, operation.digest)
    policy.check_is_sendable(operation)


def _check_nothing_to_compare(operation: Operation) -> None:
    """Raise the reason why a person has to compare something on the operation's own page first."""
    incidents = [one for one in operation.incidents.all() if one.acknowledged_at is None]
    if any(one.kind in POSSIBLY_PAID for one in incidents):
        raise OperationError(Refusal.OPEN_INCIDENT)
    look_alikes = [one.transaction_id for one in operation.look_alikes.all() if one.declared_at is None]
    if look_alikes:
        raise LookAlikeError(look_alikes)
    for change in operation.holder_changes.all():
        if change.confirmed_at is None:
            raise HolderChangedError(change.approved_name, change.name)
