"""Unknown outcomes: each open case, what we sent beside what the provider shows. Changes nothing."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe
from pydantic import BaseModel, TypeAdapter

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.sessions import StaffRequest
from backoffice.core import clock
from backoffice.core.cached_reads import CachedRead, CachedValue, cached_values
from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger import balances, provider_list
from backoffice.operations import permissions, policy, selectors
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.base import ChangeKind, FieldMatch, MoneyKind, attempt_match_fields
from backoffice.operations.kinds.registry import AnyKind, money_kinds, read_content
from backoffice.operations.kinds.resolution.case import may_be_resolved
from backoffice.operations.kinds.resolution.kind import ResolutionKind
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import NEEDS_ATTENTION, Status
from payments_gateway import TransactionRecord

LONG_PROCESSING = timedelta(hours=1)  # how long an operation may be processing before it is listed here
MAX_CANDIDATES_SHOWN = 4  # transactions beside each case
MAX_MISMATCHES = 2  # in this many fields a transaction may differ and still be shown
OLDEST_FIRST = ("started_at", "pk")


class CaseEvidence(BaseModel):
    """What the provider reported about one case. `confirmed_done` is for kinds that its list does not show."""

    records: list[TransactionRecord] = []
    is_whole: bool = True
    balance: Decimal | None = None
    confirmed_done: bool | None = None


@dataclass(frozen=True)
class CandidateTransaction:
    """A possible transaction, field by field; `claimed_by` is the operation that has claimed it."""

    record: TransactionRecord
    match_fields: list[FieldMatch]
    claimed_by: Operation | None = None

    @property
    def mismatches(self) -> int:
        return sum(field_match.matches is False for field_match in self.match_fields)


@dataclass(frozen=True)
class UnknownOutcome:
    """One attempt with an open outcome, and what is known of it."""

    attempt: Attempt
    evidence: CachedValue[CaseEvidence]
    in_list: bool
    candidates: list[CandidateTransaction] = field(default_factory=list)
    pending_resolutions: list[Operation] = field(default_factory=list)
    blocked_count: int = 0
    is_refreshed: bool = False
    now: datetime = field(kw_only=True)

    @property
    def operation(self) -> Operation:
        return self.attempt.operation

    @property
    def blocked_balance(self) -> str | None:
        """The balance where this attempt blocks other operations: all of them, or those of `blocked_amount`."""
        return _blocked_balance(self.attempt)

    @property
    def blocked_amount(self) -> Decimal | None:
        """The amount that this attempt blocks; None if it blocks all of them."""
        return _blocked_amount(self.attempt)

    @property
    def is_unobservable(self) -> bool:
        """Whether no read of the provider can show the outcome."""
        return (
            not self.in_list
            and self.evidence.value is not None
            and self.evidence.value.confirmed_done is None
        )

    @property
    def may_be_resolved(self) -> bool:
        """Whether people may resolve it."""
        return may_be_resolved(self.operation, self.attempt)

    @property
    def may_be_not_executed(self) -> bool:
        """Whether it may be resolved as not executed by now. The form checks again."""
        return self.now >= self.attempt.execution_deadline


def unknown_outcomes(operations: QuerySet[Operation]) -> QuerySet[Attempt]:
    """The open attempts of these operations that people have to examine."""
    lasts_long = Q(operation__status=Status.PROCESSING, started_at__lt=Now() - LONG_PROCESSING)
    return Attempt.objects.filter(
        Q(operation__status__in=NEEDS_ATTENTION) | lasts_long,
        operation__in=operations,
        closed_at__isnull=True,
    ).select_related("operation__preparer", "released_by")


def cached_cases(attempts: Iterable[Attempt]) -> list[UnknownOutcome]:
    """The cases with what the provider last reported. Does not read the provider.

    At most four queries, and the database's clock.
    """
    attempts = list(attempts)
    cached = cached_values([_cached_read(attempt) for attempt in attempts])
    return _cases([(attempt, cached[_cached_read(attempt).key]) for attempt in attempts], is_refreshed=False)


def refreshed_case(attempt: Attempt) -> UnknownOutcome:
    """The case with what the provider reports now, or last reported if it cannot be read."""
    return _cases([(attempt, _cached_read(attempt).refresh(_evidence_reader(attempt)))], is_refreshed=True)[0]


def _cached_read(attempt: Attempt) -> CachedRead[CaseEvidence]:
    return CachedRead(f"evidence:{attempt.pk}", TypeAdapter(CaseEvidence))


def _evidence_reader(attempt: Attempt) -> Callable[[], CaseEvidence]:
    operation = attempt.operation
    kind, payload = _content(operation)
    if isinstance(kind, ChangeKind):
        return lambda: CaseEvidence(confirmed_done=kind.is_done(gateway(deadline=PAGE_TIMEOUT), payload))

    def read_evidence() -> CaseEvidence:
        listed = provider_list.transactions_since(operation.currency, attempt.search_from)
        balance = balances.current_balance(operation.currency) if operation.currency else None
        near = [candidate.record for candidate in _nearest_candidates(attempt, listed.records)]
        return CaseEvidence(records=near, is_whole=listed.is_complete, balance=balance)

    return read_evidence


def _cases(
    evidence: list[tuple[Attempt, CachedValue[CaseEvidence]]], *, is_refreshed: bool
) -> list[UnknownOutcome]:
    now = clock.now()
    owners = _owners([record for _, one in evidence if one.value for record in one.value.records])
    waiting = _pending_resolutions([attempt for attempt, _ in evidence])
    blocked = _blocked_counts([attempt for attempt, _ in evidence])
    return [
        UnknownOutcome(
            attempt,
            one,
            in_list=isinstance(_content(attempt.operation)[0], MoneyKind),
            candidates=_candidates(attempt, one.value.records if one.value else [], owners),
            pending_resolutions=[r for r in waiting if r.payload["operation"] == str(attempt.operation_id)],
            blocked_count=blocked.get(attempt.pk, 0),
            is_refreshed=is_refreshed,
            now=now,
        )
        for attempt, one in evidence
    ]


def _nearest_candidates(attempt: Attempt, records: list[TransactionRecord]) -> list[CandidateTransaction]:
    """The transactions with the fewest differing fields first; those with too many are left out."""
    kind, payload = _content(attempt.operation)
    if not isinstance(kind, MoneyKind):
        return []
    found = [
        CandidateTransaction(
            record, [*kind.match_fields(payload, record), *attempt_match_fields(attempt, record)]
        )
        for record in records
        if attempt.is_after_watermark(record.transaction_id)
    ]
    near = [candidate for candidate in found if candidate.mismatches <= MAX_MISMATCHES]
    return sorted(near, key=lambda candidate: candidate.mismatches)[:MAX_CANDIDATES_SHOWN]


def _candidates(
    attempt: Attempt, records: list[TransactionRecord], owners: dict[str, Operation]
) -> list[CandidateTransaction]:
    """The same with their owners; one that belongs to this operation counts as its own."""
    others = {pk: owner for pk, owner in owners.items() if owner != attempt.operation}
    return [
        replace(candidate, claimed_by=others.get(candidate.record.transaction_id))
        for candidate in _nearest_candidates(attempt, records)
    ]


def _owners(records: list[TransactionRecord]) -> dict[str, Operation]:
    """The operations that have claimed these transactions."""
    ids = {record.transaction_id for record in records}
    if not ids:
        return {}
    bound = Attempt.objects.filter(provider_transaction_id__in=ids).select_related("operation")
    return {attempt.provider_transaction_id or "": attempt.operation for attempt in bound}


def _pending_resolutions(attempts: list[Attempt]) -> list[Operation]:
    """Resolutions of these attempts that are waiting for approval."""
    about = [str(attempt.operation_id) for attempt in attempts]
    pending = Operation.objects.filter(kind=ResolutionKind.name, status=Status.PENDING)
    return list(pending.filter(payload__operation__in=about).select_related("preparer")) if about else []


def _blocked_balance(attempt: Attempt) -> str | None:
    return None if attempt.provider_transaction_id else attempt.balance


def _blocked_amount(attempt: Attempt) -> Decimal | None:
    return None if settings.STRICT_BALANCE_ORDER else attempt.amount


def _blocked_counts(attempts: list[Attempt]) -> dict[int, int]:
    """How many approved operations each of these attempts keeps waiting, if it blocks a balance. One query."""
    blocked = {}
    for attempt in attempts:
        balance, amount = _blocked_balance(attempt), _blocked_amount(attempt)
        if balance is not None:
            blocked[attempt.pk] = (
                Q(currency=balance) if amount is None else Q(currency=balance, amount=amount)
            )
    if not blocked:
        return {}
    counts = {f"of_{pk}": Count("pk", filter=condition) for pk, condition in blocked.items()}
    approved = Operation.objects.filter(
        reduce(or_, blocked.values()), status=Status.APPROVED, kind__in=money_kinds()
    )
    found = approved.aggregate(**counts)
    return {pk: found[f"of_{pk}"] for pk in blocked}


def _content(operation: Operation) -> tuple[AnyKind | None, Any]:
    try:
        return read_content(operation)
    except ContentUnreadableError:
        return None, None


CASES_ON_A_PAGE = 5


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def investigation(request: StaffRequest) -> HttpResponse:
    """Every operation whose outcome people have to examine, the oldest first, as last reported."""
    found = unknown_outcomes(selectors.visible_operations(request.user))
    page = keyset_page(found, order=OLDEST_FIRST, cursor=request.GET.get("cursor"), size=CASES_ON_A_PAGE)
    context = {"page": page, "cases": cached_cases(page.rows), **_right_to_resolve(request)}
    return render(request, "operations/investigation.html", context)


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def case(request: StaffRequest, pk: UUID) -> HttpResponse:
    """One case on its own page; `?read=1` reads the provider. A closed one redirects to its operation."""
    operation = get_object_or_404(selectors.visible_operations(request.user), pk=pk)
    attempt = unknown_outcomes(selectors.visible_operations(request.user)).filter(operation=operation).first()
    if attempt is None:
        text = gettext("{reference} has no unknown outcome. Status: {status}.")
        status = operation.get_status_display()
        messages.info(request, text.format(reference=operation.reference, status=status))
        return redirect(operation)
    cases = [refreshed_case(attempt)] if "read" in request.GET else cached_cases([attempt])
    context = {"cases": cases, "only": operation, **_right_to_resolve(request)}
    return render(request, "operations/investigation.html", context)


@does_not_extend_session
@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def evidence(request: StaffRequest, pk: UUID) -> HttpResponse:
    """What the provider shows of one case now, or last showed. 204 once the case is closed."""
    attempt = unknown_outcomes(selectors.visible_operations(request.user)).filter(operation=pk).first()
    if attempt is None:
        get_object_or_404(selectors.visible_operations(request.user), pk=pk)
        return HttpResponse(status=204)
    context = {"case": refreshed_case(attempt), **_right_to_resolve(request)}
    return render(request, "operations/_evidence.html", context)


def _right_to_resolve(request: StaffRequest) -> dict[str, object]:
    """Whether this user may prepare a resolution now, and why not if only a change with break-glass withholds it."""
    restriction = policy.restriction(request.user, permissions.RESOLVE)
    may_resolve = restriction is None and request.user.has_perm(permissions.RESOLVE)
    return {"may_resolve": may_resolve, "restriction": restriction}
