"""The pages of webhooks: the callback URL, the deliveries received, processing one again, and test deliveries."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.access import fresh_second_factor_required
from backoffice.accounts.sessions import StaffRequest
from backoffice.audit.actions import Action
from backoffice.audit.log import record
from backoffice.core.gateway import provider_profile
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger import callback_url
from backoffice.ledger.callback_url import callback_url_context
from backoffice.operations.permissions import PROPOSE
from backoffice.operations.policy import may_check_status
from backoffice.webhooks import configuration, deliveries, processing
from backoffice.webhooks.deliveries import VIEW_PERMISSIONS, DeliveryFilterForm
from backoffice.webhooks.self_test import SelfTestResult, send_test_delivery


@require_safe
@permission_required(VIEW_PERMISSIONS, raise_exception=True)
def delivery_list(request: StaffRequest) -> HttpResponse:
    """The callback URL as last reported, and the deliveries that match the filters in the URL, newest first.

    htmx refreshes the callback URL from the provider; without JavaScript `?read=1` does.
    """
    is_read = "read" in request.GET
    cached = callback_url.refresh_callback_url() if is_read else callback_url.cached_callback_url()
    form = DeliveryFilterForm(request.GET.dict())
    found = deliveries.deliveries_with_transaction()
    found = form.apply(found) if form.is_valid() else found.none()
    page = keyset_page(found, order=deliveries.NEWEST_FIRST, cursor=request.GET.get("cursor"))
    context = {
        **callback_url_context(cached),
        "fresh": is_read,
        "receiver": deliveries.receiver_status(),
        "last_valid_at": deliveries.last_valid_at(),
        "form": form,
        "events": list(provider_profile().event_kinds),
        "page": page,
        "rows": deliveries.delivery_rows(request.user, page.rows),
    }
    return render(request, "webhooks/deliveries.html", context, status=200 if form.is_valid() else 422)


@require_safe
@permission_required(PROPOSE, raise_exception=True)
@fresh_second_factor_required
def own_address(request: StaffRequest) -> HttpResponse:
    """Our own callback URL with its secret part, for the person who sets it at the provider. Audited."""
    address = ""
    if configuration.is_on() and settings.PUBLIC_URL:
        address = callback_url.own_callback_url()
        with transaction.atomic():
            record(Action.WEBHOOK_ADDRESS_SHOWN, actor=request.user)
    return render(request, "webhooks/own_address.html", {"address": address})


@require_safe
@permission_required(VIEW_PERMISSIONS, raise_exception=True)
def delivery_detail(request: StaffRequest, pk: int) -> HttpResponse:
    """One delivery with its headers, our response, its exact body and what it started."""
    delivery = get_object_or_404(deliveries.deliveries_with_transaction().defer(None), pk=pk)
    context = {
        "row": deliveries.delivery_row(request.user, delivery),
        "body": bytes(delivery.body).decode("utf-8", "backslashreplace").replace("\x00", "\\x00"),
        "runs": deliveries.processing_runs(request.user, delivery),
        "may_process": may_check_status(request.user) and not delivery.is_test,
    }
    return render(request, "webhooks/delivery.html", context)


@require_POST
@permission_required(VIEW_PERMISSIONS, raise_exception=True)
def process_again(request: StaffRequest, pk: int) -> HttpResponse:
    """Start the same reads of the provider as a new valid delivery."""
    if not may_check_status(request.user):
        raise PermissionDenied
    delivery = get_object_or_404(deliveries.all_deliveries(), pk=pk)
    if delivery.is_test:
        messages.error(request, gettext("Not processed: a test delivery triggers no status check."))
        return redirect(delivery)
    processing.process_again(delivery.pk, actor=request.user)
    messages.info(request, gettext("The delivery is processed again within seconds."))
    return redirect(delivery)


@require_POST
@permission_required((*VIEW_PERMISSIONS, PROPOSE), raise_exception=True)
def send_test(request: StaffRequest) -> HttpResponse:
    """Send a test delivery to our own callback URL, and show the delivery if it was received."""
    report = send_test_delivery(actor=request.user)
    is_received = report.result == SelfTestResult.RECEIVED
    (messages.success if is_received else messages.error)(request, report.sentence)
    return redirect(report.delivery or "webhooks:deliveries")


def missing_webhooks(_request: HttpRequest) -> dict[str, object]:
    """Context processor: `missing_webhooks`, a warning or None, read only if a template uses it."""
    return {"missing_webhooks": deliveries.cached_missing_deliveries}
