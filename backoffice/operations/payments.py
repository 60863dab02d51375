"""Payments that were created here, with what the service told of each last. Nothing is decided on their state."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Prefetch, QuerySet
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.display import format_amount
from backoffice.ledger import payments as ledger
from backoffice.ledger.told import Told
from backoffice.operations.kinds.payment import PaymentKind, kept
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.selectors import visible_operations
from backoffice.operations.states import Outcome, Status
from payments_gateway import Payment

_FRESH = timedelta(seconds=30)
_WATCHED_AFTER_EXPIRY = timedelta(days=1)
_ASKED_AT_ONCE, _PATIENCE_SECONDS = 10, 5.0


@dataclass(frozen=True)
class MadePayment:
    """One payment. `told` is what the service said of it, as plain texts by name, at the moment `at`.

    `is_reread`: it was asked again after the creation. `problem`: why it tells nothing newer, if it was asked.
    """

    operation: Operation
    told: dict[str, str]
    at: datetime
    is_reread: bool
    problem: str = ""

    @property
    def expires_at(self) -> datetime | None:
        """Until when the address is watched, where the service told it."""
        text = self.told.get("expires_at", "")
        return datetime.fromisoformat(text) if text else None

    @property
    def is_watched(self) -> bool:
        """Whether something may still change: until a day after it expired."""
        until = (self.expires_at or self.at) + _WATCHED_AFTER_EXPIRY
        return timezone.now() < until

    @property
    def incoming(self) -> str:
        """`USDT 100.00`, or empty if the service told no amount; so are the other three."""
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
        currency = self.told.get(currency_name) or str(self.operation.payload[currency_name])
        return f"{currency} {format_amount(Decimal(self.told[name]), currency)}" if name in self.told else ""


def payments_made(user: User) -> QuerySet[Operation]:
    """Operations that created a payment, with the attempt whose answer tells of it; two queries."""
    succeeded = Attempt.objects.filter(outcome=Outcome.SUCCEEDED)
    found = visible_operations(user).filter(kind=PaymentKind.name, status=Status.SUCCEEDED)
    return found.prefetch_related(Prefetch("attempts", succeeded))


def made_payment(operation: Operation, *, ask: bool = False) -> MadePayment | None:
    """The payment that this operation created, as last told; None if it created none.

    With `ask` the service is asked first, if it can be. Never raises GatewayError.
    """
    if operation.kind != PaymentKind.name:
        return None
    attempt = next((one for one in operation.attempts.all() if one.outcome == Outcome.SUCCEEDED), None)
    if attempt is None:
        return None
    created = attempt.result or {}
    told = _told(created.get("id", ""), ask=ask)
    newer = {} if told.value is None else kept(told.value)
    at = told.at or attempt.closed_at or attempt.started_at
    return MadePayment(operation, created | newer, at, is_reread=bool(newer), problem=told.problem)


def made_payments(operations: Sequence[Operation], *, ask: bool) -> list[MadePayment]:
    """The payments of a page. With `ask`, up to ten that may have changed are asked for, for five seconds in all."""
    until, asked, found = time.monotonic() + _PATIENCE_SECONDS, 0, []
    for operation in operations:
        made = made_payment(operation)
        if ask and asked < _ASKED_AT_ONCE and time.monotonic() < until and made and _may_have_changed(made):
            made, asked = made_payment(operation, ask=True), asked + 1
        if made is not None:
            found.append(made)
    return found


def _may_have_changed(made: MadePayment) -> bool:
    is_fresh = made.is_reread and timezone.now() - made.at < _FRESH
    return made.is_watched and not is_fresh


def _told(payment_id: str, *, ask: bool) -> Told[Payment]:
    if not payment_id or not ledger.can_be_asked():
        return Told()
    return ledger.payment_now(payment_id) if ask else ledger.known_payment(payment_id)
