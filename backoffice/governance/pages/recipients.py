"""The register of recipients: the list with a search, and the page of one recipient."""

from uuid import UUID

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.pagination import keyset_page
from backoffice.governance.recipients import RecipientFilterForm, payments_to, waiting_change
from backoffice.operations.allow_list import cools_until
from backoffice.operations.permissions import VIEW
from backoffice.operations.selectors import NEWEST_FIRST, visible_operations
from backoffice.recipients.models import RecipientVersion
from backoffice.recipients.register import BY_NAME

PER_PAGE, PAYMENTS_SHOWN, VERSIONS_SHOWN = 25, 20, 20


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


def _filters(request: StaffRequest) -> QueryDict:
    query = request.GET.copy()
    query.pop("cursor", None)
    return query
