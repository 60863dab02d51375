"""The provider in the simulation: a ledger, a clock of its own, and everything that can go wrong on the way
to it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from typing import Any
from uuid import UUID

from tests.payments_gateway.vectors.make_vectors import delivery, signed
from tests.simulation.in_memory_http import InMemoryLine, RawAnswer, ReceivedCall, answer
from tests.simulation.request_outcomes import COURSES, FULFILLED, ProviderReply, RequestOutcome, Settlement

USERNAME = "countersign-demo"
OPENING = {"NGN": Decimal(900), "USD": Decimal(600), "USDT": Decimal(500)}

# For each call that moves money: the type of its record, and the fields of its body with balance and destination.
_MOVES = {
    "/v2/balance/withdraw": ("withdrawal", "currency", "accountNumber"),
    "/v2/balance/transfer": ("transfer", "currency", "receiverUsername"),
    "/v2/balance/convert": ("conversion", "fromCurrency", "toCurrency"),
    "/v2/wallet/transfer": ("sent", "currency", "address"),
}

_TOLD_WRONGLY: dict[str, dict[str, Any]] = {
    "stale": {"status": "processing"},
    "wrong": {"status": "failed"},
    "of nothing": {"transactionId": "nothing we know"},
}


@dataclass
class SimulatedTransaction:
    """One line of the ledger. `caused_by` is the operation whose request it was, which the product cannot
    see.
    """

    transaction_id: str
    type: str
    currency: str
    amount: Decimal
    destination: str
    created_at: datetime
    shown_from: datetime
    previous_balance: Decimal
    ends: Settlement = FULFILLED
    caused_by: UUID | None = None
    is_debit: bool = True
    from_currency: str = ""

    def status(self, now: datetime) -> str:
        return self.ends.status if now >= self.created_at + self.ends.after else "processing"

    def took(self, now: datetime) -> bool:
        """Whether the money is debited, as far as is known at this time."""
        return self.is_debit and self.status(now) != "failed"


@dataclass
class SimulatedProvider:
    """Balances and transactions, and a plan for the next request that moves money.

    `true_time` is the time by which everything happens. The provider's clock may be off by `clock_is_off`,
    and its Date header by `date_is_off` more. `on_request` is called when a request arrives that moves money,
    and `on_code` with its one-time code.
    """

    true_time: Callable[[], datetime]
    wait: Callable[[timedelta], None]
    sender: Callable[[], UUID | None]
    on_request: Callable[[], None]
    on_code: Callable[[str], None]
    clock_is_off: timedelta = timedelta()
    date_is_off: timedelta = timedelta()
    records_on_a_page: int = 100
    course: str = "named"
    settlement: Settlement = FULFILLED
    lag: timedelta = timedelta()
    unreadable_calls: int = 0
    busy_pages: int = 0
    names_receivers: bool = True
    ledger: list[SimulatedTransaction] = field(default_factory=list)
    late: list[tuple[datetime, ReceivedCall, UUID | None, Settlement]] = field(default_factory=list)
    delivered: list[bytes] = field(default_factory=list)

    def now(self) -> datetime:
        return self.true_time() + self.clock_is_off

    def connect(self) -> InMemoryLine:
        """A connection. A sender of money has a connection of its own, so that it alone fails."""
        if self.sender() is not None and COURSES[self.course].reply is ProviderReply.UNREACHABLE:
            self.course = "named"
            raise ConnectionRefusedError
        return InMemoryLine(self.serve)

    def serve(self, call: ReceivedCall) -> RawAnswer:
        """Handle the request as usual, or as planned."""
        self.catch_up()
        if call.method == "POST":
            self.on_request()
            return self._move(call)
        if self.unreadable_calls:
            self.unreadable_calls -= 1
            return self._answer(500, {"success": False, "message": "Something went wrong"})
        data = self._page(call.query) if call.path == "/v2/transaction" else self._balances()
        return self._answer(200, {"success": True, "message": "ok", "data": data})

    def catch_up(self) -> None:
        """Execute requests that were accepted earlier with a delay."""
        due = [order for order in self.late if order[0] <= self.now()]
        self.late = [order for order in self.late if order[0] > self.now()]
        for moment, call, sender, settlement in sorted(due, key=lambda order: order[0]):
            self._execute(call, sender, settlement, moment)

    def will(self, course: str, settlement: Settlement = FULFILLED) -> None:
        """Plan the outcome of the next request that moves money, and of its transaction."""
        self.course, self.settlement = course, settlement

    def deposit(self, currency: str) -> None:
        self.add(type="deposit", currency=currency, amount=Decimal(100), destination=USERNAME, is_debit=False)

    def add(
        self, *, created_at: datetime | None = None, is_shown_at_once: bool = False, **members: Any
    ) -> SimulatedTransaction:
        """Another line of the ledger, listed once the list has caught up."""
        at = created_at or self.now()
        made = SimulatedTransaction(
            transaction_id=f"T{len(self.ledger)}",
            created_at=at,
            shown_from=at if is_shown_at_once else at + self.lag,
            previous_balance=self.balance(members["currency"]),
            **members,
        )
        self.ledger.append(made)
        return made

    def delivery(self, number: int, accuracy: str) -> bytes:
        """The signed body of a webhook about a transaction: pending ones first, newest first.

        `accuracy` says how accurate it is (`webhook_checks.TOLD`).
        """
        if accuracy == "again" and self.delivered:
            return self.delivered[-1]
        known = sorted(self.ledger, key=lambda each: (bool(each.ends.after), each.created_at), reverse=True)
        about = self._line(known[number % len(known)]) if known else {}
        about |= _TOLD_WRONGLY.get(accuracy, {})
        data = json.dumps(about).encode()
        self.delivered.append(delivery(data, signed(data, "stranger") if accuracy == "of nobody's" else None))
        return self.delivered[-1]

    def shown(self) -> list[SimulatedTransaction]:
        """What the list contains now, newest first."""
        now = self.now()
        known = [record for record in self.ledger if record.shown_from <= now]
        return sorted(known, key=lambda record: record.created_at)[::-1]

    def balance(self, currency: str) -> Decimal:
        now = self.now()
        moved = (
            -record.amount if record.is_debit else record.amount
            for record in self.ledger
            if record.currency == currency and (record.took(now) or not record.is_debit)
        )
        return OPENING[currency] + sum(moved, Decimal())

    def _move(self, call: ReceivedCall) -> RawAnswer:
        """Handle the one request of an attempt as planned; the plan is for this request only."""
        course, self.course = COURSES[self.course], "named"
        sender, settlement, made = self.sender(), self.settlement, None
        if code := call.body.get("token"):
            self.on_code(code)
        if course.executed_after == timedelta():
            made = self._execute(call, sender, settlement, self.now())
            if made is None and course.reply in {ProviderReply.NAMED, ProviderReply.UNNAMED}:
                return self._answer(400, {"success": False, "message": "Insufficient balance"})
        elif course.executed_after is not None:
            self.late.append((self.now() + course.executed_after, call, sender, settlement))
        self.wait(course.takes)
        return self._reply(course, call, made)

    def _execute(
        self, call: ReceivedCall, sender: UUID | None, settlement: Settlement, at: datetime
    ) -> SimulatedTransaction | None:
        """Debit the balance; None if it is too low."""
        type_, currency, destination = _MOVES[call.path]
        amount = Decimal(str(call.body["amount"]))
        if self.balance(call.body[currency]) < amount:
            return None
        made = self.add(
            created_at=at,
            type=type_,
            currency=call.body[currency],
            amount=amount,
            destination=call.body[destination],
            ends=settlement,
            caused_by=sender,
        )
        if type_ == "conversion":  # the incoming amount is a record of its own, at a rate of one
            self.add(
                created_at=at,
                type=type_,
                currency=made.destination,
                amount=amount,
                destination=USERNAME,
                is_debit=False,
                from_currency=made.currency,
            )
        return made

    def _reply(
        self, course: RequestOutcome, call: ReceivedCall, made: SimulatedTransaction | None
    ) -> RawAnswer:
        detail: dict[str, Any] = {"status": made.status(self.now()) if made else "processing"}
        if made and course.reply is not ProviderReply.UNNAMED:
            detail["transactionId"] = made.transaction_id
        words = course.words.format(token=call.body.get("token"))
        whole = {"success": course.status == 200, "message": words, "data": {"transferDetail": detail}}
        match course.reply:
            case ProviderReply.RESET:
                return RawAnswer(b"", then=ConnectionResetError)
            case ProviderReply.SILENCE:
                return RawAnswer(b"", then=TimeoutError)
            case ProviderReply.TRUNCATED:
                return RawAnswer(self._answer(200, whole).sent[:-20])
            case ProviderReply.HTML:
                return RawAnswer(answer(200, self._date(), "<html>The service is very busy</html>"))
        return self._answer(course.status, whole)

    def _page(self, query: dict[str, str]) -> dict[str, Any]:
        currency = query.get("currency")
        if self.busy_pages:
            self.busy_pages -= 1
            self.deposit(currency or "USDT")
        known = [record for record in self.shown() if currency in {None, record.currency}]
        size, page = min(int(query["limit"]), self.records_on_a_page), int(query["page"])
        return {
            "data": [self._line(record) for record in known[(page - 1) * size : page * size]],
            "total": len(known),
            "perPage": size,
            "page": page,
            "pages": -(-len(known) // size),
        }

    def _line(self, record: SimulatedTransaction) -> dict[str, Any]:
        names_it = self.names_receivers and record.type == "transfer"
        return {
            "transactionId": record.transaction_id,
            "type": record.type,
            "currency": record.currency,
            "amount": str(record.amount),
            "status": record.status(self.now()).replace("fulfilled", "fullfiled"),
            "fee": "0",
            "prevBalance": str(record.previous_balance),
            "sender": USERNAME,
            "username": record.destination if names_it else "",
            "fromCurrency": record.from_currency or record.currency,
            "createdAt": record.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }

    def _balances(self) -> dict[str, Any]:
        counts = {"totalRecieved": 0, "totalSent": 0, "txnCount": len(self.ledger)}
        amounts = {currency: str(self.balance(currency)) for currency in OPENING}
        return {
            "balances": [
                {"toCurrency": currency, "amount": amount, "formattedAmount": amount, **counts}
                for currency, amount in amounts.items()
            ]
        }

    def _answer(self, status: int, members: dict[str, Any]) -> RawAnswer:
        return RawAnswer(answer(status, self._date(), json.dumps(members)))

    def _date(self) -> str:
        return format_datetime(self.now() + self.date_is_off, usegmt=True)
