"""Payments created here, as the provider last reported them. No decision depends on that."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.db.models import Prefetch, QuerySet, TextChoices
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe
from pydantic import TypeAdapter

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.cached_reads import CachedRead, CachedValue, cached_values
from backoffice.core.gateway import PAGE_PART_TIMEOUT, gateway, provider_profile
from backoffice.core.web.formatting import format_amount, local_time
from backoffice.operations import permissions
from backoffice.operations.kinds.payment import (
    RESULT_FIELDS,
    PaymentEvent,
    PaymentKind,
    payment_event,
    payment_result,
)
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.pages.operation_list import kind_context, render_list
from backoffice.operations.selectors import visible_operations
from backoffice.operations.states import Outcome, Status
from payments_gateway import Payment

_FRESH_FOR = timedelta(seconds=30)
_ADDRESS_WATCHED_AFTER_EXPIRY = timedelta(days=1)
_MAX_READS, _READS_DEADLINE = 10, 5.0
_FIELD_NAMES = {
    "id": _("Payment ID"),
    "reference": _("Reference"),
    "ramp_reference": _("Ramp reference"),
    "business_id": _("Business ID"),
    "state": _("Status"),
    "payment_type": _("Payout to"),
    "address": _("Deposit address"),
    "account": _("Payout account"),
    "incoming_currency": _("Pay-in currency"),
    "incoming_amount": _("Pay-in amount"),
    "confirmed_amount": _("Received, confirmed"),
    "unconfirmed_amount": _("Received, unconfirmed"),
    "outgoing_currency": _("Payout currency"),
    "outgoing_amount": _("Payout amount"),
    "rate": _("Rate"),
    "customer_email": _("Customer's email address"),
    "sender_username": _("Sender's username"),
    "thread_timestamp": _("Thread timestamp"),
    "expires_at": _("Expiry"),
    "created_at": _("Created"),
    "updated_at": _("Updated"),
}


def can_read_payments() -> bool:
    """Whether the provider profile has the capability `payment` (GET /payment/{paymentId}).

    It is not in the specification.
    """
    return "payment" in provider_profile().capabilities


def fetch_payment(payment_id: str) -> Payment:
    """The payment as the provider reports it now. Call only if `can_read_payments()`. Raises GatewayError."""
    return gateway(deadline=PAGE_PART_TIMEOUT).extras.payment(payment_id)


class ReportSource(TextChoices):
    """How a value of a payment was reported. The label has the time in braces."""

    CREATION = "creation", _("at creation, {time}")
    READ = "read", _("read at {time}")
    WEBHOOK = "webhook", _("webhook of {time}")


@dataclass(frozen=True)
class PaymentReport:
    """What the provider reported of a payment at one time, as text by name."""

    source: ReportSource
    at: datetime
    values: Mapping[str, str]

    @property
    def origin(self) -> str:
        """The source and the time in words."""
        return str(self.source.label).format(time=local_time(self.at))


@dataclass(frozen=True)
class CreatedPayment:
    """One payment, and what was reported of it, the newest last. `problem`: why a read failed."""

    operation: Operation
    reports: Sequence[PaymentReport]
    problem: str = ""

    @property
    def reported(self) -> dict[str, str]:
        """Each value as last reported, by name."""
        return {name: text for report in self.reports for name, text in report.values.items()}

    @property
    def reported_at(self) -> datetime:
        """When the newest report was made."""
        return self.reports[-1].at

    @property
    def state_report(self) -> PaymentReport:
        """The report that has the status as last reported, and next to it the one that has the rate."""
        return self._report_of("state")

    @property
    def rate_report(self) -> PaymentReport:
        return self._report_of("rate")

    @property
    def read(self) -> PaymentReport | None:
        """The last read since the creation, if there was one."""
        return next((report for report in self.reports if report.source is ReportSource.READ), None)

    @property
    def is_only_created(self) -> bool:
        """Whether nothing was reported since the creation."""
        return len(self.reports) == 1

    @property
    def contradicted_read(self) -> PaymentReport | None:
        """The last read, if the status shown is a webhook's and the read had another one."""
        is_other = self.read is not None and self.read.values.get("state") != self.reported.get("state")
        return self.read if is_other and self.state_report.source is ReportSource.WEBHOOK else None

    def _report_of(self, name: str) -> PaymentReport:
        """The newest report with this value; that of the creation if no report has it."""
        return next((report for report in reversed(self.reports) if name in report.values), self.reports[0])

    @property
    def expires_at(self) -> datetime | None:
        """When the deposit address expires, if the provider reported it."""
        text = self.reported.get("expires_at", "")
        return datetime.fromisoformat(text) if text else None

    @property
    def updated_at(self) -> datetime | None:
        """When the provider last changed the payment, if it reported that."""
        text = self.reported.get("updated_at", "")
        return datetime.fromisoformat(text) if text else None

    @property
    def rate(self) -> str:
        """`USDT 1 = NGN 1580.5`, or empty if no rate was reported."""
        if "rate" not in self.reported:
            return ""
        sold, bought = self._currency("incoming_currency"), self._currency("outgoing_currency")
        return f"{sold} 1 = {bought} {format_amount(Decimal(self.reported['rate']), '')}"

    @property
    def members(self) -> list[tuple[str, str, str, str]]:
        """Every reported value: its name in words, the provider's own name, the text, and its source."""
        reported = self.reported
        return [
            (
                str(_FIELD_NAMES[name]),
                Payment.model_fields[name].alias or name,
                reported[name],
                self._report_of(name).origin,
            )
            for name in RESULT_FIELDS
            if name in reported
        ]

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

    def _currency(self, name: str) -> str:
        return self.reported.get(name) or str(self.operation.payload[name])

    def _amount(self, name: str, currency_name: str) -> str:
        currency = self._currency(currency_name)
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
    read, event = _payment_read(attempt), payment_event(_reference(operation))
    cached = _cached([read, event])
    reported = _refreshed(attempt) if ask else cached[read.key]
    return _described(operation, attempt, reported, cached[event.key])


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


def _reference(operation: Operation) -> str:
    return str(operation.payload.get("reference", ""))


def _cached(reads: Sequence[CachedRead[Any]]) -> dict[str, CachedValue[Any]]:
    return cached_values(reads)


def _described(
    operation: Operation,
    attempt: Attempt,
    read: CachedValue[Payment],
    event: CachedValue[PaymentEvent],
) -> CreatedPayment:
    # Without a result, people resolved it long after it may have been created.
    at = attempt.closed_at if attempt.result and attempt.closed_at else attempt.started_at
    created = PaymentReport(ReportSource.CREATION, at, attempt.result or {})
    reports = [created]
    if read.value is not None and read.read_at is not None:
        reports.append(PaymentReport(ReportSource.READ, read.read_at, payment_result(read.value)))
    if event.value is not None:
        webhook = PaymentReport(ReportSource.WEBHOOK, event.value.received_at, event.value.values)
        _insert(webhook, reports, since=attempt.started_at)
    return CreatedPayment(operation, reports, problem=read.error)


def _insert(webhook: PaymentReport, reports: list[PaymentReport], *, since: datetime) -> None:
    """Insert it where its time is, unless it is older than the request: then it is about another payment.

    It may arrive late: what it reports is older than a report that has a later change of the payment.
    """
    if webhook.at < since:
        return
    changed = _changed_at(webhook)
    older = [
        report.at <= webhook.at and not (changed and (known := _changed_at(report)) and known > changed)
        for report in reports
    ]
    if older[0]:
        reports.insert(older.index(False) if False in older else len(reports), webhook)


def _changed_at(report: PaymentReport) -> datetime | None:
    """When the payment last changed at the provider, if the report has it."""
    text = report.values.get("updated_at", "")
    return datetime.fromisoformat(text) if text else None


def created_payments(operations: Sequence[Operation], *, ask: bool) -> list[CreatedPayment]:
    """The payments of a page. `ask` reads up to ten that may have changed, within five seconds in all."""
    until, reads, found = time.monotonic() + _READS_DEADLINE, 0, []
    attempts = [(one, attempt) for one in operations if (attempt := _creating_attempt(one))]
    events = {one.pk: payment_event(_reference(one)) for one, _attempt in attempts}
    cached = _cached([*(_payment_read(attempt) for _operation, attempt in attempts), *events.values()])
    for operation, attempt in attempts:
        event = cached[events[operation.pk].key]
        made = _described(operation, attempt, cached[_payment_read(attempt).key], event)
        if ask and reads < _MAX_READS and time.monotonic() < until and _may_have_changed(made):
            made, reads = _described(operation, attempt, _refreshed(attempt), event), reads + 1
        found.append(made)
    return found


def _may_have_changed(made: CreatedPayment) -> bool:
    is_fresh = made.read is not None and timezone.now() - made.read.at < _FRESH_FOR
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
