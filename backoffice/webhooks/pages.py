"""The pages of webhooks: the callback URL, the deliveries received, and checking again because of one."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger import callback_url
from backoffice.ledger.callback_url import callback_url_context
from backoffice.operations.policy import may_check_status
from backoffice.webhooks import deliveries, processing
from backoffice.webhooks.deliveries import VIEW_PERMISSIONS


@require_safe
@permission_required(VIEW_PERMISSIONS, raise_exception=True)
def delivery_list(request: StaffRequest) -> HttpResponse:
    """The callback URL as last reported, and the deliveries, newest first.

    htmx refreshes the callback URL from the provider; without JavaScript `?read=1` does.
    """
    is_read = "read" in request.GET
    cached = callback_url.refresh_callback_url() if is_read else callback_url.cached_callback_url()
    page = keyset_page(
        deliveries.deliveries_with_transaction(),
        order=deliveries.NEWEST_FIRST,
        cursor=request.GET.get("cursor"),
    )
    context = {
        **callback_url_context(cached),
        "fresh": is_read,
        "receiver": deliveries.receiver_status(),
        "last_valid_at": deliveries.last_valid_at(),
        "page": page,
        "rows": deliveries.delivery_rows(request.user, page.rows),
    }
    return render(request, "webhooks/deliveries.html", context)


@require_safe
@permission_required(VIEW_PERMISSIONS, raise_exception=True)
def delivery_detail(request: StaffRequest, pk: int) -> HttpResponse:
    """One delivery with its exact body."""
    delivery = get_object_or_404(deliveries.deliveries_with_transaction().defer(None), pk=pk)
    context = {
        "row": deliveries.delivery_row(request.user, delivery),
        "body": bytes(delivery.body).decode("utf-8", "backslashreplace").replace("\x00", "\\x00"),
        "may_check_status": may_check_status(request.user),
    }
    return render(request, "webhooks/delivery.html", context)


@require_POST
@permission_required(VIEW_PERMISSIONS, raise_exception=True)
def check_again(request: StaffRequest, pk: int) -> HttpResponse:
    """Trigger the same status checks as a new valid delivery."""
    if not may_check_status(request.user):
        raise PermissionDenied
    delivery = get_object_or_404(deliveries.all_deliveries(), pk=pk)
    processing.recheck_delivery(delivery.pk, actor=request.user)
    messages.info(
        request, "The service is read again within seconds. Only what it shows itself moves anything."
    )
    return redirect(delivery)


def missing_webhooks(_request: HttpRequest) -> dict[str, object]:
    """Context processor: `missing_webhooks`, a warning or None, read only if a template uses it."""
    return {"missing_webhooks": deliveries.cached_missing_deliveries}
