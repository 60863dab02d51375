"""The list of operations: its tabs, its filters, and saved filters (those of transactions, too)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet, Subquery
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import ListFilterForm, end_of_day, start_of_day
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger.forms import TransactionListForm
from backoffice.operations import permissions, selectors
from backoffice.operations.errors import SavedFilterError
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.saved_items import FilteredList, SavedFilter
from backoffice.operations.policy import may_decide_any
from backoffice.operations.selectors import IS_OPEN, NEWEST_FIRST, is_waiting_for, matches_text
from backoffice.operations.states import Status
from payments_gateway.money import CURRENCIES

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

ALL_TAB = "all"
TABS: dict[str, tuple["StrOrPromise", Callable[[User], Q]]] = {
    "waiting": (_("Waiting for me"), is_waiting_for),
    "open": (pgettext_lazy("operations", "Open"), lambda _user: IS_OPEN),
    "done": (pgettext_lazy("operations", "Done"), lambda _user: ~IS_OPEN),
    ALL_TAB: (pgettext_lazy("operations", "All"), lambda _user: Q()),
}


@dataclass(frozen=True)
class OperationFilter:
    """The filters of a list or report of operations; empty means all."""

    kind: str = ""
    status: str = ""
    currency: str = ""
    preparer: User | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    same_recipient_as: str = ""
    within: Q = field(default_factory=Q)

    def apply(self, operations: QuerySet[Operation]) -> QuerySet[Operation]:
        """The operations that match every filter; times are those of preparation, `until` excluded."""
        chosen = {
            "kind": self.kind,
            "status": self.status,
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
        return operations.filter(matches_text(self.text)) if self.text else operations


def _recipient_of(reference: str) -> Subquery:
    """The recipient of this operation. Links carry its reference, since URLs are logged."""
    return Subquery(Operation.objects.filter(reference=reference).values("recipient_key"))


def saved_filters_for(user: User, of: FilteredList) -> QuerySet[SavedFilter]:
    """This user's own of one list, and those that active colleagues share; own first."""
    shared = Q(is_shared=True, person__is_active=True)
    found = SavedFilter.objects.filter(Q(person=user) | shared, list_name=of).select_related("person")
    return found.annotate(is_own=Q(person=user)).order_by("-is_own", "name", "pk")


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
    text = forms.CharField(
        required=False,
        label=pgettext_lazy("noun", "Search"),
        max_length=200,
        widget=forms.TextInput(attrs={"type": "search", "placeholder": _("Reference, name or bank")}),
    )
    kind = forms.ChoiceField(
        label=_("Kind"),
        required=False,
        choices=[("", _("All kinds")), *((kind.name, kind.label) for kind in KINDS.values())],
    )
    status = forms.ChoiceField(
        label=_("Status"), required=False, choices=[("", _("Any status")), *Status.choices]
    )
    currency = forms.ChoiceField(
        label=_("Currency"),
        required=False,
        choices=[("", _("Any currency")), *((code, code) for code in CURRENCIES)],
    )
    mine = forms.BooleanField(required=False, label=_("Prepared by me"))
    same_recipient_as = forms.CharField(
        required=False, label=_("Same recipient as"), max_length=12, widget=forms.HiddenInput
    )

    def chosen(self, user: User) -> OperationFilter:
        """The filter to apply. Call only on a valid form."""
        values = self.cleaned_data
        return OperationFilter(
            within=TABS[values["tab"] or ALL_TAB][1](user),
            kind=values["kind"],
            status=values["status"],
            currency=values["currency"],
            preparer=user if values["mine"] else None,
            since=start_of_day(values["since"]) if values["since"] else None,
            until=end_of_day(values["until"]) if values["until"] else None,
            text=values["text"],
            same_recipient_as=values["same_recipient_as"],
        )


class SavedFilterForm(forms.Form):
    """The name of a saved filter, and who sees it."""

    name = forms.CharField(
        max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}), label=_("Filter name")
    )
    is_shared = forms.BooleanField(required=False, label=_("Share with the team"))


SAVED_SHOWN = 8


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def operation_list(request: StaffRequest) -> HttpResponse:
    """One tab of operations, narrowed by the filters in the URL; only the rows for htmx."""
    form = OperationFilterForm({**request.GET.dict(), "tab": _tab(request)})
    found = selectors.visible_operations(request.user)
    found = form.chosen(request.user).apply(found) if form.is_valid() else found.none()
    context = {
        "form": form,
        "tab": form.data["tab"],
        "tabs": _tabs(request.user),
        "saved": saved_filters_for(request.user, FilteredList.OPERATIONS)[:SAVED_SHOWN],
        "page": keyset_page(found, order=NEWEST_FIRST, cursor=request.GET.get("cursor")),
    }
    only_rows = request.htmx and not request.htmx.history_restore_request
    template = "operations/_operation_list.html" if only_rows else "operations/list.html"
    return render(request, template, context, status=200 if form.is_valid() else 422)


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


MAX_SAVED_FILTERS = 20


@transaction.atomic
def save_filter(
    actor: User, *, of: FilteredList, name: str, filters: dict[str, str], is_shared: bool
) -> SavedFilter:
    """Save the filters. Raises SavedFilterError if the name is used already, or the limit is reached."""
    User.objects.get_locked(actor.pk)
    if SavedFilter.objects.filter(person=actor).count() >= MAX_SAVED_FILTERS:
        raise SavedFilterError(
            gettext(
                "Not saved: you have {n} saved filters, the maximum. Delete one, then save again."
            ).format(n=MAX_SAVED_FILTERS)
        )
    return _store_filter(
        SavedFilter(person=actor, list_name=of, name=name, filters=filters, is_shared=is_shared)
    )


@transaction.atomic
def rename_filter(pk: int, *, actor: User, name: str, is_shared: bool) -> SavedFilter:
    """Change the name and visibility of one's own filter.

    Raises SavedFilterError; SavedFilter.DoesNotExist for another user's.
    """
    saved = SavedFilter.objects.select_for_update().get(pk=pk, person=actor)
    saved.name, saved.is_shared = name, is_shared
    return _store_filter(saved)


def delete_filter(pk: int, *, actor: User) -> None:
    """Delete one's own filter; does nothing if it does not exist or is another user's."""
    SavedFilter.objects.filter(pk=pk, person=actor).delete()


def _store_filter(saved: SavedFilter) -> SavedFilter:
    try:
        with transaction.atomic():
            saved.save()
    except IntegrityError as exc:
        raise SavedFilterError(
            gettext("You already have a filter named “{name}”. Enter another name.").format(name=saved.name)
        ) from exc
    return saved


LIST_PERMISSIONS = {
    FilteredList.OPERATIONS: permissions.VIEW,
    FilteredList.TRANSACTIONS: "ledger.view_transaction",
}
LIST_FORMS: dict[FilteredList, type[ListFilterForm]] = {
    FilteredList.OPERATIONS: OperationFilterForm,
    FilteredList.TRANSACTIONS: TransactionListForm,
}
SAVED_FILTER_URLS = {
    FilteredList.OPERATIONS: "operations:saved_filters",
    FilteredList.TRANSACTIONS: "operations:saved_transaction_filters",
}


@require_http_methods(["GET", "HEAD", "POST"])
def saved_filter_list(request: StaffRequest, of: FilteredList) -> HttpResponse:
    """All saved filters of one list; with filters in the URL, also the form that saves these."""
    if not request.user.has_perm(LIST_PERMISSIONS[of]):
        raise PermissionDenied
    present = LIST_FORMS[of](request.GET)
    if request.method != "POST":
        return _saved_filters_page(request, of, present, SavedFilterForm())
    form = SavedFilterForm(request.POST)
    if form.is_valid() and _is_savable(present):
        try:
            saved = save_filter(request.user, of=of, filters=present.query, **form.cleaned_data)
        except SavedFilterError as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, gettext("Filter “{name}” saved.").format(name=saved.name))
            return redirect(saved)
    return _saved_filters_page(request, of, present, form, status=422)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def saved_filter_rename(request: StaffRequest, pk: int) -> HttpResponse:
    """Rename one's own filter or change its visibility; if refused, its form keeps the input."""
    saved = get_object_or_404(SavedFilter, pk=pk, person=request.user)
    form = SavedFilterForm(request.POST, auto_id=f"filter_{pk}_%s")
    if form.is_valid():
        try:
            rename_filter(pk, actor=request.user, **form.cleaned_data)
        except SavedFilterError as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, gettext("Filter updated."))
            return redirect(SAVED_FILTER_URLS[FilteredList(saved.list_name)])
    of = FilteredList(saved.list_name)
    return _saved_filters_page(
        request, of, LIST_FORMS[of](), SavedFilterForm(), status=422, refused={pk: form}
    )


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def saved_filter_delete(request: StaffRequest, pk: int) -> HttpResponse:
    """Delete one's own filter; back to its list, or to that of operations if it does not exist."""
    saved = SavedFilter.objects.filter(pk=pk, person=request.user).first()
    delete_filter(pk, actor=request.user)
    messages.success(request, gettext("Filter deleted."))
    return redirect(SAVED_FILTER_URLS[FilteredList(saved.list_name) if saved else FilteredList.OPERATIONS])


def _saved_filters_page(
    request: StaffRequest,
    of: FilteredList,
    present: ListFilterForm,
    form: SavedFilterForm,
    *,
    status: int = 200,
    refused: Mapping[int, SavedFilterForm] = MappingProxyType({}),
) -> HttpResponse:
    """All saved filters, each with the form that changes it; the refused form, if there is one."""
    saved = [
        (one, LIST_FORMS[of](one.filters), refused.get(one.pk) or _rename_form(one))
        for one in saved_filters_for(request.user, of)
    ]
    context = {
        "of": of,
        "present": present if _is_savable(present) else None,
        "form": form,
        "saved": saved,
    }
    return render(request, "operations/saved_filters.html", context, status=status)


def _rename_form(saved: SavedFilter) -> SavedFilterForm:
    initial = {"name": saved.name, "is_shared": saved.is_shared}
    return SavedFilterForm(initial=initial, auto_id=f"filter_{saved.pk}_%s")


def _is_savable(present: ListFilterForm) -> bool:
    return present.is_valid() and bool(present.query)
