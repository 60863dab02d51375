"""The register of recipients: the list with a search, how each was paid, the page of one recipient, and the import from
a file, whose own pages follow.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django import forms
from django.contrib.auth.decorators import permission_required
from django.db.models import Count, Max, Min, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import PageForm, SearchField
from backoffice.core.web.pagination import keyset_page
from backoffice.operations.allow_list import cools_until
from backoffice.operations.kinds.recipient import RecipientKind
from backoffice.operations.models.batches import MAX_ROWS
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.batches.files import FileForm, recent_files
from backoffice.operations.permissions import PREPARE, VIEW
from backoffice.operations.selectors import IS_EXECUTED, IS_OPEN, NEWEST_FIRST, visible_operations
from backoffice.recipients.models import RecipientState, RecipientType, RecipientVersion
from backoffice.recipients.register import BY_NAME, find_recipients

PER_PAGE, PAYMENTS_SHOWN, VERSIONS_SHOWN = 25, 20, 20


class RecipientFilterForm(PageForm):
    """Filters of the list and of the report. Every field is optional."""

    q = SearchField(
        label=_("Name, alias, account or notes"),
        required=False,
        max_length=128,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    state = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("All")), *RecipientState.choices]
    )
    type = forms.ChoiceField(
        label=_("Type"), required=False, choices=[("", _("All")), *RecipientType.choices]
    )

    def apply(self) -> QuerySet[RecipientVersion]:
        """The newest versions that match the filters. Call only on a valid form."""
        values = self.cleaned_data
        return find_recipients(values["q"], state=values["state"], kind=values["type"])


@dataclass(frozen=True)
class CurrencyPaid:
    """What was paid to a recipient in one currency."""

    currency: str
    count: int
    amount: Decimal


@dataclass(frozen=True)
class PaymentsTo:
    """The payments to a recipient that were executed."""

    totals: tuple[CurrencyPaid, ...]
    first: datetime
    last: datetime


def payments_to(keys: Collection[str]) -> dict[str, PaymentsTo]:
    """Of each of these keys that was paid: what, and when first and last. One query."""
    executed = Operation.objects.filter(IS_EXECUTED, recipient_key__in=keys).order_by()
    at = Coalesce("closed_at", "prepared_at")
    rows = executed.values("recipient_key", "currency").annotate(
        count=Count("pk"), total=Sum("amount"), first=Min(at), last=Max(at)
    )
    found: dict[str, PaymentsTo] = {}
    for row in sorted(rows, key=lambda row: row["currency"]):
        paid = CurrencyPaid(row["currency"], row["count"], row["total"])
        key = row["recipient_key"] or ""
        earlier = found.get(key)
        found[key] = PaymentsTo(
            (*(earlier.totals if earlier else ()), paid),
            min(row["first"], earlier.first) if earlier else row["first"],
            max(row["last"], earlier.last) if earlier else row["last"],
        )
    return found


def waiting_change(key: str) -> Operation | None:
    """The change of this recipient that waits for approval, if there is one."""
    return Operation.objects.filter(IS_OPEN, kind=RecipientKind.name, payload__key=key).first()


@require_safe
@permission_required(VIEW, raise_exception=True)
def recipients(request: StaffRequest) -> HttpResponse:
    """The newest version of each recipient, by name, and how it was paid."""
    form = RecipientFilterForm(request.GET)
    found = form.apply() if form.is_valid() else RecipientVersion.objects.none()
    page = keyset_page(found, order=BY_NAME, cursor=request.GET.get("cursor"), size=PER_PAGE)
    paid = payments_to([version.key for version in page.rows])
    context = {
        "form": form,
        "page": page,
        "rows": [(version, paid.get(version.key)) for version in page.rows],
        "query": f"?{query.urlencode()}" if (query := _filters(request)) else "",
    }
    return render(request, "governance/recipients.html", context, status=200 if form.is_valid() else 422)


@require_safe
@permission_required(VIEW, raise_exception=True)
def recipient(request: StaffRequest, pk: UUID) -> HttpResponse:
    """One recipient: its versions, by whom and by which operation, and the newest operations that pay it."""
    versions = RecipientVersion.objects.filter(recipient=pk).select_related("proposed_by", "approved_by")
    shown = list(versions.order_by("-number")[:VERSIONS_SHOWN])
    if not shown:
        raise Http404("There is no such recipient")
    newest = shown[0]
    paying = visible_operations(request.user).filter(recipient_key=newest.key)
    context = {
        "recipient": newest,
        "versions": shown,
        "paid": payments_to([newest.key]).get(newest.key),
        "operations": list(paying.order_by(*NEWEST_FIRST)[:PAYMENTS_SHOWN]),
        "waiting": waiting_change(newest.key),
        "cooling_until": cools_until(newest),
    }
    return render(request, "governance/recipient.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(PREPARE, raise_exception=True)
def recipient_files(request: StaffRequest) -> HttpResponse:
    """The form for a file, the templates, and this person's last files."""
    form = FileForm(request.POST, request.FILES) if request.method == "POST" else FileForm()
    if form.is_bound and form.is_valid():
        file = form.store(request, RecipientKind.name)
        if file is not None:
            return redirect(file)
    context = {"form": form, "files": recent_files(request, is_import=True), "max_rows": MAX_ROWS}
    return render(request, "governance/recipient_files.html", context, status=422 if form.errors else 200)


def _filters(request: StaffRequest) -> QueryDict:
    query = request.GET.copy()
    query.pop("cursor", None)
    return query
