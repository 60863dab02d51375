"""Filters saved under a name: saving the present ones, and looking after one's own."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts.http import StaffRequest
from backoffice.operations import permissions, services
from backoffice.operations.errors import FilterError
from backoffice.operations.forms import FilterForm, SavedFilterForm
from backoffice.operations.models import SavedFilter
from backoffice.operations.selectors import saved_filters


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def filters(request: StaffRequest) -> HttpResponse:
    """All saved filters; with filters in the address, also the form that saves these."""
    present = FilterForm(request.GET)
    if request.method != "POST":
        return _page(request, present, SavedFilterForm())
    form = SavedFilterForm(request.POST)
    if form.is_valid() and _is_savable(present):
        try:
            saved = services.save_filter(request.user, filters=present.typed, **form.cleaned_data)
        except FilterError as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, f"Saved as “{saved.name}”.")
            return redirect(saved)
    return _page(request, present, form, status=422)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def rename(request: StaffRequest, pk: int) -> HttpResponse:
    form = SavedFilterForm(request.POST)
    try:
        if form.is_valid():
            services.rename_filter(pk, actor=request.user, **form.cleaned_data)
            messages.success(request, "The filter is changed.")
        else:
            messages.error(request, "A filter needs a name of at most 60 characters. Nothing was changed.")
    except FilterError as exc:
        messages.error(request, str(exc))
    except SavedFilter.DoesNotExist as exc:
        raise Http404("No such filter of yours") from exc
    return redirect("operations:filters")


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def delete(request: StaffRequest, pk: int) -> HttpResponse:
    services.delete_filter(pk, actor=request.user)
    messages.success(request, "The filter is deleted.")
    return redirect("operations:filters")


def _page(
    request: StaffRequest, present: FilterForm, form: SavedFilterForm, *, status: int = 200
) -> HttpResponse:
    saved = [(one, FilterForm(one.filters)) for one in saved_filters(request.user)]
    context = {"present": present if _is_savable(present) else None, "form": form, "saved": saved}
    return render(request, "operations/filters.html", context, status=status)


def _is_savable(present: FilterForm) -> bool:
    return present.is_valid() and bool(present.typed)
