"""The service's transactions, live, each with the operation that caused it."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from backoffice.accounts.decorators import polled
from backoffice.accounts.http import StaffRequest
from backoffice.ledger import selectors as ledger
from backoffice.ledger.direction import counterparty, direction
from backoffice.ledger.forms import PER_PAGE, TransactionPageForm
from backoffice.operations import selectors
from backoffice.operations.models import Operation
from payments_gateway import TransactionPage, TransactionRecord

VIEW = "ledger.view_transaction"
_TONES = {"fulfilled": "succeeded", "processing": "processing", "failed": "failed"}


@dataclass(frozen=True)
class Row:
    """One transaction as the page shows it."""

    record: TransactionRecord
    amount: Decimal  # without a sign; the direction says it
    direction: str
    counterparty: str
    tone: str
    operation: Operation | None


@require_safe
@permission_required(VIEW, raise_exception=True)
def transactions(request: StaffRequest) -> HttpResponse:
    """The filters, and what is known of the answer; htmx asks the service, and so does `?read=1` without JavaScript."""
    form = _form(request)
    only_rows = request.htmx and not request.htmx.history_restore_request
    context = _shown(request, form, read="read" in request.GET or bool(only_rows))
    template = "operations/_transactions.html" if only_rows else "operations/transactions.html"
    return render(request, template, context, status=200 if form.is_valid() else 422)


@polled
@require_safe
@permission_required(VIEW, raise_exception=True)
def transactions_now(request: StaffRequest) -> HttpResponse:
    """The rows alone, as the service tells them now, or as it last told them."""
    form = _form(request)
    context = _shown(request, form, read=True)
    return render(request, "operations/_transactions.html", context, status=200 if form.is_valid() else 422)


def _form(request: StaffRequest) -> TransactionPageForm:
    return TransactionPageForm({"per_page": str(PER_PAGE[1]), **request.GET.dict()})


def _shown(request: StaffRequest, form: TransactionPageForm, *, read: bool) -> dict[str, Any]:
    if not form.is_valid():
        return {"form": form}
    asked = form.asked()
    told = ledger.transactions_now(asked) if read else ledger.known_transactions(asked)
    page = told.value.page if told.value else None
    return {
        "form": form,
        "asked": asked,
        "told": told,
        "fresh": read,
        "rows": _rows(request, page) if page else [],
        "previous": asked.page - 1,
        "next": asked.page + 1 if page and asked.page < page.pages else 0,
    }


def _rows(request: StaffRequest, page: TransactionPage) -> list[Row]:
    caused = selectors.operations_by_transaction(
        request.user, [record.transaction_id for record in page.records]
    )
    return [
        Row(
            record,
            abs(record.amount),
            direction(record),
            counterparty(record),
            _TONES.get(record.status, ""),
            caused.get(record.transaction_id),
        )
        for record in page.records
    ]
