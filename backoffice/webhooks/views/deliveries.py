"""The callback address, what was delivered to it, and looking again because of it."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.http import StaffRequest
from backoffice.core.pagination import keyset_page
from backoffice.ledger import selectors as ledger
from backoffice.ledger.callback import shown
from backoffice.operations.panel import works_on_operations
from backoffice.webhooks import selectors, services
from backoffice.webhooks.permissions import VIEW


@require_safe
@permission_required(VIEW, raise_exception=True)
def deliveries(request: StaffRequest) -> HttpResponse:
    """Where the service delivers, as last known, and what came, newest first.

    htmx asks the service for the address, and so does `?read=1` without JavaScript.
    """
    is_read = "read" in request.GET
    told = ledger.callback_url_now() if is_read else ledger.known_callback_url()
    page = keyset_page(selectors.listed(), order=selectors.NEWEST_FIRST, cursor=request.GET.get("cursor"))
    context = {
        **shown(told),
        "fresh": is_read,
        "receiver": selectors.receiver(),
        "last_valid_at": selectors.last_valid_at(),
        "page": page,
        "rows": selectors.rows_of(request.user, page.rows),
    }
    return render(request, "webhooks/deliveries.html", context)


@require_safe
@permission_required(VIEW, raise_exception=True)
def delivery(request: StaffRequest, pk: int) -> HttpResponse:
    """One delivery with its exact body."""
    found = get_object_or_404(selectors.listed().defer(None), pk=pk)
    context = {
        "row": selectors.row_of(request.user, found),
        "body": bytes(found.body).decode("utf-8", "backslashreplace").replace("\x00", "\\x00"),
        "may_look": works_on_operations(request.user),
    }
    return render(request, "webhooks/delivery.html", context)


@require_POST
@permission_required(VIEW, raise_exception=True)
def look_again(request: StaffRequest, pk: int) -> HttpResponse:
    """Have the service read again, as this delivery would if it came for the first time and were valid."""
    if not works_on_operations(request.user):
        raise PermissionDenied
    found = get_object_or_404(selectors.deliveries(), pk=pk)
    services.look_again(found.pk, actor=request.user)
    messages.info(
        request, "The service is read again within seconds. Only what it shows itself moves anything."
    )
    return redirect(found)
