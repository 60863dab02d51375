"""The books: statements of each currency, and the places where its balances do not follow from each other."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from backoffice.core.pagination import keyset_page, page_of
from backoffice.ledger.books import checking, reading
from backoffice.ledger.books.continuity import (
    NEWEST_FIRST,
    chosen_breaks,
    days_of,
    not_ours_to_tell,
    unchecked,
)
from backoffice.ledger.books.statement import movements, statement
from backoffice.ledger.forms import BooksForm
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.mirrored import Break, Transaction

VIEW = "ledger.view_transaction"


@dataclass(frozen=True)
class Line:
    """One movement of a statement, the balance after it, and the break before it."""

    transaction: Transaction
    balance: object
    broken: Break | None


@require_safe
@permission_required(VIEW, raise_exception=True)
def statements(request: HttpRequest) -> HttpResponse:
    """Every currency of the period in short, or one with its movements.

    The period is this month as long as nothing is chosen; a choice without days is the whole history.
    """
    today = timezone.localdate()
    form = BooksForm(request.GET if request.GET else {"since": today.replace(day=1), "until": today})
    context: dict[str, object] = {"form": form}
    if form.is_valid():
        days = {name: day for name, day in form.typed.items() if name != "currency"}
        context |= {"address": urlencode(form.typed), "days": urlencode(days)}
    with reading.one_moment():
        context |= {"mirror": mirror_state(), "unchecked": unchecked()}
        if form.is_valid():
            context |= _statements(form, request.GET.get("cursor"))
    return render(request, "ledger/statements.html", context, status=200 if form.is_valid() else 422)


@require_safe
@permission_required(VIEW, raise_exception=True)
def continuity(request: HttpRequest) -> HttpResponse:
    """The breaks, newest first, and what they add up to by currency and day."""
    form = BooksForm(request.GET)
    context: dict[str, object] = {"form": form}
    with reading.one_moment():
        context |= {"mirror": mirror_state(), "unchecked": unchecked()}
        if form.is_valid():
            chosen = form.cleaned_data["currency"], *form.moments
            breaks = chosen_breaks(*chosen)
            context |= {"days": days_of(breaks), "untold": not_ours_to_tell(*chosen)}
            context["page"] = keyset_page(
                breaks.select_related("before", "after"), order=NEWEST_FIRST, cursor=request.GET.get("cursor")
            )
    return render(request, "ledger/continuity.html", context, status=200 if form.is_valid() else 422)


def _statements(form: BooksForm, cursor: str | None) -> dict[str, object]:
    one = form.cleaned_data["currency"]
    if not one:
        return {"statements": [statement(currency, *form.moments) for currency in checking.currencies()]}
    rows = movements(one, *form.moments)
    page = page_of(reading.by_whole_moments(rows), order=reading.ORDER, cursor=cursor)
    return {"statements": [statement(one, *form.moments)], "page": page, "lines": _lines(one, page.rows)}


def _lines(currency: str, rows: list[Transaction]) -> list[Line]:
    """The movements of a page, those of one moment in the order that all balances around them tell."""
    if not rows:
        return []
    shown = {row.pk: row for row in rows}
    broken = {one.after_id: one for one in Break.objects.filter(after__in=shown)}
    links = reading.links_between(currency, rows[0].occurred_at, rows[-1].occurred_at)
    return [Line(shown[link.pk], link.after, broken.get(link.pk)) for link in links if link.pk in shown]
