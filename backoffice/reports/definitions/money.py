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
from typing import TYPE_CHECKING

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.core.fields import EXACT
from backoffice.core.web.forms import PageForm, PeriodForm
from backoffice.ledger import accounts as ledger
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

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


def transactions_query(_user: User, form: TransactionFilterForm) -> QuerySet[Transaction]:
    """The transactions that match the filters, as in the transaction list."""
    return form.transaction_filter().apply(Transaction.objects.all())


TRANSACTIONS = StoredReport(
    name="transactions",
    title=_("Transactions"),
    about=_("The provider's transactions, as last reported."),
    permissions=("ledger.view_transaction",),
    form=TransactionFilterForm,
    columns=(
        Column("transaction_id", _("Transaction ID"), "transaction_id"),
        Column("created_at", _("Created at"), "created_at"),
        Column("updated_at", _("Updated at"), "updated_at"),
        Column("type", _("Type"), "type"),
        Column("status", _("Status"), "status"),
        Column("direction", _("Direction"), "direction"),
        Column("currency", _("Currency"), "currency"),
        Column("amount", _("Amount"), "amount"),
        Column("fee", _("Fee"), "fee"),
        Column("previous_balance", _("Balance before"), "previous_balance"),
        Column("from_currency", _("Source currency"), "from_currency"),
        Column("from_amount", _("Source amount"), "from_amount"),
        Column("counterparty", _("Counterparty"), "counterparty"),
        Column("sender", _("Sender"), "sender"),
        Column("username", _("Username"), "username"),
        Column("business_id", _("Business ID"), "business_id"),
        Column("occurred_at", _("Occurred at"), "occurred_at"),
        Column("changed_at", _("Change synced at"), "changed_at"),
        Column("missing_since", _("No longer listed since"), "missing_since"),
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
    with localcontext(EXACT):
        difference = found - expected
    if difference > 0:
        return StatementReportLine("unexplained", currency, found, received=difference)
    return StatementReportLine("unexplained", currency, found, sent=-difference)


def _movement(transaction: Transaction, balance: Decimal | None) -> StatementReportLine:
    """A transaction of unknown direction does not change the balance, and neither does its fee."""
    adds = balance_effect(transaction.direction, transaction.amount, transaction.fee)
    if adds is None:
        return StatementReportLine("movement", transaction.currency, balance, transaction=transaction)
    with localcontext(EXACT):
        after = None if balance is None else balance + adds
    column = {"received" if transaction.direction == "in" else "sent": transaction.amount}
    return StatementReportLine(
        "movement", transaction.currency, after, fee=transaction.fee, transaction=transaction, **column
    )


def _statement_count(_user: User, form: CurrencyPeriodForm) -> QuerySet[Transaction]:
    found = Transaction.objects.filter(missing_since__isnull=True, **period_lookups("occurred_at", form))
    return found.filter(currency=form.cleaned_data["currency"]) if form.cleaned_data["currency"] else found


def _transaction_column(name: str, heading: "StrPromise", field: str) -> Column[StatementReportLine]:
    return Column(name, heading, lambda line: line.field(field))


STATEMENT: ComputedReport[StatementReportLine, CurrencyPeriodForm] = ComputedReport(
    name="statement",
    title=_("Statement"),
    about=_("Each currency from its opening to its closing balance, with every transaction."),
    permissions=("ledger.view_transaction",),
    form=CurrencyPeriodForm,
    columns=(
        Column("line", _("Line"), "kind"),
        _transaction_column("occurred_at", _("Occurred at"), "occurred_at"),
        _transaction_column("transaction_id", _("Transaction ID"), "transaction_id"),
        _transaction_column("type", _("Type"), "type"),
        _transaction_column("status", _("Status"), "status"),
        _transaction_column("counterparty", _("Counterparty"), "counterparty"),
        Column("currency", _("Currency"), "currency"),
        Column("in", _("Money in"), "received"),
        Column("out", _("Money out"), "sent"),
        Column("fee", _("Fee"), "fee"),
        Column("balance", _("Balance after"), "balance"),
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
    title=_("Balance continuity"),
    about=_("Transactions whose balance does not follow from the one before."),
    permissions=("ledger.view_transaction",),
    form=CurrencyPeriodForm,
    columns=(
        Column("at", _("Time"), "at"),
        Column("currency", _("Currency"), "currency"),
        Column("kind", _("Discrepancy"), "kind"),
        Column("expected", _("Expected balance"), "expected"),
        Column("found", _("Reported balance"), "found"),
        Column("difference", _("Difference"), "difference"),
        Column("direction", _("Direction"), "direction"),
        Column("transaction_before", _("Previous transaction ID"), "before__transaction_id"),
        Column("transaction_after", _("Next transaction ID"), "after__transaction_id"),
        Column("detected_at", _("Detected at"), "detected_at"),
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
    title=_("Balances"),
    about=_("The current balance of each currency, and snapshots every 15 minutes."),
    permissions=("ledger.view_balance",),
    form=PeriodForm,
    columns=(
        Column("kept_as", _("Record"), _kept_as),
        Column("currency", _("Currency"), "currency"),
        Column("amount", _("Amount"), "amount"),
        Column("total_received", _("Total received"), "total_received"),
        Column("total_sent", _("Total sent"), "total_sent"),
        Column("transaction_count", _("Transactions"), "transaction_count"),
        Column("as_of", _("Reported at"), "as_of"),
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
    title=_("Bank accounts"),
    about=_("Your accounts at the provider, read when you export."),
    permissions=("ledger.view_balance",),
    form=forms.Form,
    columns=(
        Column("account_name", _("Account name"), lambda holding: holding[0].account_name),
        Column("currency", _("Currency"), _of_asset("currency")),
        Column("account_number", _("Account number or address"), _of_asset("address")),
        Column("type", _("Type"), _of_asset("type")),
        Column("holds", _("Balance"), _of_asset("balance")),
    ),
    rows=bank_account_rows,
)


_ALL_PLACEHOLDER = forms.TextInput(attrs={"placeholder": _("All")})


class WalletFilterForm(PageForm):
    """The filters of the wallets page."""

    currency = forms.CharField(label=_("Currency"), required=False, max_length=40, widget=_ALL_PLACEHOLDER)
    network = forms.CharField(label=_("Network"), required=False, max_length=40, widget=_ALL_PLACEHOLDER)


def wallet_rows(_user: User, form: WalletFilterForm) -> Iterator[WalletAddress]:
    """The addresses that the page shows for these filters, in the provider's order. Raises GatewayError."""
    return iter(ledger.select_addresses(**form.cleaned_data))


WALLETS = ComputedReport(
    name="wallets",
    title=_("Wallet addresses"),
    about=_("Your crypto addresses by currency and network, read when you export."),
    permissions=("ledger.view_balance",),
    form=WalletFilterForm,
    columns=(
        Column("currency", _("Currency"), "currency"),
        Column("network", _("Network"), "network"),
        Column("address", _("Address"), "address"),
    ),
    rows=wallet_rows,
)
