"""The transactions of the mirror, each with the operation of ours that caused it."""

from datetime import date

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.core.pagination import Page
from backoffice.ledger.forms import JumpForm, TransactionListForm
from backoffice.ledger.listing import Count, cursor_to, transaction_count, transaction_page
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.mirrored import Transaction
from backoffice.ledger.volumes import Summary, summary
from backoffice.ledger.walking import TooWideError
from backoffice.operations import selectors, transaction_words
from backoffice.operations.transaction_rows import SIGNS, TONES, Row

VIEW = "ledger.view_transaction"


@require_safe
@permission_required(VIEW, raise_exception=True)
def transactions(request: StaffRequest) -> HttpResponse:
    """One page of the list, narrowed by the filters in the address; only the rows where htmx asks."""
    form, jump = TransactionListForm(request.GET), JumpForm(request.GET)
    if form.is_valid() and form.is_in_time and jump.day:
        return redirect(f"{request.path}?{_at_the_day(request, form, jump.day)}")
    page = _page(request, form) if form.is_valid() else None
    context = {
        "form": form,
        "jump": jump,
        "page": page,
        "rows": _rows(request, page.rows) if page else [],
        "mirror": mirror_state(),
        **(_sums(form) if page and "count" in request.GET else {}),
    }
    only_rows = request.htmx and not request.htmx.history_restore_request
    template = "operations/_transactions.html" if only_rows else "operations/transactions.html"
    if page is None:
        return push_url(render(request, template, context, status=422), False)  # what is refused is not kept
    return render(request, template, context)


@polled
@require_safe
@permission_required(VIEW, raise_exception=True)
def transactions_count(request: StaffRequest) -> HttpResponse:
    """How many there are and what they add up to, for the page to ask when it is there."""
    form = TransactionListForm(request.GET)
    context = {"form": form, **(_sums(form) if form.is_valid() else {})}
    return render(request, "operations/_transaction_count.html", context)


@require_safe
@permission_required(VIEW, raise_exception=True)
def transaction(request: StaffRequest, pk: int) -> HttpResponse:
    """All that the service told of one, what it told before, and the operation behind it."""
    found = get_object_or_404(Transaction, pk=pk)
    context = {
        "transaction": found,
        "sign": SIGNS.get(found.direction, ""),
        "tone": TONES.get(found.status, ""),
        "operation": _rows(request, [found])[0].operation,
        "facts": transaction_words.facts(found),
        "as_told": transaction_words.as_told(found),
        "changes": transaction_words.changes(found),
        "incidents": found.incidents.select_related("seen_by"),
    }
    return render(request, "operations/transaction.html", context)


def _page(request: StaffRequest, form: TransactionListForm) -> Page[Transaction] | None:
    """None with the reason in the form, where what is asked for has no quick answer."""
    try:
        return transaction_page(form.chosen(), order=form.order, cursor=request.GET.get("cursor"))
    except TooWideError as exc:
        form.add_error("text" if form.chosen().names_somebody else "since", str(exc))
        return None


def _sums(form: TransactionListForm) -> dict[str, object]:
    count = _count(form)
    return {"count": count, "sums": _summary(form) if count else None}


def _count(form: TransactionListForm) -> Count | None:
    """None where counting them takes too long."""
    try:
        return transaction_count(form.chosen())
    except TooWideError:
        return None


def _summary(form: TransactionListForm) -> Summary | None:
    """None where adding them up takes too long."""
    try:
        return summary(form.chosen())
    except TooWideError:
        return None


def _at_the_day(request: StaffRequest, form: TransactionListForm, day: date) -> str:
    """The same address, at the page where the chosen day begins."""
    address = request.GET.copy()
    address["cursor"] = cursor_to(day, form.chosen(), form.order)
    del address["jump"]
    return address.urlencode()


def _rows(request: StaffRequest, found: list[Transaction]) -> list[Row]:
    caused = selectors.operations_by_transaction(request.user, [one.transaction_id for one in found])
    return [Row(one, caused.get(one.transaction_id)) for one in found]
