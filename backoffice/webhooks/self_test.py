"""The test delivery: sent to our own callback URL over HTTP, as the provider sends its deliveries.

It is sent only to the configured public address, follows no redirect, and ends within a time limit: it cannot be
used to request another address. The endpoint recognises it by a key made for this one test (`processing`).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import TextChoices
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.gateway import provider_profile
from backoffice.core.leases import acquire_lease
from backoffice.core.web.formatting import code_sentence
from backoffice.webhooks import configuration
from backoffice.webhooks.models import Delivery, DeliveryTestKey, DeliveryVerification
from backoffice.webhooks.processing import TEST_EVENT
from payments_gateway import GatewayError, NotSentError
from payments_gateway.connection import fetch
from payments_gateway.webhooks import SelfSignedWebhook, self_signed_webhook

TIMEOUT = 5.0  # seconds, for the whole exchange
_LEASE_DURATION = timedelta(seconds=30)
_LARGEST_RESPONSE = 1000  # bytes
_HEADERS = {"Content-Type": "application/json", "User-Agent": "Countersign test delivery"}


class SelfTestResult(TextChoices):
    """What became of a test delivery. The label is the sentence, with its parameters in braces."""

    RECEIVED = (
        "received",
        _("The test delivery was received. Response: status {status} after {ms} ms."),
    )
    OFF = "off", _("Not sent: webhooks are not received. Ask the operator to set COUNTERSIGN_WEBHOOK_SECRET.")
    NO_ADDRESS = (
        "no_address",
        _("Not sent: the public address is not configured. Ask the operator to set COUNTERSIGN_PUBLIC_URL."),
    )
    BUSY = "busy", _("Not sent: another test delivery is in progress. Try again in a moment.")
    NOT_REACHED = (
        "not_reached",
        _(
            "Not delivered: {address} could not be reached from here. Check its name, its certificate and the firewall."
        ),
    )
    NO_RESPONSE = "no_response", _("{address} did not respond completely within {seconds} seconds.")
    REFUSED = (
        "refused",
        _(
            "{address} responded with status {status}, and the test delivery was not received here. Check the "
            "reverse proxy."
        ),
    )
    RESPONSE_REPLACED = (
        "response_replaced",
        _(
            "The test delivery was received, but {address} responded with status {status} instead of {expected}. "
            "Check the reverse proxy."
        ),
    )
    ELSEWHERE = (
        "elsewhere",
        _(
            "{address} accepted the test delivery, but this installation did not receive it. Check which server the "
            "address leads to: it may be another installation."
        ),
    )


@dataclass(frozen=True)
class SelfTestReport:
    """The result of one test delivery, and the delivery if it was received."""

    result: SelfTestResult
    parameters: Mapping[str, str | int] = field(default_factory=dict)
    delivery: Delivery | None = None

    @property
    def sentence(self) -> str:
        return code_sentence(SelfTestResult, {"code": self.result.value, **self.parameters})


def send_test_delivery(*, actor: User) -> SelfTestReport:
    """Send one test delivery to our own callback URL and return what became of it. One at a time.

    It is recorded before it is sent. Never raises because of the network.
    """
    if not configuration.is_on():
        return SelfTestReport(SelfTestResult.OFF)
    if not settings.PUBLIC_URL:
        return SelfTestReport(SelfTestResult.NO_ADDRESS)
    lease = acquire_lease("webhook test", _LEASE_DURATION)
    if lease is None:
        return SelfTestReport(SelfTestResult.BUSY)
    with lease:
        now = clock.now()
        webhook = self_signed_webhook(
            TEST_EVENT, {"testId": str(uuid4()), "sentAt": now.isoformat()}, provider_profile()
        )
        _store_key(webhook, actor=actor)
        return _deliver(webhook)


@transaction.atomic(durable=True)
def _store_key(webhook: SelfSignedWebhook, *, actor: User) -> None:
    """Let the endpoint recognise this test delivery, and no earlier one."""
    DeliveryTestKey.objects.update_or_create(
        pk=1, defaults={"public_pem": webhook.public_pem, "made_at": clock.now()}
    )
    audit.record(Action.DELIVERY_TEST_SENT, actor=actor, target=settings.PUBLIC_URL)


def _deliver(webhook: SelfSignedWebhook) -> SelfTestReport:
    path = reverse("webhooks:receive", args=[settings.WEBHOOK_SECRET])
    shown: dict[str, str | int] = {"address": settings.PUBLIC_URL}
    try:
        response = fetch(
            "POST",
            f"{settings.PUBLIC_URL}{path}",
            headers=_HEADERS,
            body=webhook.body,
            ca_file=None,
            total=TIMEOUT,
            limit=_LARGEST_RESPONSE,
        )
    except (NotSentError, ValueError):  # ValueError: the configured address is not a URL
        return SelfTestReport(SelfTestResult.NOT_REACHED, shown)
    except GatewayError:
        return SelfTestReport(SelfTestResult.NO_RESPONSE, {**shown, "seconds": round(TIMEOUT)})
    delivery = Delivery.objects.filter(
        digest=hashlib.sha256(webhook.body).hexdigest(), verdict=DeliveryVerification.TEST
    ).first()
    status = {"status": response.status}
    if delivery is None:
        code = SelfTestResult.ELSEWHERE if response.status == HTTPStatus.OK else SelfTestResult.REFUSED
        return SelfTestReport(code, shown | status)
    if response.status != delivery.response_status:
        expected = {"expected": delivery.response_status or 0}
        return SelfTestReport(SelfTestResult.RESPONSE_REPLACED, shown | status | expected, delivery)
    return SelfTestReport(SelfTestResult.RECEIVED, status | {"ms": delivery.response_ms or 0}, delivery)
