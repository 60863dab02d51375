"""Reports of the ledger: transactions, statement, continuity, balances, bank accounts, wallet addresses.

The lines of a statement come from one database snapshot and add up: each balance is that of the line above
plus the amount received, minus the amount sent and the fee. Where a transaction starts with another balance,
an extra line shows the difference.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal, localcontext
from itertools import chain, islice, takewhile
from operator import attrgetter

from django import forms
from django.db.models import QuerySet

from backoffice.accounts.models import User
from backoffice.core.fields import SUM_CONTEXT
from backoffice.core.gateway import gateway
from backoffice.core.web.forms import PeriodForm
from backoffice.ledger import accounts as ledger
from backoffice.ledger.accounts import filter_addresses
from backoffice.ledger.forms import CurrencyPeriodForm, TransactionFilterForm
from backoffice.ledger.mirror.state import synced_until
from backoffice.ledger.models import Balance, BalanceBreak, BalanceSnapshot, Transaction
from backoffice.ledger.statements.chain import ChainLink, balance_effect
from backoffice.ledger.statements.chain_reader import landmark_before, last_link_before, links_after
from backoffice.ledger.statements.continuity import NEWEST_BREAKS_FIRST, filtered_breaks, known_currencies
from backoffice.reports.rendering.database import rows_of_one_snapshot
from backoffice.reports.report import (
    BATCH,
    Column,
    ComputedReport,
    StoredReport,
    in_batches,
    period_lookups,
)
from payments_gateway import Account, Asset, WalletAddress


def transactions_query(_user: User, form: TransactionFilterForm) -> QuerySet[Transaction]:
    """The transactions that match the filters, as in the transaction list."""
    return form.transaction_filter().apply(Transaction.objects.all())


TRANSACTIONS = StoredReport(
    name="transactions",
    title="Transactions",
    about="Every movement that the service told of, as it told it last.",
    permissions=("ledger.view_transaction",),
    form=TransactionFilterForm,
    columns=(
        Column("transaction_id", "The service's id", "transaction_id"),
        Column("created_at", "When it began, as the service told it", "created_at"),
        Column("updated_at", "When the service changed it last", "updated_at"),
        Column("type", "What it was", "type"),
        Column("status", "What became of it", "status"),
        Column("direction", "Into or out of your balance", "direction"),
        Column("currency", "The balance that it moved", "currency"),
        Column("amount", "How much, without a sign", "amount"),
        Column("fee", "What the service took", "fee"),
        Column("previous_balance", "The balance before it", "previous_balance"),
        Column("from_currency", "Where a conversion came from", "from_currency"),
        Column("from_amount", "How much was converted", "from_amount"),
        Column("counterparty", "Who was at the other end", "counterparty"),
        Column("sender", "Who sent it, as told", "sender"),
        Column("username", "The user of the service, as told", "username"),
        Column("business_id", "The business at the service", "business_id"),
        Column("occurred_at", "The time that lists sort by: told, or when it was first seen", "occurred_at"),
        Column("changed_at", "When we last saw it change", "changed_at"),
        Column(
            "missing_since", "Since when the service lists it no more; empty while it does", "missing_since"
        ),
    ),
    query=transactions_query,
    order=("-occurred_at", "-id"),
    synced_until=synced_until,
)


_QUERY_TIMEOUT = timedelta(minutes=5)


@dataclass(frozen=True)
class StatementReportLine:
    """One line; `balance` is the balance after it, None while no transaction has shown one."""

    kind: str
    currency: str
    balance: Decimal | None
    received: Decimal | None = None
    sent: Decimal | None = None
    fee: Decimal | None = None
    transaction: Transaction | None = None

    def field(self, name: str) -> object:
        """The transaction's field of this name; None for a line without a transaction."""
        return getattr(self.transaction, name, None)


def statement_rows(_user: User, form: CurrencyPeriodForm) -> Iterator[StatementReportLine]:
    """The lines of the chosen currency, or of all currencies in turn."""
    return rows_of_one_snapshot(_all_lines(form), at_most=_QUERY_TIMEOUT)


def _all_lines(form: CurrencyPeriodForm) -> Iterator[StatementReportLine]:
    selected = form.cleaned_data["currency"]
    for currency in [selected] if selected else known_currencies():
        yield from _lines(currency, *form.period)


def _lines(currency: str, since: datetime | None, until: datetime | None) -> Iterator[StatementReportLine]:
    before = last_link_before(currency, since) if since else None
    links = _links_of_period(currency, since, until)
    first = next(links, None)
    balance = before.after if before else None
    if balance is None and first is not None:
        balance = first.before
    if balance is None and first is None:
        return
    yield StatementReportLine("opening", currency, balance)
    for link, transaction in _with_transactions([first] if first else [], links):
        if link.before is not None and link.before != balance:
            if balance is not None:
                yield _unexplained(currency, balance, link.before)
            balance = link.before
        line = _movement(transaction, balance)
        balance = line.balance
        yield line
    yield StatementReportLine("closing", currency, balance)


def _links_of_period(currency: str, since: datetime | None, until: datetime | None) -> Iterator[ChainLink]:
    landmark = landmark_before(currency, since) if since else None
    links = (link for link in links_after(currency, landmark) if since is None or link.at >= since)
    return takewhile(lambda link: until is None or link.at < until, links)


def _with_transactions(
    first: Iterable[ChainLink], others: Iterator[ChainLink]
) -> Iterator[tuple[ChainLink, Transaction]]:
    """Each link with its transaction, read in batches."""
    batch = [*first, *islice(others, BATCH)]
    while batch:
        found = Transaction.objects.in_bulk([link.pk for link in batch])
        yield from ((link, found[link.pk]) for link in batch)
        batch = list(islice(others, BATCH))


def _unexplained(currency: str, expected: Decimal, found: Decimal) -> StatementReportLine:
    with localcontext(SUM_CONTEXT):
        difference = found - expected
    if difference > 0:
        return StatementReportLine("unexplained", currency, found, received=difference)
    return StatementReportLine("unexplained", currency, found, sent=-difference)


def _movement(transaction: Transaction, balance: Decimal | None) -> StatementReportLine:
    """A transaction of unknown direction does not change the balance, and neither does its fee."""
    adds = balance_effect(transaction.direction, transaction.amount, transaction.fee)
    if adds is None:
        return StatementReportLine("movement", transaction.currency, balance, transaction=transaction)
    with localcontext(SUM_CONTEXT):
        after = None if balance is None else balance + adds
    column = {"received" if transaction.direction == "in" else "sent": transaction.amount}
    return StatementReportLine(
        "movement", transaction.currency, after, fee=transaction.fee, transaction=transaction, **column
    )


def _statement_count(_user: User, form: CurrencyPeriodForm) -> QuerySet[Transaction]:
    found = Transaction.objects.filter(missing_since__isnull=True, **period_lookups("occurred_at", form))
    return found.filter(currency=form.cleaned_data["currency"]) if form.cleaned_data["currency"] else found


def _transaction_column(header: str, about: str, name: str) -> Column[StatementReportLine]:
    return Column(header, about, lambda line: line.field(name))


STATEMENT: ComputedReport[StatementReportLine, CurrencyPeriodForm] = ComputedReport(
    name="statement",
    title="Statement",
    about="Each currency from its opening balance over every movement to its closing balance.",
    permissions=("ledger.view_transaction",),
    form=CurrencyPeriodForm,
    columns=(
        Column("line", "Opening, movement, closing, or what lies unexplained between two", "kind"),
        _transaction_column("occurred_at", "When it began, or when it was first seen", "occurred_at"),
        _transaction_column("transaction_id", "The service's id", "transaction_id"),
        _transaction_column("type", "What it was", "type"),
        _transaction_column("status", "What became of it", "status"),
        _transaction_column("counterparty", "Who was at the other end", "counterparty"),
        Column("currency", "Which balance", "currency"),
        Column("in", "What came in", "received"),
        Column("out", "What went out", "sent"),
        Column("fee", "What the service took on top", "fee"),
        Column("balance", "What is there after this line", "balance"),
    ),
    rows=statement_rows,
    counted=_statement_count,
    synced_until=synced_until,
)


def continuity_query(_user: User, form: CurrencyPeriodForm) -> QuerySet[BalanceBreak]:
    """The breaks that the page lists."""
    return filtered_breaks(form.cleaned_data["currency"], *form.period)


CONTINUITY = StoredReport(
    name="continuity",
    title="Continuity",
    about="Every place where a balance does not follow from the transaction before it.",
    permissions=("ledger.view_transaction",),
    form=CurrencyPeriodForm,
    columns=(
        Column("at", "When the second of the two transactions began", "at"),
        Column("currency", "The balance that is broken", "currency"),
        Column("kind", "What is known of it: gap, vanished, changed, fee or unmoved", "kind"),
        Column("expected", "What the first transaction left", "expected"),
        Column("found", "What the second one began with", "found"),
        Column("difference", "How far the two are apart, without a sign", "difference"),
        Column("direction", "Whether so much came in or went out that no transaction tells of", "direction"),
        Column("transaction_before", "The service's id of the first", "before__transaction_id"),
        Column("transaction_after", "The service's id of the second", "after__transaction_id"),
        Column("detected_at", "When it was seen first", "detected_at"),
    ),
    query=continuity_query,
    order=NEWEST_BREAKS_FIRST,
    synced_until=synced_until,
)


SNAPSHOT_ORDER = ("-as_of", "-id")


def balance_rows(_user: User, form: PeriodForm) -> Iterator[Balance | BalanceSnapshot]:
    """The current balances first, then every snapshot, newest first; all within the chosen days."""
    last_known = Balance.objects.filter(**period_lookups("as_of", form))
    return chain(last_known, in_batches(_snapshots(form), order=SNAPSHOT_ORDER))


def _snapshots(form: PeriodForm) -> QuerySet[BalanceSnapshot]:
    return BalanceSnapshot.objects.filter(**period_lookups("as_of", form))


def _kept_as(row: Balance | BalanceSnapshot) -> str:
    return "last_known" if isinstance(row, Balance) else "snapshot"


BALANCES: ComputedReport[Balance | BalanceSnapshot, PeriodForm] = ComputedReport(
    name="balances",
    title="Balances",
    about="What the service said of each currency: last, and every 15 minutes before.",
    permissions=("ledger.view_balance",),
    form=PeriodForm,
    columns=(
        Column("kept_as", "Whether it is the last one known or an earlier one", _kept_as),
        Column("currency", "Which balance", "currency"),
        Column("amount", "What was in it", "amount"),
        Column("total_received", "Received in all until then", "total_received"),
        Column("total_sent", "Sent in all until then", "total_sent"),
        Column("transaction_count", "Transactions until then", "transaction_count"),
        Column("as_of", "When the service said it", "as_of"),
    ),
    rows=balance_rows,
    counted=lambda _user, form: _snapshots(form),
)


AccountAsset = tuple[Account, Asset | None]


def bank_account_rows(_user: User, _form: forms.Form) -> Iterator[AccountAsset]:
    """One row per account and currency; an account without currencies is a row too. Raises GatewayError."""
    for account in ledger.fetch_own_accounts():
        for asset in account.assets or (None,):
            yield account, asset


def _of_asset(member: str) -> Callable[[AccountAsset], object]:
    get = attrgetter(member)
    return lambda holding: get(holding[1]) if holding[1] else None


BANK_ACCOUNTS = ComputedReport(
    name="bank-accounts",
    title="Bank accounts",
    about="The accounts that the service opened for you, read from the service while you download.",
    permissions=("ledger.view_balance",),
    form=forms.Form,
    columns=(
        Column("account_name", "Whose name it bears", lambda holding: holding[0].account_name),
        Column("currency", "What it holds", _of_asset("currency")),
        Column("account_number", "The number or address", _of_asset("address")),
        Column("type", "Of what kind it is", _of_asset("type")),
        Column("holds", "How much is in it", _of_asset("balance")),
    ),
    rows=bank_account_rows,
)


_ALL_PLACEHOLDER = forms.TextInput(attrs={"placeholder": "All"})


class WalletFilterForm(forms.Form):
    """The filters of the wallets page."""

    currency = forms.CharField(required=False, max_length=40, widget=_ALL_PLACEHOLDER)
    network = forms.CharField(required=False, max_length=40, widget=_ALL_PLACEHOLDER)


def wallet_rows(_user: User, form: WalletFilterForm) -> Iterator[WalletAddress]:
    """The addresses that the page shows for these filters, in the provider's order. Raises GatewayError."""
    return iter(filter_addresses(gateway().wallets.get(), **form.cleaned_data).addresses)


WALLETS = ComputedReport(
    name="wallets",
    title="Wallet addresses",
    about="Where you receive crypto, by currency and network, read from the service while you download.",
    permissions=("ledger.view_balance",),
    form=WalletFilterForm,
    columns=(
        Column("currency", "What can be received", "currency"),
        Column("network", "Over which network", "network"),
        Column("address", "Where to send it", "address"),
    ),
    rows=wallet_rows,
)
