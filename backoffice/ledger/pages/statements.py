"""Pages of statements and balance continuity, and the sync status panel of all pages that show the mirror."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.core.web.pagination import keyset_page, paginate
from backoffice.ledger.forms import CurrencyPeriodForm
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.models import BalanceBreak, Transaction
from backoffice.ledger.statements import chain_reader
from backoffice.ledger.statements.continuity import (
    NEWEST_BREAKS_FIRST,
    breaks_by_day,
    filtered_breaks,
    is_checked_by_currency,
    unplaceable_count,
)
from backoffice.ledger.statements.refunds import cached_missing_refunds
from backoffice.ledger.statements.statement import build_statements, statement_transactions
from backoffice.ledger.transactions.sql import consistent_read

VIEW = "ledger.view_transaction"


@dataclass(frozen=True)
class StatementLine:
    """One movement of a statement, the balance after it, and the break before it."""

    transaction: Transaction
    balance: object
    balance_break: BalanceBreak | None


@require_safe
@permission_required(VIEW, raise_exception=True)
def statements(request: HttpRequest) -> HttpResponse:
    """A summary of every currency in the period, or one currency with its movements.

    The default period is this month; a query without days means the whole history.
    """
    today = timezone.localdate()
    form = CurrencyPeriodForm(request.GET if request.GET else {"since": today.replace(day=1), "until": today})
    context: dict[str, object] = {"form": form}
    if form.is_valid():
        days = {name: day for name, day in form.query.items() if name != "currency"}
        context |= {"address": urlencode(form.query), "days": urlencode(days)}
    with consistent_read():
        currencies = is_checked_by_currency()
        context |= _mirror_context(currencies)
        if form.is_valid():
            context |= _statements_context(form, list(currencies), request.GET.get("cursor"))
    return render(request, "ledger/statements.html", context, status=200 if form.is_valid() else 422)


@require_safe
@permission_required(VIEW, raise_exception=True)
def continuity(request: HttpRequest) -> HttpResponse:
    """The breaks, newest first, with their sums by currency and day; and the failed debits without a refund."""
    form = CurrencyPeriodForm(request.GET)
    context: dict[str, object] = {"form": form}
    with consistent_read():
        currencies = is_checked_by_currency()
        context |= _mirror_context(currencies)
        if form.is_valid():
            one = form.cleaned_data["currency"]
            breaks = filtered_breaks(one, *form.period)
            context |= {
                "days": breaks_by_day(breaks),
                "missing_refunds": [
                    debit for debit in cached_missing_refunds(timezone.now()) if one in {"", debit.currency}
                ],
                "unplaceable": unplaceable_count([one] if one else list(currencies), *form.period),
            }
            context["page"] = keyset_page(
                breaks.select_related("before", "after"),
                order=NEWEST_BREAKS_FIRST,
                cursor=request.GET.get("cursor"),
            )
    return render(request, "ledger/continuity.html", context, status=200 if form.is_valid() else 422)


def _mirror_context(currencies: dict[str, bool]) -> dict[str, object]:
    unchecked = [currency for currency, is_checked in currencies.items() if not is_checked]
    return {"mirror": mirror_state(), "unchecked": unchecked}


def _statements_context(
    form: CurrencyPeriodForm, currencies: list[str], cursor: str | None
) -> dict[str, object]:
    one = form.cleaned_data["currency"]
    if not one:
        return {"statements": build_statements(currencies, *form.period)}
    rows = statement_transactions(one, *form.period)
    page = paginate(chain_reader.reader_of_whole_moments(rows), order=chain_reader.CHAIN_ORDER, cursor=cursor)
    return {
        "statements": build_statements([one], *form.period),
        "page": page,
        "lines": _statement_lines(one, page.rows),
    }


def _statement_lines(currency: str, rows: list[Transaction]) -> list[StatementLine]:
    """The movements of a page; those of one moment are in chain order."""
    if not rows:
        return []
    transactions = {row.pk: row for row in rows}
    balance_break = {one.after_id: one for one in BalanceBreak.objects.filter(after__in=transactions)}
    links = chain_reader.links_between(currency, rows[0].occurred_at, rows[-1].occurred_at)
    return [
        StatementLine(transactions[link.pk], link.after, balance_break.get(link.pk))
        for link in links
        if link.pk in transactions
    ]


@does_not_extend_session
@require_safe
@permission_required("ledger.view_transaction", raise_exception=True)
def sync_status(request: HttpRequest) -> HttpResponse:
    """The sync status panel, which polls this URL: frequently during the first load."""
    return render(request, "ledger/_sync_status.html", {"mirror": mirror_state()})
