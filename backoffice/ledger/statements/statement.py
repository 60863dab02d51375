"""A statement: one currency over a period, from the opening to the closing balance, exact.

Both balances come from the records themselves, independently of the movements between them, so the movements
must lead from one to the other. If they do not, the breaks of the chain in the period show by how much and
where.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext

from django.db.models import Count, QuerySet

from backoffice.core.fields import EXACT
from backoffice.ledger.models import UNPLACEABLE, BalanceBreak, BalanceSnapshot, Facet, Mirror, Transaction
from backoffice.ledger.statements.chain_reader import (
    chain_link_of,
    last_link_before,
    links_after,
    links_around,
    listed_transactions,
)
from backoffice.ledger.statements.continuity import CappedCount, count_up_to
from backoffice.ledger.transactions.volumes import sums_between

MAX_COUNTED = 10_000
"""The most breaks that are added up, and the most unplaceable records that are counted."""
_A_DAY = timedelta(days=1)
# Allows for clock differences, and for balance changes during the read.
_CLOCK_TOLERANCE = timedelta(minutes=2)
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass
class MovementTotals:
    """The movements in one direction: their number, amounts and fees."""

    count: int = 0
    amount: Decimal = Decimal(0)
    fee: Decimal = Decimal(0)

    def add(self, count: int, amount: Decimal, fee: Decimal) -> None:
        self.count, self.amount, self.fee = self.count + count, self.amount + amount, self.fee + fee


@dataclass(frozen=True)
class ReportedBalance:
    """A balance that the provider reported at a time, compared with the records around it."""

    at: datetime
    amount: Decimal
    derived: Decimal

    @property
    def difference(self) -> Decimal:
        """The reported balance minus the balance by the records."""
        with localcontext(EXACT):
            return self.amount - self.derived


@dataclass(frozen=True)
class Statement:
    """One currency from `since` up to, but excluding, `until`; None is the start or end of the history.

    `opening` and `closing` are None if no record shows them. `is_first`: there is no record before the
    period, so its opening balance is that of its first record. Sums include everything that the provider
    lists, whatever its status. `unplaceable` counts records that cannot be placed in the chain (`chain`),
    `missing` counts those that left the list, which are not included. `unexplained` is the sum of all breaks; None if
    there are too many to add up.
    """

    currency: str
    opening: Decimal | None
    closing: Decimal | None
    is_first: bool
    received: MovementTotals
    sent: MovementTotals
    unknown: MovementTotals
    breaks: CappedCount
    unexplained: Decimal | None
    unplaceable: CappedCount
    missing: int
    reported: list[ReportedBalance] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of movements."""
        return self.received.count + self.sent.count + self.unknown.count

    @property
    def fees(self) -> Decimal:
        with localcontext(EXACT):
            return self.received.fee + self.sent.fee

    @property
    def expected(self) -> Decimal | None:
        """The closing balance by the movements: opening plus received, minus sent and fees."""
        if self.opening is None:
            return None
        with localcontext(EXACT):
            return self.opening + self.received.amount - self.sent.amount - self.fees

    @property
    def difference(self) -> Decimal | None:
        """The closing balance minus the expected one; None if either is unknown."""
        if self.expected is None or self.closing is None:
            return None
        with localcontext(EXACT):
            return self.closing - self.expected

    @property
    def adds_up(self) -> bool:
        """Whether the movements lead exactly from the opening to the closing balance."""
        return self.difference is not None and not self.difference

    @property
    def is_explained(self) -> bool:
        """Whether the breaks in the period account for the whole difference."""
        return self.difference == self.unexplained


def build_statements(
    currencies: Sequence[str], since: datetime | None, until: datetime | None
) -> list[Statement]:
    """Build the statement of each currency from day totals, partial days at both ends, and unplaceable records.

    Counts at most `MAX_COUNTED` breaks and unplaceable records of each. The cost grows with the days of the period,
    whose totals are added up (`volumes`), not with its transactions. All currencies share the queries, except for what
    is read up to a limit: the records at both ends, breaks and unplaceable records.
    """
    movements = _movements(currencies, since, until)
    missing = _missing(currencies, since, until)
    as_of = Mirror.objects.filter(loaded_at__isnull=False).values_list("as_of", flat=True).first()
    return [
        _build_statement(currency, since, until, movements, missing.get(currency, 0), as_of)
        for currency in currencies
    ]


def _build_statement(
    currency: str,
    since: datetime | None,
    until: datetime | None,
    movements: Mapping[tuple[str, str], MovementTotals],
    missing: int,
    as_of: datetime | None,
) -> Statement:
    before, first = (
        links_around(currency, since) if since else (None, next(links_after(currency, None), None))
    )
    last = last_link_before(currency, until or _END_OF_TIME)
    has_moved = first is not None and last is not None and first.at <= last.at
    opening = before.after if before else None
    if opening is None and first is not None and has_moved:
        opening = first.before
    breaks, unexplained = _break_sum(currency, since, until)
    return Statement(
        currency=currency,
        opening=opening,
        closing=last.after if has_moved and last is not None else opening,
        is_first=before is None,
        received=movements[currency, "in"],
        sent=movements[currency, "out"],
        unknown=movements[currency, ""],
        breaks=breaks,
        unexplained=unexplained,
        unplaceable=_unplaceable(currency, since, until),
        missing=missing,
        reported=_reported_at_ends(currency, since, until or _END_OF_TIME, as_of),
    )


def statement_transactions(
    currency: str, since: datetime | None, until: datetime | None
) -> QuerySet[Transaction]:
    """The records of a statement, ordered by time."""
    return listed_transactions(currency).filter(**_within("occurred_at", since, until))


def _movements(
    currencies: Sequence[str], since: datetime | None, until: datetime | None
) -> Mapping[tuple[str, str], MovementTotals]:
    """By currency and direction."""
    totals: dict[tuple[str, str], MovementTotals] = defaultdict(MovementTotals)
    facets = {facet.pk: facet for facet in Facet.objects.filter(currency__in=currencies)}
    with localcontext(EXACT):
        for facet_id, count, amount, fees in sums_between(list(facets), since, until):
            facet = facets[facet_id]
            totals[facet.currency, facet.direction].add(count, amount, fees)
    return totals


def _break_sum(
    currency: str, since: datetime | None, until: datetime | None
) -> tuple[CappedCount, Decimal | None]:
    """The number of breaks and their sum; None if there are too many to add up."""
    breaks = BalanceBreak.objects.filter(currency=currency, **_within("at", since, until)).order_by(
        "at", "id"
    )
    found = [balance_break.signed_difference for balance_break in breaks[: MAX_COUNTED + 1]]
    number = CappedCount.from_count(len(found), MAX_COUNTED)
    return number, None if number.is_more else _sum(found)


def _unplaceable(currency: str, since: datetime | None, until: datetime | None) -> CappedCount:
    return count_up_to(MAX_COUNTED, statement_transactions(currency, since, until).filter(UNPLACEABLE))


def _missing(currencies: Sequence[str], since: datetime | None, until: datetime | None) -> Mapping[str, int]:
    rows = Transaction.objects.filter(missing_since__isnull=False, currency__in=currencies).order_by()
    rows = rows.filter(**_within("occurred_at", since, until))
    return dict(rows.values_list("currency").annotate(number=Count("pk")))


def _reported_at_ends(
    currency: str, since: datetime | None, until: datetime, as_of: datetime | None
) -> list[ReportedBalance]:
    """The reported balances at both ends, except where the mirror, synced at `as_of`, may be incomplete."""
    if as_of is None:
        return []
    bounds = [since, until] if since else [until]
    return [
        reported
        for moment in bounds
        if (reported := _reported_before(currency, moment, as_of - _CLOCK_TOLERANCE))
    ]


def _reported_before(currency: str, moment: datetime, known: datetime) -> ReportedBalance | None:
    """The last balance stored before `moment` and `known`, if it is less than a day older than `moment`."""
    before = min(moment, known)
    snapshots = BalanceSnapshot.objects.filter(currency=currency, slot__lt=before, as_of__lt=before)
    snapshot = snapshots.order_by("-slot").first()
    if snapshot is None or (moment != _END_OF_TIME and snapshot.as_of < moment - _A_DAY):
        return None
    at, reported = snapshot.as_of, snapshot.amount
    last = last_link_before(currency, at)
    if last is None or last.after is None:
        return None
    nearby = listed_transactions(currency).filter(
        occurred_at__gte=at - _CLOCK_TOLERANCE, occurred_at__lt=at + _CLOCK_TOLERANCE
    )
    links = map(chain_link_of, nearby[:MAX_COUNTED])
    balances_nearby = {balance for link in links for balance in (link.before, link.after)}
    return ReportedBalance(at, reported, reported if reported in balances_nearby else last.after)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    with localcontext(EXACT):
        return sum(amounts, Decimal(0))


def _within(name: str, since: datetime | None, until: datetime | None) -> dict[str, datetime]:
    bounds = {f"{name}__gte": since, f"{name}__lt": until}
    return {lookup: moment for lookup, moment in bounds.items() if moment}
