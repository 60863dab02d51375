"""Saved views: the filters of a list of operations or transactions under a name, one's own or shared."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import DatePreset, ListFilterForm, PageForm, query_of_stored
from backoffice.ledger.forms import TransactionListForm
from backoffice.operations import permissions
from backoffice.operations.errors import SavedViewError
from backoffice.operations.models.saved_views import FilteredList, SavedView
from backoffice.operations.pages.operation_list import OperationFilterForm
from backoffice.operations.selectors import saved_views_for


class SavedViewForm(PageForm):
    """The name of a saved view, and who sees it."""

    name = forms.CharField(
        max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}), label=_("View name")
    )
    is_shared = forms.BooleanField(required=False, label=_("Share with the team"))


class NewViewForm(SavedViewForm):
    """The same for new views; if the filters have the days of a preset, also whether these move with the calendar, and
    as which preset: a day may be the first of several.
    """

    preset = forms.TypedChoiceField(
        required=False, label=_("Period"), coerce=DatePreset, empty_value=None, choices=[]
    )

    def __init__(self, *args: Any, presets: Sequence[DatePreset] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not presets:
            del self.fields["preset"]
            return
        moving = gettext("Update the period every day: {period}")
        field: Any = self.fields["preset"]
        field.choices = [
            *((preset.value, moving.format(period=preset.label)) for preset in presets),
            ("", gettext("Keep these days")),
        ]
        field.initial = presets[0].value


MAX_SAVED_VIEWS = 20


@transaction.atomic
def save_view(
    actor: User, *, of: FilteredList, name: str, filters: dict[str, str], is_shared: bool
) -> SavedView:
    """Save the filters. Raises SavedViewError if the name is used already, or the limit is reached."""
    User.objects.get_locked(actor.pk)
    if SavedView.objects.filter(person=actor).count() >= MAX_SAVED_VIEWS:
        raise SavedViewError(
            gettext("Not saved: you have {n} saved views, the maximum. Delete one, then save again.").format(
                n=MAX_SAVED_VIEWS
            )
        )
    return _store_view(SavedView(person=actor, list_name=of, name=name, filters=filters, is_shared=is_shared))


@transaction.atomic
def rename_view(pk: int, *, actor: User, name: str, is_shared: bool) -> SavedView:
    """Change the name and visibility of one's own view.

    Raises SavedViewError; SavedView.DoesNotExist for another user's.
    """
    saved = SavedView.objects.select_for_update().get(pk=pk, person=actor)
    saved.name, saved.is_shared = name, is_shared
    return _store_view(saved)


def delete_view(pk: int, *, actor: User) -> None:
    """Delete one's own view; does nothing if it does not exist or is another user's."""
    SavedView.objects.filter(pk=pk, person=actor).delete()


def _store_view(saved: SavedView) -> SavedView:
    try:
        with transaction.atomic():
            saved.save()
    except IntegrityError as exc:
        raise SavedViewError(
            gettext("You already have a view named “{name}”. Enter another name.").format(name=saved.name)
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
SAVED_VIEW_URLS = {
    FilteredList.OPERATIONS: "operations:saved_views",
    FilteredList.TRANSACTIONS: "operations:saved_transaction_views",
}


@require_http_methods(["GET", "HEAD", "POST"])
def saved_view_list(request: StaffRequest, of: FilteredList) -> HttpResponse:
    """All saved views of one list; with filters in the URL, also the form that saves these."""
    if not request.user.has_perm(LIST_PERMISSIONS[of]):
        raise PermissionDenied
    present = LIST_FORMS[of](request.GET)
    presets = present.presets_of_days if present.is_valid() else []
    if request.method != "POST":
        return _saved_views_page(request, of, present, NewViewForm(presets=presets))
    form = NewViewForm(request.POST, presets=presets)
    if form.is_valid() and _is_savable(present):
        filters = present.stored_filters(form.cleaned_data.pop("preset", None))
        try:
            saved = save_view(request.user, of=of, filters=filters, **form.cleaned_data)
        except SavedViewError as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, gettext("View “{name}” saved.").format(name=saved.name))
            return redirect(saved)
    return _saved_views_page(request, of, present, form, status=422)


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def saved_view_rename(request: StaffRequest, pk: int) -> HttpResponse:
    """Rename one's own view or change its visibility; if refused, its form keeps the input."""
    saved = get_object_or_404(SavedView, pk=pk, person=request.user)
    form = SavedViewForm(request.POST, auto_id=f"view_{pk}_%s")
    if form.is_valid():
        try:
            rename_view(pk, actor=request.user, **form.cleaned_data)
        except SavedViewError as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, gettext("Saved view updated."))
            return redirect(SAVED_VIEW_URLS[FilteredList(saved.list_name)])
    of = FilteredList(saved.list_name)
    present, new = LIST_FORMS[of](), NewViewForm()
    return _saved_views_page(request, of, present, new, status=422, refused={pk: form})


@require_POST
@permission_required(permissions.VIEW, raise_exception=True)
def saved_view_delete(request: StaffRequest, pk: int) -> HttpResponse:
    """Delete one's own view; back to its list, or to that of operations if it does not exist."""
    saved = SavedView.objects.filter(pk=pk, person=request.user).first()
    delete_view(pk, actor=request.user)
    messages.success(request, gettext("Saved view deleted."))
    return redirect(SAVED_VIEW_URLS[FilteredList(saved.list_name) if saved else FilteredList.OPERATIONS])


def _saved_views_page(
    request: StaffRequest,
    of: FilteredList,
    present: ListFilterForm,
    form: SavedViewForm,
    *,
    status: int = 200,
    refused: Mapping[int, SavedViewForm] = MappingProxyType({}),
) -> HttpResponse:
    """All saved views, each with the form that changes it; the refused form, if there is one."""
    saved = [
        (one, LIST_FORMS[of](query_of_stored(one.filters)), refused.get(one.pk) or _rename_form(one))
        for one in saved_views_for(request.user, of)
    ]
    context = {
        "of": of,
        "present": present if _is_savable(present) else None,
        "form": form,
        "saved": saved,
    }
    return render(request, "operations/saved_views.html", context, status=status)


def _rename_form(saved: SavedView) -> SavedViewForm:
    initial = {"name": saved.name, "is_shared": saved.is_shared}
    return SavedViewForm(initial=initial, auto_id=f"view_{saved.pk}_%s")


def _is_savable(present: ListFilterForm) -> bool:
    return present.is_valid() and bool(present.query)
