"""The list of operations with its tabs and filters, and the list of each kind with its totals."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.decorators import permission_required
from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery, Sum
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.http import require_safe

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.fields import EXACT
from backoffice.core.web.forms import ListFilterForm, SearchField, end_of_day, start_of_day
from backoffice.core.web.pagination import (
    PAGE_SIZE,
    Page,
    RowBatch,
    RowReader,
    keyset_page,
    merged_reader,
    paginate,
    queryset_reader,
)
from backoffice.ledger.accounts import cached_supported_wallets
from backoffice.ledger.transactions.filters import known_facets
from backoffice.operations import permissions, selectors
from backoffice.operations.approval.waiting import WaitingOperations, batches_of, is_waiting_for, waiting_for
from backoffice.operations.batches.summary import SHOWN_LABELS, has_open_rows, shown_status
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.registry import KINDS, AnyKind
from backoffice.operations.models.operations import Approval, Operation
from backoffice.operations.models.saved_views import FilteredList
from backoffice.operations.policy import may_decide_any
from backoffice.operations.selectors import (
    IS_OPEN,
    NEWEST_FIRST,
    matches_text,
    saved_views_for,
)
from backoffice.operations.states import Status
from payments_gateway.money import CURRENCIES

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

ALL_TAB = "all"
TABS: dict[str, tuple["StrOrPromise", Callable[[User], Q]]] = {
    "waiting": (_("Waiting for me"), is_waiting_for),
    "open": (pgettext_lazy("operations", "Open"), lambda _user: IS_OPEN),
    "done": (pgettext_lazy("operations", "Closed"), lambda _user: ~IS_OPEN & ~has_open_rows()),
    ALL_TAB: (pgettext_lazy("operations", "All"), lambda _user: Q()),
}


@dataclass(frozen=True)
class OperationFilter:
    """The filters of a list or report of operations; empty means all."""

    kind: str = ""
    status: str = ""
    currency: str = ""
    preparer: User | None = None
    approved_by: User | None = None  # in the own right, or as a stand-in
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    same_recipient_as: str = ""
    batch: str = ""
    within: Q = field(default_factory=Q)

    def apply(self, operations: QuerySet[Operation]) -> QuerySet[Operation]:
        """The operations that match every filter; times are those of preparation, `until` excluded.

        The status of batches, where only they are listed, is the one shown of their rows.
        """
        of_rows = self.kind == BatchKind.name and bool(self.status)
        if of_rows:
            operations = operations.alias(shown_status=shown_status()).filter(shown_status=self.status)
        chosen = {
            "kind": self.kind,
            "status": "" if of_rows else self.status,
            "currency": self.currency,
            "preparer": self.preparer,
            "prepared_at__gte": self.since,
            "prepared_at__lt": self.until,
        }
        operations = operations.filter(
            self.within, **{name: value for name, value in chosen.items() if value}
        )
        if self.same_recipient_as:
            operations = operations.filter(recipient_key=_recipient_of(self.same_recipient_as))
        if self.approved_by:
            given = Approval.objects.filter(operation=OuterRef("pk"), approver=self.approved_by)
            operations = operations.filter(Exists(given))
        if self.batch:
            operations = operations.filter(batch_row__batch__reference=self.batch)
        return operations.filter(matches_text(self.text)) if self.text else operations


def _recipient_of(reference: str) -> Subquery:
    """The recipient of this operation. Links carry its reference, since URLs are logged."""
    return Subquery(Operation.objects.filter(reference=reference).values("recipient_key"))


CURRENCIES_KEPT_SECONDS = 30.0


def currency_choices() -> list[tuple[str, "StrOrPromise"]]:
    """The currencies that operations can be in, at most `CURRENCIES_KEPT_SECONDS` old."""
    codes = cached_in_process("filter-currencies", _known_currencies, CURRENCIES_KEPT_SECONDS)
    return [("", _("All currencies")), *((code, code) for code in codes)]


def _known_currencies() -> list[str]:
    """Those of the balances, then those of the provider's wallets and transactions.

    Not those of the operations: no index lists them, and there may be many operations.
    """
    found = {*cached_supported_wallets(), *(facet.currency for facet in known_facets())}
    return [*CURRENCIES, *sorted(found - {*CURRENCIES, ""})]


class OperationFilterForm(ListFilterForm):
    """The filters of the list of operations; a report of operations reads the same names.

    Browsers submit the first choice if none was selected: in each list it is the one that filters nothing.
    """

    display_fields = frozenset({"tab"})

    tab = forms.ChoiceField(
        required=False,
        label=_("List"),
        choices=[(name, TABS[name][0]) for name in sorted(TABS, key=lambda name: name != ALL_TAB)],
    )
    text = SearchField(
        required=False,
        label=pgettext_lazy("noun", "Search"),
        max_length=200,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("Reference, name, amount or memo")}),
    )
    kind = forms.ChoiceField(
        label=_("Kind"),
        required=False,
        choices=[("", _("All kinds")), *((kind.name, kind.label) for kind in KINDS.values())],
    )
    status = forms.ChoiceField(
        label=_("Status"), required=False, choices=[("", _("All statuses")), *Status.choices]
    )
    currency = forms.ChoiceField(label=_("Currency"), required=False, choices=currency_choices)
    mine = forms.BooleanField(required=False, label=_("Prepared by me"))
    same_recipient_as = forms.CharField(
        required=False, label=_("Same recipient as"), max_length=12, widget=forms.HiddenInput
    )
    approved_by = forms.ModelChoiceField(
        label=_("Approved by"), required=False, queryset=User.objects.all(), widget=forms.HiddenInput
    )
    batch = forms.CharField(required=False, label=_("Rows of batch"), max_length=12, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if labels := _own_status_labels(self.data.get("kind", "")):
            field: Any = self.fields["status"]
            field.choices = [(value, labels.get(value, label)) for value, label in field.choices]

    def chosen(self, user: User) -> OperationFilter:
        """The filter to apply. Call only on a valid form."""
        values = self.cleaned_data
        within = TABS[values["tab"] or ALL_TAB][1](user)
        if values["tab"] == "open":
            within |= has_open_rows()
        return replace(self.in_every_tab(user), within=within)

    def in_every_tab(self, user: User) -> OperationFilter:
        """The same without the tab."""
        values = self.cleaned_data
        return OperationFilter(
            kind=values["kind"],
            status=values["status"],
            currency=values["currency"],
            preparer=user if values["mine"] else None,
            since=start_of_day(values["since"]) if values["since"] else None,
            until=end_of_day(values["until"]) if values["until"] else None,
            text=values["text"],
            same_recipient_as=values["same_recipient_as"],
            approved_by=values["approved_by"],
            batch=values["batch"],
        )


def _own_status_labels(kind: str) -> Mapping[str, "StrOrPromise"]:
    """What the statuses of this kind are called, where that differs from other kinds."""
    if kind == BatchKind.name:
        return SHOWN_LABELS
    of_success = KINDS[kind].success_label if kind in KINDS else None
    return {Status.SUCCEEDED: of_success} if of_success else {}


class KindFilterForm(OperationFilterForm):
    """The same for the operations of one kind, on its own page: neither kind nor tab can be chosen."""

    display_fields = frozenset({"kind", "tab"})
    fixed_fields = frozenset({"kind", "tab"})


@dataclass(frozen=True)
class OperationTotal:
    """The number of operations of one currency in one status, and the sum of their amounts, without fees."""

    currency: str
    status: str
    count: int
    amount: Decimal


def operation_totals(found: QuerySet[Operation]) -> list[OperationTotal]:
    """The exact totals by currency and status, in the order of an operation's life. One query."""
    groups = found.order_by().values("currency", "status")
    if connection.vendor == "postgresql":
        totals = groups.annotate(count=Count("pk"), sum=Sum("amount"))
        rows = [OperationTotal(*row) for row in totals.values_list("currency", "status", "count", "sum")]
    else:
        rows = _added_up(groups.values_list("currency", "status", "amount").annotate(count=Count("pk")))
    order = list(Status)
    return sorted(rows, key=lambda row: (row.currency, order.index(Status(row.status))))


def _added_up(counted: Iterable[tuple[str, str, Decimal | None, int]]) -> list[OperationTotal]:
    """SQLite has no exact sum, so it only counts equal amounts."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    sums: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    with localcontext(EXACT):
        for currency, status, amount, count in counted:
            counts[currency, status] += count
            sums[currency, status] += (amount or Decimal(0)) * count
    return [OperationTotal(*key, count, sums[key]) for key, count in counts.items()]


SAVED_SHOWN = 8


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def operation_list(request: StaffRequest) -> HttpResponse:
    """One tab of operations, narrowed by the filters in the URL; only the rows for htmx."""
    form = OperationFilterForm({**request.GET.dict(), "tab": _tab(request)})
    page = _page(request.user, form, request.GET.get("cursor"))
    context = {
        "form": form,
        "tab": form.data["tab"],
        "tabs": _tabs(request.user),
        "saved": saved_views_for(request.user, FilteredList.OPERATIONS)[:SAVED_SHOWN],
        "page": page,
    }
    if form.data["tab"] == "waiting" and not form.is_filtered and page.is_only:
        context["waiting_count"] = len(page.rows)  # in the page header, which then agrees with the list
    return render_list(request, "operations/list.html", context)


def _page(person: User, form: OperationFilterForm, cursor: str | None) -> Page[Operation]:
    visible = selectors.visible_operations(person)
    if not form.is_valid():
        return keyset_page(visible.none(), order=NEWEST_FIRST, cursor=cursor)
    if form.cleaned_data["tab"] == "waiting" and not form.cleaned_data["batch"]:
        return _waiting_page(person, form.in_every_tab(person), cursor)
    if form.cleaned_data["tab"] == "open" and form.in_every_tab(person) == OperationFilter():
        return _open_page(visible, cursor)
    return keyset_page(form.chosen(person).apply(visible), order=NEWEST_FIRST, cursor=cursor)


def _waiting_page(person: User, filters: OperationFilter, cursor: str | None) -> Page[Operation]:
    """What waits for this user, with one line for each batch whose rows can be sent.

    Two queries besides those of `waiting_for`. Those of the first page without filters are compiled once.
    """
    waiting, visible = waiting_for(person), selectors.visible_operations(person)
    if filters == OperationFilter() and not cursor:
        newest = merged_reader(
            lambda *_: RowBatch(waiting.find(_newest_alone)),
            lambda *_: RowBatch(waiting.find(_newest_batches)),
        )
        return paginate(newest, order=NEWEST_FIRST, cursor=None)
    operations = waiting.operations
    alone = filters.apply(visible.filter(operations.alone))
    batches = visible.filter(batches_of(_rows_of_batches(visible.filter(operations.rows), filters)))
    return paginate(_merged(alone, batches), order=NEWEST_FIRST, cursor=cursor)


def _newest_alone(waiting: WaitingOperations) -> QuerySet[Operation]:
    return _first_page(selectors.all_operations().filter(waiting.alone))


def _newest_batches(waiting: WaitingOperations) -> QuerySet[Operation]:
    operations = selectors.all_operations()
    return _first_page(operations.filter(batches_of(operations.filter(waiting.rows))))


def _first_page(operations: QuerySet[Operation]) -> QuerySet[Operation]:
    """With one more, which shows that there is a next page."""
    return operations.order_by(*NEWEST_FIRST)[: PAGE_SIZE + 1]


def _merged(*found: QuerySet[Operation]) -> RowReader[Operation]:
    return merged_reader(*map(queryset_reader, found))


def waiting_operations(person: User, form: OperationFilterForm) -> QuerySet[Operation]:
    """What waits for this user, as the list filters it, with the rows of each batch instead of it. `form` is valid."""
    visible, filters = selectors.visible_operations(person), form.in_every_tab(person)
    if filters.batch or (filters.kind != BatchKind.name and not filters.text):
        return form.chosen(person).apply(visible)
    waiting = waiting_for(person).operations
    alone = filters.apply(visible.filter(waiting.alone))
    rows = _rows_of_batches(visible.filter(waiting.rows), filters)
    return visible.filter(Q(pk__in=alone.order_by().values("pk")) | Q(pk__in=rows.order_by().values("pk")))


def _open_page(visible: QuerySet[Operation], cursor: str | None) -> Page[Operation]:
    """What is open, with one line for each batch that has open rows. Two queries. Filters list the rows themselves."""
    single = visible.filter(IS_OPEN, batch_row__isnull=True)
    batches = visible.filter(batches_of(visible.filter(IS_OPEN, batch_row__isnull=False)))
    return paginate(_merged(single, batches.exclude(IS_OPEN)), order=NEWEST_FIRST, cursor=cursor)


def _rows_of_batches(rows: QuerySet[Operation], filters: OperationFilter) -> QuerySet[Operation]:
    """Those that match the filters themselves, or as rows of a batch that does: by its kind, or by the text."""
    kind = "" if filters.kind == BatchKind.name else filters.kind
    rows = replace(filters, kind=kind, text="").apply(rows)
    if not filters.text:
        return rows
    named = Operation.objects.filter(matches_text(filters.text), kind=BatchKind.name)
    return rows.filter(matches_text(filters.text) | Q(batch_row__batch__in=named))


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def kind_list(request: StaffRequest, slug: str) -> HttpResponse:
    """The operations of one kind with their totals, narrowed by the filters in the URL."""
    kind = next((kind for kind in KINDS.values() if kind.page and kind.page.slug == slug), None)
    if kind is None:
        raise Http404
    found = selectors.visible_operations(request.user)
    return render_list(request, "operations/kind.html", kind_context(request, kind, found))


def kind_context(
    request: StaffRequest, kind: AnyKind, visible: QuerySet[Operation], *, size: int = PAGE_SIZE
) -> dict[str, Any]:
    """What the page of a kind shows, of the operations that the user may see."""
    form = KindFilterForm({**request.GET.dict(), "kind": kind.name, "tab": ""})
    found = form.chosen(request.user).apply(visible) if form.is_valid() else visible.none()
    return {
        "form": form,
        "kind": kind,
        "totals": operation_totals(found),
        "page": keyset_page(found, order=NEWEST_FIRST, cursor=request.GET.get("cursor"), size=size),
    }


def render_list(request: StaffRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """The page of a list of operations; only the list for htmx."""
    only_rows = request.htmx and not request.htmx.history_restore_request
    return render(
        request,
        "operations/_operation_list.html" if only_rows else template,
        {**context, "only_rows": only_rows},
        status=200 if context["form"].is_valid() else 422,
    )


def _tabs(person: User) -> list[tuple[str, str]]:
    """Name and label of the tabs; without "waiting" for a user who takes no decisions."""
    return [
        (name, str(label))
        for name, (label, _within) in TABS.items()
        if name != "waiting" or may_decide_any(person)
    ]


def _tab(request: StaffRequest) -> str:
    """The tab in the URL, or the first one this user has."""
    names = [name for name, _ in _tabs(request.user)]
    chosen = request.GET.get("tab", "")
    return chosen if chosen in names else names[0]
