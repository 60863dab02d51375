"""Alternatives to our pages and exports, each set up as its documentation recommends, under /rivals/.

The Django admin's list, CSV by Django's streaming example and by django-import-export, paging by OFFSET, and
Jinja2.
"""

import csv
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.messages.storage.fallback import FallbackStorage
from django.db import connection
from django.db.models import QuerySet
from django.forms.renderers import Jinja2
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.template import engines
from django.template.defaultfilters import pluralize
from django.template.loader import get_template
from django.templatetags.static import static
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import include, path, resolve, reverse
from django_htmx.middleware import HtmxDetails
from import_export import resources
from jinja2 import Environment

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.templatetags import display
from backoffice.core.web.formatting import exact_time, format_amount, local_day, local_time
from backoffice.core.web.middleware import environment
from backoffice.ledger.forms import JumpToDayForm, TransactionListForm
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.models import Transaction
from backoffice.ledger.transactions.filters import NEWEST_FIRST, known_facets
from backoffice.ledger.transactions.listing import transaction_page
from backoffice.operations.pages.context_processors import payments_pause, waiting_count
from backoffice.operations.pages.transactions import SIGNS, TONES, TransactionRow
from backoffice.reports.definitions.money import TRANSACTIONS
from tools.bench.measure import OURS, alternate


def jinja2_environment(**options: Any) -> Environment:
    """The Jinja2 environment of the template backend."""
    made = Environment(**{"trim_blocks": True, "lstrip_blocks": True, **options})  # noqa: S701 - the backend sets autoescape
    made.globals.update(
        static=static,
        url=lambda name, *args: reverse(name, args=args),
        local_time=local_time,
        clock=exact_time,
        signs=SIGNS,
        tones=TONES,
        local_day=local_day,
        time_zone=display.time_zone,
    )
    made.filters.update(amount=format_amount, plural=pluralize)
    return made


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


PATH = "/transactions/"
AT_ONCE = 20
"""Pages rendered for one value: a single one takes less than the resolution of the clock."""


class BothPages:
    """Both pages of the same rows, ready to render."""

    def __init__(self, user: User) -> None:
        self.request = cast(Any, RequestFactory().get(PATH))
        self.request.user = user
        self.request.resolver_match = resolve(PATH)
        self.request.htmx = HtmxDetails(self.request)
        self.request.session = {}
        self.request._messages = FallbackStorage(self.request)
        form = TransactionListForm(self.request.GET)
        form.is_valid()
        self.page = transaction_page(form.transaction_filter(), order=form.order, cursor=None)
        self.rows = [TransactionRow(row, None) for row in self.page.rows]
        self.mirror = mirror_state()
        self.ours_template = get_template("operations/transactions.html")
        self.rival_template = engines["jinja2"].get_template("transactions.html")
        self.rival_renderer = Jinja2()
        self.places = menu_items(self.ours())

    def ours(self) -> str:
        """The page as users get it."""
        return str(
            self.ours_template.render(self._context(TransactionListForm(self.request.GET)), self.request)
        )

    def rival(self) -> str:
        """The same in Jinja2, including its form, with the values of our context processors."""
        form = TransactionListForm(self.request.GET, renderer=self.rival_renderer)
        context = {
            **self._context(form),
            **environment(self.request),
            **waiting_count(self.request),
            **payments_pause(self.request),
            "user": self.request.user,
            "perms": _Permissions(self.request.user),
            "places": self.places,
            "query": self._query,
        }
        return str(self.rival_template.render(context, self.request))

    def _context(self, form: TransactionListForm) -> dict[str, Any]:
        form.is_valid()
        jump = JumpToDayForm(self.request.GET, renderer=form.renderer)
        return {"form": form, "jump": jump, "page": self.page, "rows": self.rows, "mirror": self.mirror}

    def _query(self, **changes: Any) -> str:
        """Like the template tag "querystring"."""
        query = self.request.GET.copy()
        for name, value in changes.items():
            if value is None:
                query.pop(name, None)
            else:
                query[name] = str(value)
        return f"?{query.urlencode()}" if query else ""


class _Permissions:
    """`perms.app.codename`, as used by templates."""

    def __init__(self, user: User, app: str = "") -> None:
        self._user, self._app = user, app

    def __getattr__(self, name: str) -> Any:
        return self._user.has_perm(f"{self._app}.{name}") if self._app else _Permissions(self._user, name)


def menu_items(html: str) -> list[tuple[str, ...]]:
    """The menu of our page, for the alternative's template, which then needs neither permissions nor URLs."""
    [menu] = re.findall(r'<nav class="side" aria-label="Main">(.*?)</nav>', html, re.DOTALL)
    return re.findall(r'<h2>(.*?)</h2>|<a href="(.*?)"(.*?)>(.*?)</a>', menu, re.DOTALL)


def normalized_html(html: str) -> str:
    """The page without white space between tags and without the CSRF token, which is masked anew each time."""
    html = re.sub(r'(name="csrfmiddlewaretoken" value=")[^"]*', r"\1", html)
    return re.sub(r"\s+", " ", re.sub(r"\s*(<[^>]*>)\s*", r"\1", html)).strip()


def measure_rendering(user: User, rounds: int, cookie: str) -> dict[str, Any]:
    """Milliseconds of both in each round, whether both pages are equal, and the queries of ours."""
    sides = BothPages(user)
    is_same = normalized_html(sides.ours()) == normalized_html(sides.rival())
    found = alternate(rounds, {OURS: lambda: _timed(sides.ours), "Jinja2": lambda: _timed(sides.rival)})
    return {
        "same": is_same,
        "rows": len(sides.rows),
        "queries": _queries(cookie),
        **{name: one.values for name, one in found.items()},
    }


def _queries(cookie: str) -> int:
    """The number of queries of the whole page in a warm process."""
    client = Client(headers={"host": "127.0.0.1", "cookie": cookie})
    client.get(PATH)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(PATH)
    if answer.status_code != 200:
        raise ValueError(f"{PATH} answered {answer.status_code}")
    return len(queries)


def _timed(draw: Callable[[], str]) -> float:
    """Milliseconds of CPU time, since rendering waits for nothing."""
    began = time.process_time()
    for _ in range(AT_ONCE):
        draw()
    return (time.process_time() - began) * 1000 / AT_ONCE


urlpatterns = [
    path("rivals/admin/", site.urls),
    path("rivals/model.csv", model_csv),
    path("rivals/values.csv", values_csv),
    path("rivals/import-export.csv", import_export_csv),
    path("rivals/offset/", offset),
    path("", include("backoffice.urls")),
]
