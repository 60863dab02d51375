"""CSV as Django's documentation has it ("Streaming large CSV files") and by django-import-export; paging by OFFSET."""

import csv
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from import_export import resources

from backoffice.accounts.http import StaffRequest
from backoffice.ledger.chosen import NEWEST_FIRST
from backoffice.ledger.forms import JumpForm, TransactionListForm
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.mirrored import Transaction
from backoffice.operations.transaction_rows import Row
from backoffice.reports.transactions_report import TRANSACTIONS

COLUMNS = [str(column.value) for column in TRANSACTIONS.columns]


class Echo:
    """An object that implements just the write method of the file-like interface."""

    def write(self, value: str) -> str:
        return value


class TransactionResource(resources.ModelResource):
    """The same columns for django-import-export."""

    class Meta:
        model = Transaction
        fields = COLUMNS
        export_order = COLUMNS
        chunk_size = 2000


def model_csv(request: HttpRequest) -> StreamingHttpResponse:
    """Instances of the model, one after the other."""
    rows = _newest(request).iterator()
    return _streamed([getattr(row, column) for column in COLUMNS] for row in rows)


def values_csv(request: HttpRequest) -> StreamingHttpResponse:
    """The columns alone."""
    return _streamed(_newest(request).values_list(*COLUMNS).iterator())


def import_export_csv(request: HttpRequest) -> HttpResponse:
    """A data set, and the data set as CSV."""
    resource: Any = TransactionResource  # untyped
    data = resource().export(_newest(request))
    return HttpResponse(data.csv, content_type="text/csv")


def offset(request: StaffRequest) -> HttpResponse:
    """Our own page, found by LIMIT and OFFSET."""
    at = int(request.GET["at"])
    rows = Transaction.objects.order_by(*NEWEST_FIRST)[at : at + 50]
    form = TransactionListForm(request.GET)
    form.is_valid()
    context = {
        "form": form,
        "jump": JumpForm(request.GET),
        "page": {"rows": rows},
        "rows": [Row(row, None) for row in rows],
    }
    return render(request, "operations/transactions.html", {**context, "mirror": mirror_state()})


def _newest(request: HttpRequest) -> QuerySet[Transaction]:
    return Transaction.objects.order_by(*NEWEST_FIRST)[: int(request.GET["rows"])]


def _streamed(rows: Iterable[Iterable[Any]]) -> StreamingHttpResponse:
    writer = csv.writer(Echo())

    def lines() -> Iterator[str]:
        yield writer.writerow(COLUMNS)
        for row in rows:
            yield writer.writerow(row)

    return StreamingHttpResponse(lines(), content_type="text/csv")
