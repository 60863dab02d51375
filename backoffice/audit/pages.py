"""The audit log page: filters, the list of entries, and verification on demand."""

from datetime import date
from typing import cast

from django import forms
from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.decorators import permission_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_POST

from backoffice.audit.actions import Action
from backoffice.audit.checkpoints import verify_log
from backoffice.audit.log import read_entries
from backoffice.audit.models import Entry
from backoffice.core.web.forms import ListFilterForm, end_of_day, start_of_day
from backoffice.core.web.pagination import paginate, queryset_reader

_ENTRIES = 35  # on a page; fewer than in other lists, since hashes cannot be compressed


def find_entries(
    *,
    actor: AbstractBaseUser | None = None,
    group: str = "",
    about: str = "",
    since: date | None = None,
    until: date | None = None,
) -> QuerySet[Entry]:
    """Entries of a person, of a group of actions, about an object, between two days of the current time zone.

    `about` is part of the object's label, or exactly its id or the id of a request. Both days are inclusive.
    """
    found = Entry.objects.all()
    if actor is not None:
        found = found.filter(actor=actor.pk)
    if group:
        found = found.filter(action__startswith=f"{group}.")
    if about:
        found = found.filter(Q(target_label__icontains=about) | Q(target_id=about) | Q(request_id=about))
    if since is not None:
        found = found.filter(at__gte=start_of_day(since))
    if until is not None:
        found = found.filter(at__lt=end_of_day(until))
    return found


_GROUP_LABELS = {
    "audit": _("Audit log"),
    "report": _("Exports"),
    "export": _("Background exports"),
    "schedule": _("Scheduled reports"),
    "access": _("Access"),
    "password": _("Passwords"),
    "setup_link": _("One-time links"),
    "sign_in": _("Sign-ins"),
    "second_factor": _("Second factors"),
    "authenticator": _("Authenticators"),
    "recovery_code": _("Recovery codes"),
    "session": _("Sessions"),
    "staff": _("Team"),
    "group": _("Groups"),
    "break_glass": _("Break-glass"),
    "operation": _("Operations"),
    "batch": _("Batches"),
    "delegation": _("Delegations"),
    "incident": _("Incidents"),
    "policy": _("Approval policies"),
    "payments": _("Payment pauses"),
    "recipient": _("Recipients"),
    "saved_account": _("Saved bank accounts"),
    "summary_discrepancy": _("Discrepancies in the provider's summary"),
    "delivery": _("Webhook deliveries"),
    "secret": _("New API keys"),
    "api_key": _("API key in use"),
    "rotation": _("Key rotations"),
    "notification_channel": _("Notification channels"),
}


def _group_choices() -> list[tuple[str, str]]:
    return [("", gettext("All actions")), *((group, str(_GROUP_LABELS[group])) for group in Action.groups())]


class EntryFilterForm(ListFilterForm):
    """Filters of the audit page and the audit report. Every field is optional."""

    actor = forms.ModelChoiceField(
        get_user_model()._default_manager.order_by("full_name", "pk"),
        required=False,
        label=_("Person"),
        empty_label=_("All people"),
    )
    group = forms.ChoiceField(choices=_group_choices, required=False, label=_("Action"))
    about = forms.CharField(required=False, label=_("Reference or name"), max_length=200)
    field_order = ("actor", "group", "about", "since", "until")


@require_GET
@permission_required("audit.view_entry", raise_exception=True)
def entry_list(request: HttpRequest) -> HttpResponse:
    form = EntryFilterForm(request.GET)
    found = find_entries(**form.cleaned_data) if form.is_valid() else Entry.objects.none()
    reader = queryset_reader(found, load=read_entries)
    page = paginate(reader, order=("-position",), cursor=request.GET.get("cursor"), size=_ENTRIES)
    return render(
        request, "audit/list.html", {"form": form, "page": page}, status=200 if form.is_valid() else 422
    )


@require_POST
@permission_required("audit.view_entry", raise_exception=True)
def verify(request: HttpRequest) -> HttpResponse:
    """Verify the whole log, compare it with its checkpoints, and show the result."""
    person = cast("AbstractBaseUser", request.user)  # required by the permission
    verdict = verify_log(actor=person)
    return render(request, "audit/verification.html", {"verdict": verdict})
