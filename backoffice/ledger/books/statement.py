"""A statement: one currency over a period, from the balance before it to the balance at its end, exact.

The opening and the closing balance are what the records themselves say, so they are told independently of the
movements between them: what came in and went out must lead from the one to the other. Where it does not, the breaks
of the chain in the period say by how much, and where.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext

from django.db.models import QuerySet

from backoffice.core.fields import SUMS
from backoffice.ledger.books.chain import Link
from backoffice.ledger.books.counting import UpTo, count_up_to
from backoffice.ledger.books.reading import landmark_before, last_before, link_of, links_behind, listed
from backoffice.ledger.mirrored import UNTOLD, Break, Facet, Mirror, Transaction
from backoffice.ledger.models import BalanceSnapshot
from backoffice.ledger.volumes import sums_between

MOST = 10_000
"""Breaks that are added up, and records of which nothing is told that are counted."""
_A_DAY = timedelta(days=1)
_NEAR = timedelta(
    minutes=2
)  # so far the service's clock and ours may be apart, and a balance may change meanwhile
_THE_END = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass
class Movements:
    """What moved in one direction: how many records, their amounts and their fees."""

    count: int = 0
    amount: Decimal = Decimal(0)
    fee: Decimal = Decimal(0)

    def add(self, count: int, amount: Decimal, fee: Decimal) -> None:
        """So many more."""
        self.count, self.amount, self.fee = self.count + count, self.amount + amount, self.fee + fee


@dataclass(frozen=True)
class Told:
    """The balance that the service told at a moment, held against the records around it."""

    at: datetime
    amount: Decimal
    by_records: Decimal

    @property
    def difference(self) -> Decimal:
        """How much more the service told; nothing if they agree."""
        with localcontext(SUMS):
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
    received: Movements
    sent: Movements
    unknown: Movements
    breaks: UpTo
    unexplained: Decimal | None
    untold: UpTo
    vanished: int
    told: list[Told] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many movements there are."""
        return self.received.count + self.sent.count + self.unknown.count

    @property
    def fees(self) -> Decimal:
        """All fees."""
        with localcontext(SUMS):
            return self.received.fee + self.sent.fee

    @property
    def expected(self) -> Decimal | None:
        """The closing balance by the movements: opening and what came in, without what went out and fees."""
        if self.opening is None:
            return None
        with localcontext(SUMS):
            return self.opening + self.received.amount - self.sent.amount - self.fees

    @property
    def difference(self) -> Decimal | None:
        """How much more the records lead to than was expected; None where that cannot be told."""
        if self.expected is None or self.closing is None:
            return None
        with localcontext(SUMS):
            return self.closing - self.expected

    @property
    def adds_up(self) -> bool:
        """Whether the movements lead from the opening to the closing balance, to the last decimal."""
        return self.difference is not None and not self.difference

    @property
    def is_explained(self) -> bool:
        """Whether the breaks in the period are all that keeps it from adding up."""
        return self.difference == self.unexplained


def statement(currency: str, since: datetime | None, until: datetime | None) -> Statement:
    """Reads days at both ends of the period, sums of the days between, and the records that cannot be placed.

    Of these and of breaks no more than `MOST`. What takes longer for a longer period is to add up its days, some sums
    each (`volumes`): that of ten million transactions is a matter of days, not of transactions.
    """
    before = last_before(currency, since) if since else None
    first, last = _first(currency, since), last_before(currency, until or _THE_END)
    has_moved = first is not None and last is not None and first.at <= last.at
    opening = before.after if before else None
    if opening is None and first is not None and has_moved:
        opening = first.before
    breaks, unexplained = _broken(currency, since, until)
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
        untold=_untold(currency, since, until),
        vanished=_vanished(currency, since, until).count(),
        told=_told_around(currency, since, until or _THE_END),
    )


def movements(currency: str, since: datetime | None, until: datetime | None) -> QuerySet[Transaction]:
    """The records of a statement, in order of time."""
    return listed(currency).filter(**_within("occurred_at", since, until))


def _first(currency: str, since: datetime | None) -> Link | None:
    landmark = landmark_before(currency, since) if since else None
    return next(
        (link for link in links_behind(currency, landmark) if since is None or link.at >= since), None
    )


def _movements(
    currency: str, since: datetime | None, until: datetime | None
) -> tuple[Movements, Movements, Movements]:
    ways = {"in": Movements(), "out": Movements(), "": Movements()}
    known = {facet.pk: facet.direction for facet in Facet.objects.filter(currency=currency)}
    with localcontext(SUMS):
        for facet_id, count, amount, fees in sums_between(list(known), since, until):
            ways[known[facet_id]].add(count, amount, fees)
    return ways["in"], ways["out"], ways[""]


def _broken(currency: str, since: datetime | None, until: datetime | None) -> tuple[UpTo, Decimal | None]:
    """How many breaks there are, and what they come to; None where they are too many to be added up."""
    breaks = Break.objects.filter(currency=currency, **_within("at", since, until)).order_by("at", "id")
    found = [broken.signed for broken in breaks[: MOST + 1]]
    number = UpTo.of(len(found), MOST)
    return number, None if number.is_more else _sum(found)


def _untold(currency: str, since: datetime | None, until: datetime | None) -> UpTo:
    return count_up_to(MOST, movements(currency, since, until).filter(UNTOLD))


def _vanished(currency: str, since: datetime | None, until: datetime | None) -> QuerySet[Transaction]:
    rows = Transaction.objects.filter(missing_since__isnull=False, currency=currency).order_by()
    return rows.filter(**_within("occurred_at", since, until))


def _told_around(currency: str, since: datetime | None, until: datetime) -> list[Told]:
    """The balances at both ends; none that may be of a time of which not every record is here."""
    as_of = Mirror.objects.filter(loaded_at__isnull=False).values_list("as_of", flat=True).first()
    if as_of is None:
        return []
    ends = [since, until] if since else [until]
    return [told for moment in ends if (told := _told(currency, moment, as_of - _NEAR))]


def _told(currency: str, moment: datetime, known: datetime) -> Told | None:
    """The last balance that was kept before `moment` and `known`, if it is less than a day older than `moment`."""
    before = min(moment, known)
    kept = BalanceSnapshot.objects.filter(currency=currency, slot__lt=before, as_of__lt=before)
    snapshot = kept.order_by("-slot").first()
    if snapshot is None or (moment != _THE_END and snapshot.as_of < moment - _A_DAY):
        return None
    at, told = snapshot.as_of, snapshot.amount
    last = last_before(currency, at)
    if last is None or last.after is None:
        return None
    near = listed(currency).filter(occurred_at__gte=at - _NEAR, occurred_at__lt=at + _NEAR)
    links = map(link_of, near[:MOST])
    around = {balance for link in links for balance in (link.before, link.after)}
    return Told(at, told, told if told in around else last.after)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    with localcontext(SUMS):
        return sum(amounts, Decimal(0))


def _within(name: str, since: datetime | None, until: datetime | None) -> dict[str, datetime]:
    ends = {f"{name}__gte": since, f"{name}__lt": until}
    return {lookup: moment for lookup, moment in ends.items() if moment}
