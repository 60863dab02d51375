"""Payments created here, as the provider last reported them. No decision depends on that."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.db.models import Prefetch, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe
from pydantic import TypeAdapter

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.cached_reads import CachedRead, CachedValue, cached_values
from backoffice.core.gateway import PAGE_PART_TIMEOUT, gateway, provider_profile
from backoffice.core.web.formatting import format_amount
from backoffice.operations import permissions
from backoffice.operations.kinds.payment import PaymentKind, payment_result
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.pages.operation_list import kind_context, render_list
from backoffice.operations.selectors import visible_operations
from backoffice.operations.states import Outcome, Status
from payments_gateway import Payment

_FRESH_FOR = timedelta(seconds=30)
_ADDRESS_WATCHED_AFTER_EXPIRY = timedelta(days=1)
_MAX_READS, _READS_DEADLINE = 10, 5.0


def can_read_payments() -> bool:
    """Whether the provider profile has the capability `payment` (GET /payment/{paymentId}).

    It is not in the specification.
    """
    return "payment" in provider_profile().capabilities


def fetch_payment(payment_id: str) -> Payment:
    """The payment as the provider reports it now. Call only if `can_read_payments()`. Raises GatewayError."""
    return gateway(deadline=PAGE_PART_TIMEOUT).extras.payment(payment_id)


@dataclass(frozen=True)
class CreatedPayment:
    """One payment. `reported` is what the provider reported, as text by name, at `reported_at`.

    `was_refreshed`: it was read again after the creation. `problem`: why a read failed.
    """

    operation: Operation
    reported: dict[str, str]
    reported_at: datetime
    was_refreshed: bool
    problem: str = ""

    @property
    def expires_at(self) -> datetime | None:
        """When the deposit address expires, if the provider reported it."""
        text = self.reported.get("expires_at", "")
        return datetime.fromisoformat(text) if text else None

    @property
    def is_watched(self) -> bool:
        """Whether something may still change: until a day after it expired."""
        until = (self.expires_at or self.reported_at) + _ADDRESS_WATCHED_AFTER_EXPIRY
        return timezone.now() < until

    @property
    def incoming(self) -> str:
        """`USDT 100.00`, or empty if no amount was reported; the next three properties have the same form."""
        return self._amount("incoming_amount", "incoming_currency")

    @property
    def outgoing(self) -> str:
        return self._amount("outgoing_amount", "outgoing_currency")

    @property
    def confirmed(self) -> str:
        return self._amount("confirmed_amount", "incoming_currency")

    @property
    def unconfirmed(self) -> str:
        return self._amount("unconfirmed_amount", "incoming_currency")

    def _amount(self, name: str, currency_name: str) -> str:
        currency = self.reported.get(currency_name) or str(self.operation.payload[currency_name])
        return (
            f"{currency} {format_amount(Decimal(self.reported[name]), currency)}"
            if name in self.reported
            else ""
        )


def payment_operations(user: User) -> QuerySet[Operation]:
    """Operations that created a payment, with the attempt whose answer describes it; two queries."""
    found = visible_operations(user).filter(kind=PaymentKind.name, status=Status.SUCCEEDED)
    return _with_creating_attempt(found)


def _with_creating_attempt(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    succeeded = Attempt.objects.filter(outcome=Outcome.SUCCEEDED)
    return operations.prefetch_related(Prefetch("attempts", succeeded))


def created_payment(operation: Operation, *, ask: bool = False) -> CreatedPayment | None:
    """The payment that this operation created, as last reported; None if it created none.

    With `ask` the provider is read first, if possible. Never raises GatewayError.
    """
    attempt = _creating_attempt(operation)
    if attempt is None:
        return None
    return _described(operation, attempt, _refreshed(attempt) if ask else _payment_read(attempt).cached())


def _creating_attempt(operation: Operation) -> Attempt | None:
    """The attempt whose answer describes the payment; None if the operation created none."""
    if operation.kind != PaymentKind.name:
        return None
    return next((one for one in operation.attempts.all() if one.outcome == Outcome.SUCCEEDED), None)


def _payment_read(attempt: Attempt) -> CachedRead[Payment]:
    return CachedRead(f"payment:{attempt.pk}", TypeAdapter(Payment))


def _refreshed(attempt: Attempt) -> CachedValue[Payment]:
    payment_id = (attempt.result or {}).get("id", "")
    if not payment_id or not can_read_payments():
        return CachedValue()
    return _payment_read(attempt).refresh(lambda: fetch_payment(payment_id))


def _described(operation: Operation, attempt: Attempt, reported: CachedValue[Payment]) -> CreatedPayment:
    newer = {} if reported.value is None else payment_result(reported.value)
    at = reported.read_at or attempt.closed_at or attempt.started_at
    fields = (attempt.result or {}) | newer
    return CreatedPayment(operation, fields, at, was_refreshed=bool(newer), problem=reported.error)


def created_payments(operations: Sequence[Operation], *, ask: bool) -> list[CreatedPayment]:
    """The payments of a page. `ask` reads up to ten that may have changed, within five seconds in all."""
    until, reads, found = time.monotonic() + _READS_DEADLINE, 0, []
    attempts = [(one, attempt) for one in operations if (attempt := _creating_attempt(one))]
    cached = cached_values([_payment_read(attempt) for _, attempt in attempts])
    for operation, attempt in attempts:
        made = _described(operation, attempt, cached[_payment_read(attempt).key])
        if ask and reads < _MAX_READS and time.monotonic() < until and _may_have_changed(made):
            made, reads = _described(operation, attempt, _refreshed(attempt)), reads + 1
        found.append(made)
    return found


def _may_have_changed(made: CreatedPayment) -> bool:
    is_fresh = made.was_refreshed and timezone.now() - made.reported_at < _FRESH_FOR
    return made.is_watched and not is_fresh


PER_PAGE = 20


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def payments(request: StaffRequest) -> HttpResponse:
    """The page of the kind, with each payment as last reported.

    htmx refreshes them, and so does `?read=1` without JavaScript.
    """
    return render_list(request, "operations/kind.html", _listed(request, ask="read" in request.GET))


@does_not_extend_session
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def payments_refresh(request: StaffRequest) -> HttpResponse:
    """The rows alone, with those that may have changed read from the provider."""
    return render(request, "operations/_payments.html", _listed(request, ask=True))


@does_not_extend_session
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def payment_refresh(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The payment that an operation created, as the provider reports it now; 404 if it created none."""
    made = created_payment(get_object_or_404(payment_operations(request.user), pk=pk), ask=True)
    if made is None:
        raise Http404("This operation created no payment")
    context = {
        "operation": made.operation,
        "payment": made,
        "can_be_asked": can_read_payments(),
        "fresh": True,
    }
    return render(request, "operations/_payment.html", context)


def _listed(request: StaffRequest, *, ask: bool) -> dict[str, Any]:
    visible = _with_creating_attempt(visible_operations(request.user))
    context = kind_context(request, KINDS[PaymentKind.name], visible, size=PER_PAGE)
    found = context["page"].rows
    created = {one.operation.pk: one for one in created_payments(found, ask=ask)}
    return {
        **context,
        "rows_template": "operations/_payments.html",
        "payments": [(operation, created.get(operation.pk)) for operation in found],
        "has_created": bool(created),
        "can_be_asked": can_read_payments(),
        "fresh": ask,
    }
