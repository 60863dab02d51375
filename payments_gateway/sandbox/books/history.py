"""Generate a plausible year of a food importer in Lagos, as movements. Pure: same arguments, same year.

Customers pay in all day, suppliers are paid in office hours, salaries on the last working day of a month.
Dollars are bought when the naira balance is high, and USDT is sent abroad and received. Weekends and nights
are quiet. Amounts keep every balance positive and near its target.
"""

import calendar
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import pairwise

from payments_gateway import BANKS
from payments_gateway.sandbox import API_USER, BUSINESS_NAME
from payments_gateway.sandbox.books.counterparties import ABROAD, account_holder, firm_name, person_name
from payments_gateway.sandbox.books.movements import (
    CONVERSION,
    DEPOSIT,
    FEE_OF_WITHDRAWAL,
    INTERNAL_TRANSFER,
    SENT,
    TRANSFER,
    WITHDRAWAL,
    Movement,
    reversal_of,
)
from payments_gateway.sandbox.clock import LAGOS

_DAYS_OF_HISTORY = 365
_WEEKDAY_WEIGHTS = (1.0, 1.05, 1.0, 1.0, 1.15, 0.4, 0.15)
_PAYDAY_WEIGHT = 2.6
_HOUR_WEIGHTS = (0.3, 0.1, 0.1, 0.1, 0.1, 0.3, 1, 3, 7, 10, 11, 11, 9, 8, 9, 10, 10, 8, 5, 3, 2, 1.5, 1, 0.6)


def business_times(rng: random.Random, count: int, end: datetime) -> list[datetime]:
    """`count` times in the year before `end`, oldest first."""
    last_day = end.astimezone(LAGOS).date()
    days = [last_day - timedelta(days=days_back) for days_back in range(_DAYS_OF_HISTORY, 0, -1)]
    selected_days = rng.choices(days, weights=[_day_weight(day) for day in days], k=count)
    hours = rng.choices(range(24), weights=_HOUR_WEIGHTS, k=count)
    return sorted(_time_on(rng, day, hour) for day, hour in zip(selected_days, hours, strict=True))


def is_payday(day: date) -> bool:
    """Whether it is the last working day of its month."""
    last = day.replace(day=calendar.monthrange(day.year, day.month)[1])
    while last.weekday() >= 5:
        last -= timedelta(days=1)
    return day == last


def _day_weight(day: date) -> float:
    return _PAYDAY_WEIGHT if is_payday(day) else _WEEKDAY_WEIGHTS[day.weekday()]


def _time_on(rng: random.Random, day: date, hour: int) -> datetime:
    thousandths = rng.randrange(3_600_000)
    return datetime(day.year, day.month, day.day, hour, tzinfo=LAGOS) + timedelta(milliseconds=thousandths)


_TARGET = {"NGN": 28_000_000_00, "USD": 52_000_00, "USDT": 19_000_000000}
_ROUNDING = {"NGN": (500_00, 50_00, 1_00), "USD": (50_00, 5_00, 1), "USDT": (50_000000, 500000, 1)}
_MEDIAN = {
    (DEPOSIT, "NGN"): 95_000_00,
    (DEPOSIT, "USD"): 1_900_00,
    (DEPOSIT, "USDT"): 640_000000,
    (WITHDRAWAL, "NGN"): 140_000_00,
    (WITHDRAWAL, "USD"): 1_400_00,
    (SENT, "USDT"): 760_000000,
    (TRANSFER, "NGN"): 60_000_00,
    (TRANSFER, "USD"): 300_00,
    (INTERNAL_TRANSFER, "NGN"): 45_000_00,
    (INTERNAL_TRANSFER, "USD"): 250_00,
    (CONVERSION, "NGN"): 1_600_000_00,
}
_ORDINARY_MIX = {
    (DEPOSIT, "NGN"): 40,
    (WITHDRAWAL, "NGN"): 27,
    (DEPOSIT, "USDT"): 7,
    (SENT, "USDT"): 6,
    (INTERNAL_TRANSFER, "NGN"): 6,
    (TRANSFER, "NGN"): 5,
    (DEPOSIT, "USD"): 3,
    (WITHDRAWAL, "USD"): 4,
    (CONVERSION, "NGN"): 1,
    (TRANSFER, "USD"): 1,
    (INTERNAL_TRANSFER, "USD"): 1,
}
_PAYDAY_MIX = {(WITHDRAWAL, "NGN"): 78, (DEPOSIT, "NGN"): 18, (DEPOSIT, "USDT"): 2, (SENT, "USDT"): 2}
_SALARY = 210_000_00
_FEES = {(SENT, "USDT"): 1_000000} | {
    (WITHDRAWAL, currency): fee for currency, fee in FEE_OF_WITHDRAWAL.items()
}
_INCOMING = (DEPOSIT, INTERNAL_TRANSFER)
_FAILURES = 0.012
_MAX_SHARE_OF_BALANCE = 4  # one movement takes at most a quarter of a balance


@dataclass(frozen=True, slots=True)
class Payee:
    """A bank account that the merchant pays."""

    account_number: str
    bank_code: str
    name: str


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One record of the history. `payee` is set for withdrawals; `settled_at` is the time it became final."""

    transaction_id: str
    movement: Movement
    at: datetime
    settled_at: datetime
    payee: Payee | None = None
    failed: bool = False


def history(seed: int, count: int, end: datetime) -> Iterator[HistoryEvent]:
    """Exactly `count` events of the year before `end`, oldest first; no balance ever becomes negative."""
    return _HistoryGenerator(random.Random(seed), count).events(end)  # noqa: S311 - must be repeatable, and hides no secret


class _HistoryGenerator:
    """The balances, the people and the pending events while a year is generated."""

    def __init__(self, rng: random.Random, count: int) -> None:
        self._rng = rng
        self._remaining_records = count
        self._balances = dict.fromkeys(_TARGET, 0)
        self._openings = list(_TARGET)
        self._next: HistoryEvent | None = None
        self._rate = 1_540
        self._suppliers = [self._payee() for _ in range(60)]
        self._staff = [self._payee() for _ in range(45)]
        self._customers = [self._customer() for _ in range(220)]
        self._users = [person_name(rng.randbytes(6)).lower().replace(" ", ".") for _ in range(40)]

    def events(self, end: datetime) -> Iterator[HistoryEvent]:
        """Yield the events, one for each business time."""
        for at, next_at in pairwise([*business_times(self._rng, self._remaining_records, end), end]):
            self._remaining_records -= 1
            event = self._follow_up() or self._opening(at) or self._business_event(at, next_at)
            self._balances[event.movement.currency] += event.movement.effect
            yield event

    def _follow_up(self) -> HistoryEvent | None:
        """The event caused by an earlier one: a reversal, or the other side of a conversion."""
        event, self._next = self._next, None
        return event

    def _opening(self, at: datetime) -> HistoryEvent | None:
        if not self._openings:
            return None
        currency = self._openings.pop(0)
        opening = Movement(DEPOSIT, currency, _TARGET[currency], BUSINESS_NAME, API_USER, incoming=True)
        return self._event(opening, at)

    def _business_event(self, at: datetime, next_at: datetime) -> HistoryEvent:
        kind, currency = self._choice(at)
        amount = self._amount(kind, currency, at)
        if kind == CONVERSION:
            return self._conversion(amount // self._rate, at)
        if kind == WITHDRAWAL:
            return self._withdrawal(currency, amount, at, next_at)
        sender, username = self._parties(kind, currency)
        fee = _FEES.get((kind, currency), 0)
        movement = Movement(kind, currency, amount, sender, username, incoming=kind in _INCOMING, fee=fee)
        return self._event(movement, at)

    def _choice(self, at: datetime) -> tuple[str, str]:
        weights = _PAYDAY_MIX if is_payday(at.astimezone(LAGOS).date()) else _ORDINARY_MIX
        kind, currency = self._rng.choices(list(weights), weights=list(weights.values()))[0]
        is_scarce = self._balances[currency] * 5 < _TARGET[currency]
        is_last_record = kind == CONVERSION and not self._remaining_records
        return (
            (DEPOSIT, currency)
            if is_last_record or (is_scarce and kind not in _INCOMING)
            else (kind, currency)
        )

    def _amount(self, kind: str, currency: str, at: datetime) -> int:
        """A rounded amount, smaller if it would move the balance further from its target."""
        is_salary = kind == WITHDRAWAL and currency == "NGN" and is_payday(at.astimezone(LAGOS).date())
        median, spread = (_SALARY, 0.35) if is_salary else (_MEDIAN[kind, currency], 0.8)
        share_of_target = self._balances[currency] / _TARGET[currency]
        factor = min(max(2 - share_of_target if kind in _INCOMING else share_of_target, 0.25), 1.9)
        units = int(median * factor * self._rng.lognormvariate(0, spread))
        if kind not in _INCOMING:
            units = min(units, self._balances[currency] // _MAX_SHARE_OF_BALANCE)
        rounding = self._rng.choices(_ROUNDING[currency], weights=(70, 25, 5))[0]
        return max(units // rounding * rounding, rounding, _ROUNDING[currency][1])

    def _conversion(self, dollars: int, at: datetime) -> HistoryEvent:
        """The naira sold; the dollars received are the next record, at the same time."""
        self._rate = min(max(self._rate + self._rng.randint(-9, 9), 1_450), 1_640)
        naira = dollars * self._rate
        received = Movement(CONVERSION, "USD", dollars, API_USER, API_USER, True, 0, "NGN", naira)
        self._next = self._event(received, at)
        return self._event(Movement(CONVERSION, "NGN", naira, API_USER, API_USER), at)

    def _withdrawal(self, currency: str, amount: int, at: datetime, next_at: datetime) -> HistoryEvent:
        people = (
            self._staff if is_payday(at.astimezone(LAGOS).date()) and currency == "NGN" else self._suppliers
        )
        payee = self._rng.choice(people)
        movement = Movement(
            WITHDRAWAL, currency, amount, API_USER, payee.name, fee=_FEES[WITHDRAWAL, currency]
        )
        failed = self._remaining_records > 0 and self._rng.random() < _FAILURES
        settled_at = at + timedelta(seconds=self._rng.randint(8, 95))
        if failed:
            settled_at = min(settled_at + timedelta(minutes=4), next_at)
        event = self._event(movement, at, settled_at, payee, failed)
        if failed:
            self._next = self._event(
                reversal_of(event.transaction_id, currency, -movement.effect, to=API_USER), settled_at
            )
        return event

    def _parties(self, kind: str, currency: str) -> tuple[str, str]:
        if kind == DEPOSIT:
            return self._rng.choice(self._customers if currency == "NGN" else ABROAD), API_USER
        if kind == INTERNAL_TRANSFER:
            return self._rng.choice(self._users), API_USER
        return API_USER, self._rng.choice(ABROAD if kind == SENT else self._users)

    def _event(
        self,
        movement: Movement,
        at: datetime,
        settled_at: datetime | None = None,
        payee: Payee | None = None,
        failed: bool = False,
    ) -> HistoryEvent:
        transaction_id = f"{int(at.timestamp()):08x}{self._rng.getrandbits(64):016x}"
        return HistoryEvent(transaction_id, movement, at, settled_at or at, payee, failed)

    def _payee(self) -> Payee:
        while True:
            account_number = f"{self._rng.randrange(10**9):010d}"
            bank_code = self._rng.choice(list(BANKS))
            name = account_holder(account_number, bank_code)
            if name is not None and not account_number.endswith("99"):
                return Payee(account_number, bank_code, name)

    def _customer(self) -> str:
        digest = self._rng.randbytes(6)
        return firm_name(digest) if digest[0] % 3 == 0 else person_name(digest)
