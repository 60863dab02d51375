"""Alternatives to our pages and exports, each set up as its documentation recommends, under /rivals/.

The Django admin's list, CSV by Django's streaming example and by django-import-export, paging by OFFSET, and
Jinja2.
"""

import csv
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.template.defaultfilters import pluralize
from django.templatetags.static import static
from django.urls import include, path, reverse
from django.utils import timezone
from import_export import resources
from jinja2 import Environment

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import format_amount, local_day, local_time
from backoffice.ledger.forms import JumpToDayForm, TransactionListForm
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.models import Transaction
from backoffice.ledger.transactions.filters import NEWEST_FIRST, known_facets
from backoffice.operations.pages.transactions import SIGNS, TONES, TransactionRow
from backoffice.reports.definitions.money import TRANSACTIONS


def environment(**options: Any) -> Environment:
    """The Jinja2 environment of the template backend."""
    made = Environment(**{"trim_blocks": True, "lstrip_blocks": True, **options})  # noqa: S701 - the backend sets autoescape
    made.globals.update(
        static=static,
        url=_url,
        local_time=local_time,
        clock=_clock,
        signs=SIGNS,
        tones=TONES,
        local_day=local_day,
    )
    made.filters.update(amount=format_amount, plural=pluralize)
    return made


def _url(name: str, *args: Any) -> str:
    return reverse(name, args=args)


def _clock(moment: Any) -> str:
    return timezone.localtime(moment).strftime("%-d %b %Y, %H:%M:%S %Z")


if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Transaction]
else:
    ModelAdmin = admin.ModelAdmin


class WordFilter(admin.SimpleListFilter):
    """A filter by one value of a facet."""

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        words = sorted({str(getattr(facet, self.parameter_name or "")) for facet in known_facets()})
        return [(word, word) for word in words]

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(**{self.parameter_name or "": self.value()}) if self.value() else queryset


def filter_by(column: str) -> type[WordFilter]:
    """The filter class of one column."""
    return type(f"By{column.title()}", (WordFilter,), {"title": column, "parameter_name": column})


class RivalTransactionAdmin(ModelAdmin):
    """The same columns, filters, order and number of rows as our list."""

    list_display = ("transaction_id", "type", "counterparty", "amount", "currency", "status", "occurred_at")
    list_filter = tuple(filter_by(column) for column in ("currency", "type", "status", "direction"))
    search_fields = ("counterparty", "sender", "username", "business_id", "transaction_id")
    ordering = ("-occurred_at", "-id")
    list_per_page = 50
    show_full_result_count = False
    actions = None

    def has_view_permission(self, _request: HttpRequest, _obj: Transaction | None = None) -> bool:
        return True

    def has_module_permission(self, _request: HttpRequest) -> bool:
        return True

    has_add_permission = has_change_permission = has_delete_permission = lambda *_: False


class RivalAdminSite(admin.AdminSite):
    """An admin site for users signed in to our product."""

    def has_permission(self, _request: HttpRequest) -> bool:
        return True


site = RivalAdminSite(name="admin")
site.register(Transaction, RivalTransactionAdmin)


COLUMNS = [str(column.value) for column in TRANSACTIONS.columns]


class Echo:
    """An object that implements only the write method of the file interface."""

    def write(self, value: str) -> str:
        return value


class RivalTransactionResource(resources.ModelResource):
    """The same columns for django-import-export."""

    class Meta:
        model = Transaction
        fields = COLUMNS
        export_order = COLUMNS
        chunk_size = 2000


def model_csv(request: HttpRequest) -> StreamingHttpResponse:
    """Model instances, one after the other."""
    rows = _newest(request).iterator()
    return _streamed([getattr(row, column) for column in COLUMNS] for row in rows)


def values_csv(request: HttpRequest) -> StreamingHttpResponse:
    """The columns only."""
    return _streamed(_newest(request).values_list(*COLUMNS).iterator())


def import_export_csv(request: HttpRequest) -> HttpResponse:
    """A data set, exported as CSV."""
    resource: Any = RivalTransactionResource  # untyped
    data = resource().export(_newest(request))
    return HttpResponse(data.csv, content_type="text/csv")


def offset(request: StaffRequest) -> HttpResponse:
    """Our own page with LIMIT and OFFSET."""
    at = int(request.GET["at"])
    rows = Transaction.objects.order_by(*NEWEST_FIRST)[at : at + 50]
    form = TransactionListForm(request.GET)
    form.is_valid()
    context = {
        "form": form,
        "jump": JumpToDayForm(request.GET),
        "page": {"rows": rows},
        "rows": [TransactionRow(row, None) for row in rows],
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


urlpatterns = [
    path("rivals/admin/", site.urls),
    path("rivals/model.csv", model_csv),
    path("rivals/values.csv", values_csv),
    path("rivals/import-export.csv", import_export_csv),
    path("rivals/offset/", offset),
    path("", include("backoffice.urls")),
]
