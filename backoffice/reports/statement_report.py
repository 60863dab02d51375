"""Statement: each currency from its opening balance over every movement to its closing balance.

The lines are of one moment, though the sync merges while they are read, and those of a currency add up: each balance is
that of the line above with what came in, without what went out and the fee. Where a transaction begins with another
balance than was there, a line of its own says what lies open between the two.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from itertools import islice, takewhile
from operator import attrgetter

from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.core.fields import SUMS
from backoffice.ledger.books.chain import Link, effect
from backoffice.ledger.books.checking import currencies
from backoffice.ledger.books.reading import landmark_before, last_before, links_behind
from backoffice.ledger.forms import BooksForm
from backoffice.ledger.mirror.state import read_up_to
from backoffice.ledger.mirrored import Transaction
from backoffice.reports.report import BATCH, Column, Report, chosen_period, within
from backoffice.reports.snapshot import of_one_moment

_ONE_QUESTION = timedelta(minutes=5)


@dataclass(frozen=True)
class Line:
    """One line; `balance` is what is there after it, None where no transaction has told it yet."""

    kind: str
    currency: str
    balance: Decimal | None
    received: Decimal | None = None
    sent: Decimal | None = None
    fee: Decimal | None = None
    transaction: Transaction | None = None

    def told(self, name: str) -> object:
        """What the transaction says under this name; nothing for a line without one."""
        return getattr(self.transaction, name, None)


def rows(_user: User, form: BooksForm) -> Iterator[Line]:
    """The chosen currency, or one after the other."""
    return of_one_moment(_every_line(form), at_most=_ONE_QUESTION)


def _every_line(form: BooksForm) -> Iterator[Line]:
    chosen = form.cleaned_data["currency"]
    for currency in [chosen] if chosen else currencies():
        yield from _lines(currency, *form.moments)


def _lines(currency: str, since: datetime | None, until: datetime | None) -> Iterator[Line]:
    before = last_before(currency, since) if since else None
    links = _links(currency, since, until)
    first = next(links, None)
    balance = before.after if before else None
    if balance is None and first is not None:
        balance = first.before
    if balance is None and first is None:
        return
    yield Line("opening", currency, balance)
    for link, transaction in _with_transactions([first] if first else [], links):
        if link.before is not None and link.before != balance:
            if balance is not None:
                yield _unexplained(currency, balance, link.before)
            balance = link.before
        line = _movement(transaction, balance)
        balance = line.balance
        yield line
    yield Line("closing", currency, balance)


def _links(currency: str, since: datetime | None, until: datetime | None) -> Iterator[Link]:
    landmark = landmark_before(currency, since) if since else None
    begun = (link for link in links_behind(currency, landmark) if since is None or link.at >= since)
    return takewhile(lambda link: until is None or link.at < until, begun)


def _with_transactions(first: Iterable[Link], others: Iterator[Link]) -> Iterator[tuple[Link, Transaction]]:
    """Each with its whole record, some at a time."""
    batch = [*first, *islice(others, BATCH)]
    while batch:
        found = Transaction.objects.in_bulk([link.pk for link in batch])
        yield from ((link, found[link.pk]) for link in batch)
        batch = list(islice(others, BATCH))


def _unexplained(currency: str, expected: Decimal, found: Decimal) -> Line:
    with localcontext(SUMS):
        difference = found - expected
    if difference > 0:
        return Line("unexplained", currency, found, received=difference)
    return Line("unexplained", currency, found, sent=-difference)


def _movement(one: Transaction, balance: Decimal | None) -> Line:
    """Where nothing tells which way it went, it is no part of the sum, and neither is its fee."""
    adds = effect(one.direction, one.amount, one.fee)
    if adds is None:
        return Line("movement", one.currency, balance, transaction=one)
    with localcontext(SUMS):
        after = None if balance is None else balance + adds
    way = {"received" if one.direction == "in" else "sent": one.amount}
    return Line("movement", one.currency, after, fee=one.fee, transaction=one, **way)


def _counted(_user: User, form: BooksForm) -> QuerySet[Transaction]:
    found = Transaction.objects.filter(missing_since__isnull=True, **within("occurred_at", form))
    return found.filter(currency=form.cleaned_data["currency"]) if form.cleaned_data["currency"] else found


def _told(header: str, about: str, name: str) -> Column[Line]:
    return Column(header, about, lambda line: line.told(name))


STATEMENT: Report[Line, BooksForm] = Report(
    name="statement",
    title="Statement",
    about="Each currency from its opening balance over every movement to its closing balance.",
    permissions=("ledger.view_transaction",),
    form=BooksForm,
    columns=(
        Column(
            "line", "Opening, movement, closing, or what lies unexplained between two", attrgetter("kind")
        ),
        _told("occurred_at", "When it began, or when it was first seen", "occurred_at"),
        _told("transaction_id", "The service's id", "transaction_id"),
        _told("type", "What it was", "type"),
        _told("status", "What became of it", "status"),
        _told("counterparty", "Who was at the other end", "counterparty"),
        Column("currency", "Which balance", attrgetter("currency")),
        Column("in", "What came in", attrgetter("received")),
        Column("out", "What went out", attrgetter("sent")),
        Column("fee", "What the service took on top", attrgetter("fee")),
        Column("balance", "What is there after this line", attrgetter("balance")),
    ),
    rows=rows,
    counted=_counted,
    period=chosen_period,
    told_up_to=read_up_to,
)
