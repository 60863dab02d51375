"""A statement: one currency over a period, from the opening to the closing balance, exact.

Both balances come from the records themselves, independently of the movements between them, so the movements must
lead from one to the other. Where they do not, the breaks of the chain in the period say by how much and where.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext

from django.db.models import QuerySet

from backoffice.core.fields import SUM_CONTEXT
from backoffice.ledger.models import UNPLACEABLE, BalanceBreak, BalanceSnapshot, Facet, Mirror, Transaction
from backoffice.ledger.statements.chain import ChainLink
from backoffice.ledger.statements.chain_reader import (
    chain_link_of,
    landmark_before,
    last_link_before,
    links_after,
    listed_transactions,
)
from backoffice.ledger.statements.continuity import CappedCount, count_up_to
from backoffice.ledger.transactions.volumes import sums_between

MAX_COUNTED = 10_000
"""Breaks that are added up, and records of which nothing is told that are counted."""
_A_DAY = timedelta(days=1)
_CLOCK_TOLERANCE = timedelta(
    minutes=2
)  # so far the service's clock and ours may be apart, and a balance may change meanwhile
_END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass
class MovementTotals:
    """What moved in one direction: how many records, their amounts and their fees."""

    count: int = 0
    amount: Decimal = Decimal(0)
    fee: Decimal = Decimal(0)

    def add(self, count: int, amount: Decimal, fee: Decimal) -> None:
        """So many more."""
        self.count, self.amount, self.fee = self.count + count, self.amount + amount, self.fee + fee


@dataclass(frozen=True)
class ReportedBalance:
    """The balance that the service told at a moment, held against the records around it."""

    at: datetime
    amount: Decimal
    by_records: Decimal

    @property
    def difference(self) -> Decimal:
        """How much more the service told; nothing if they agree."""
        with localcontext(SUM_CONTEXT):
            return self.amount - self.by_records


@dataclass(frozen=True)
class Statement:
    """One currency from `since` up to `until`, which is excluded; None is the beginning or the end of the history.

    `opening` and `closing` are None where no record tells them. `is_first`: no record stands before the period, so
    that it opens with what its first record tells. Sums are over everything that the service lists, whatever its
    status. `untold` cannot be placed in the chain (`chain`), `vanished` have left the list and are not counted.
    `unexplained` is what all breaks come to; None where they are too many to be added up.
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
    untold: CappedCount
    vanished: int
    told: list[ReportedBalance] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many movements there are."""
        return self.received.count + self.sent.count + self.unknown.count

    @property
    def fees(self) -> Decimal:
        """All fees."""
        with localcontext(SUM_CONTEXT):
            return self.received.fee + self.sent.fee

    @property
    def expected(self) -> Decimal | None:
        """The closing balance by the movements: opening and what came in, without what went out and fees."""
        if self.opening is None:
            return None
        with localcontext(SUM_CONTEXT):
            return self.opening + self.received.amount - self.sent.amount - self.fees

    @property
    def difference(self) -> Decimal | None:
        """How much more the records lead to than was expected; None where that cannot be told."""
        if self.expected is None or self.closing is None:
            return None
        with localcontext(SUM_CONTEXT):
            return self.closing - self.expected

    @property
    def adds_up(self) -> bool:
        """Whether the movements lead from the opening to the closing balance, to the last decimal."""
        return self.difference is not None and not self.difference

    @property
    def is_explained(self) -> bool:
        """Whether the breaks in the period are all that keeps it from adding up."""
        return self.difference == self.unexplained


def build_statement(currency: str, since: datetime | None, until: datetime | None) -> Statement:
    """Reads days at both ends of the period, sums of the days between, and the records that cannot be placed.

    Of these and of breaks no more than `MOST`. What takes longer for a longer period is to add up its days, some sums
    each (`volumes`): that of ten million transactions is a matter of days, not of transactions.
    """
    before = last_link_before(currency, since) if since else None
    first, last = _first_link(currency, since), last_link_before(currency, until or _END_OF_TIME)
    has_moved = first is not None and last is not None and first.at <= last.at
    opening = before.after if before else None
    if opening is None and first is not None and has_moved:
        opening = first.before
    breaks, unexplained = _break_sum(currency, since, until)
    received, sent, unknown = _movements(currency, since, until)
    return Statement(
        currency=currency,
        opening=opening,
        closing=last.after if has_moved and last is not None else opening,
        is_first=before is None,
        received=received,
        sent=sent,
        unknown=unknown,
        breaks=breaks,
        unexplained=unexplained,
        untold=_unplaceable(currency, since, until),
        vanished=_missing(currency, since, until).count(),
        told=_reported_at_ends(currency, since, until or _END_OF_TIME),
    )


def statement_transactions(
    currency: str, since: datetime | None, until: datetime | None
) -> QuerySet[Transaction]:
    """The records of a statement, in order of time."""
    return listed_transactions(currency).filter(**_within("occurred_at", since, until))


def _first_link(currency: str, since: datetime | None) -> ChainLink | None:
    landmark = landmark_before(currency, since) if since else None
    return next((link for link in links_after(currency, landmark) if since is None or link.at >= since), None)


def _movements(
    currency: str, since: datetime | None, until: datetime | None
) -> tuple[MovementTotals, MovementTotals, MovementTotals]:
    ways = {"in": MovementTotals(), "out": MovementTotals(), "": MovementTotals()}
    known = {facet.pk: facet.direction for facet in Facet.objects.filter(currency=currency)}
    with localcontext(SUM_CONTEXT):
        for facet_id, count, amount, fees in sums_between(list(known), since, until):
            ways[known[facet_id]].add(count, amount, fees)
    return ways["in"], ways["out"], ways[""]


def _break_sum(
    currency: str, since: datetime | None, until: datetime | None
) -> tuple[CappedCount, Decimal | None]:
    """How many breaks there are, and what they come to; None where they are too many to be added up."""
    breaks = BalanceBreak.objects.filter(currency=currency, **_within("at", since, until)).order_by(
        "at", "id"
    )
    found = [broken.signed for broken in breaks[: MAX_COUNTED + 1]]
    number = CappedCount.of(len(found), MAX_COUNTED)
    return number, None if number.is_more else _sum(found)


def _unplaceable(currency: str, since: datetime | None, until: datetime | None) -> CappedCount:
    return count_up_to(MAX_COUNTED, statement_transactions(currency, since, until).filter(UNPLACEABLE))


def _missing(currency: str, since: datetime | None, until: datetime | None) -> QuerySet[Transaction]:
    rows = Transaction.objects.filter(missing_since__isnull=False, currency=currency).order_by()
    return rows.filter(**_within("occurred_at", since, until))


def _reported_at_ends(currency: str, since: datetime | None, until: datetime) -> list[ReportedBalance]:
    """The balances at both ends; none that may be of a time of which not every record is here."""
    as_of = Mirror.objects.filter(loaded_at__isnull=False).values_list("as_of", flat=True).first()
    if as_of is None:
        return []
    ends = [since, until] if since else [until]
    return [told for moment in ends if (told := _reported_before(currency, moment, as_of - _CLOCK_TOLERANCE))]


def _reported_before(currency: str, moment: datetime, known: datetime) -> ReportedBalance | None:
    """The last balance that was kept before `moment` and `known`, if it is less than a day older than `moment`."""
    before = min(moment, known)
    kept = BalanceSnapshot.objects.filter(currency=currency, slot__lt=before, as_of__lt=before)
    snapshot = kept.order_by("-slot").first()
    if snapshot is None or (moment != _END_OF_TIME and snapshot.as_of < moment - _A_DAY):
        return None
    at, told = snapshot.as_of, snapshot.amount
    last = last_link_before(currency, at)
    if last is None or last.after is None:
        return None
    near = listed_transactions(currency).filter(
        occurred_at__gte=at - _CLOCK_TOLERANCE, occurred_at__lt=at + _CLOCK_TOLERANCE
    )
    links = map(chain_link_of, near[:MAX_COUNTED])
    around = {balance for link in links for balance in (link.before, link.after)}
    return ReportedBalance(at, told, told if told in around else last.after)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    with localcontext(SUM_CONTEXT):
        return sum(amounts, Decimal(0))


def _within(name: str, since: datetime | None, until: datetime | None) -> dict[str, datetime]:
    ends = {f"{name}__gte": since, f"{name}__lt": until}
    return {lookup: moment for lookup, moment in ends.items() if moment}
