"""Filters saved under a name: saving the present ones, and looking after one's own."""

from collections.abc import Mapping
from types import MappingProxyType

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts.http import StaffRequest
from backoffice.core.filters import NarrowingForm
from backoffice.ledger.forms import TransactionListForm
from backoffice.operations import permissions, services
from backoffice.operations.errors import FilterError
from backoffice.operations.forms import FilterForm, SavedFilterForm
from backoffice.operations.models import List, SavedFilter
from backoffice.operations.selectors import saved_filters

PERMISSIONS = {List.OPERATIONS: permissions.VIEW, List.TRANSACTIONS: "ledger.view_transaction"}
FORMS: dict[List, type[NarrowingForm]] = {
    List.OPERATIONS: FilterForm,
    List.TRANSACTIONS: TransactionListForm,
}
ADDRESSES = {
    List.OPERATIONS: "operations:filters",
    List.TRANSACTIONS: "operations:transaction_filters",
}


@require_http_methods(["GET", "HEAD", "POST"])
def filters(request: StaffRequest, of: List) -> HttpResponse:
    """All saved filters of one list; with filters in the address, also the form that saves these."""
    if not request.user.has_perm(PERMISSIONS[of]):
        raise PermissionDenied
    present = FORMS[of](request.GET)
    if request.method != "POST":
        return _page(request, of, present, SavedFilterForm())
    form = SavedFilterForm(request.POST)
    if form.is_valid() and _is_savable(present):
        try:
            saved = services.save_filter(request.user, of=of, filters=present.typed, **form.cleaned_data)
        except FilterError as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, f"Saved as “{saved.name}”.")
            return redirect(saved)
    return _page(request, of, present, form, status=422)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def rename(request: StaffRequest, pk: int) -> HttpResponse:
    """Change the name of one's own, and who sees it; if that cannot be, its form stays open with what was typed."""
    saved = get_object_or_404(SavedFilter, pk=pk, person=request.user)
    form = SavedFilterForm(request.POST, auto_id=f"filter_{pk}_%s")
    if form.is_valid():
        try:
            services.rename_filter(pk, actor=request.user, **form.cleaned_data)
        except FilterError as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, "The filter is changed.")
            return redirect(ADDRESSES[List(saved.of)])
    of = List(saved.of)
    return _page(request, of, FORMS[of](), SavedFilterForm(), status=422, refused={pk: form})


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def delete(request: StaffRequest, pk: int) -> HttpResponse:
    """Forget one's own; back to the page of its list, or to that of operations if it is gone already."""
    saved = SavedFilter.objects.filter(pk=pk, person=request.user).first()
    services.delete_filter(pk, actor=request.user)
    messages.success(request, "The filter is deleted.")
    return redirect(ADDRESSES[List(saved.of) if saved else List.OPERATIONS])


def _page(
    request: StaffRequest,
    of: List,
    present: NarrowingForm,
    form: SavedFilterForm,
    *,
    status: int = 200,
    refused: Mapping[int, SavedFilterForm] = MappingProxyType({}),
) -> HttpResponse:
    """All saved filters, each with the form that changes it: the refused one, where there is one."""
    saved = [
        (one, FORMS[of](one.filters), refused.get(one.pk) or _changing(one))
        for one in saved_filters(request.user, of)
    ]
    context = {
        "of": of,
        "present": present if _is_savable(present) else None,
        "form": form,
        "saved": saved,
    }
    return render(request, "operations/filters.html", context, status=status)


def _changing(saved: SavedFilter) -> SavedFilterForm:
    initial = {"name": saved.name, "is_shared": saved.is_shared}
    return SavedFilterForm(initial=initial, auto_id=f"filter_{saved.pk}_%s")


def _is_savable(present: NarrowingForm) -> bool:
    return present.is_valid() and bool(present.typed)
