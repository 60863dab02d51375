"""Deliver to a configured HTTPS address as JSON, signed with a secret of its own.

The signature is an HMAC-SHA256 over the timestamp, a point and the body, so that a receiver can reject what was altered
or is old. Redirects are not followed, and connections to private addresses are refused.
"""

import hmac
import json
import time
from functools import partial

from django.conf import settings

from backoffice.notifications.channels.network import (
    TooSlowError,
    connections_to,
    is_public_or_loopback,
    within,
)
from backoffice.notifications.contents import Contents, Item
from backoffice.notifications.models import DeliveryError, Problem
from payments_gateway import GatewayError, NotSentError
from payments_gateway.connection import RawResponse, fetch

SECONDS = 10.0
LARGEST_ANSWER = 10_000  # bytes that are read of an answer


def signature(body: bytes, *, timestamp: str, secret: str) -> str:
    """The value of the header Countersign-Signature."""
    return "v1=" + hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def send_webhook(contents: Contents, *, url: str, message_id: str) -> None:
    """Post the events. Delivered is what was answered with 2xx. Raises DeliveryError."""
    content = {
        "id": message_id,
        "environment": settings.ENVIRONMENT,
        "events": [_event(item) for item in contents.items],
    }
    body, timestamp = json.dumps(content, separators=(",", ":")).encode(), str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Countersign",
        "Countersign-Id": message_id,
        "Countersign-Timestamp": timestamp,
        "Countersign-Signature": signature(body, timestamp=timestamp, secret=settings.NOTIFY_WEBHOOK_SECRET),
    }
    try:
        response = within(SECONDS + 1, partial(_post, url, headers, body))
    except TooSlowError as exc:
        raise DeliveryError(Problem.TIMED_OUT) from exc
    except NotSentError as exc:
        raise DeliveryError(Problem.NOT_REACHED) from exc
    except GatewayError as exc:
        raise DeliveryError(Problem.TIMED_OUT) from exc
    if not 200 <= response.status < 300:
        raise DeliveryError(Problem.STATUS, status=response.status)


def _post(url: str, headers: dict[str, str], body: bytes) -> RawResponse:
    ca_file = settings.NOTIFY_CA_FILE or None
    with connections_to(is_public_or_loopback):
        return fetch(
            "POST", url, headers=headers, body=body, ca_file=ca_file, total=SECONDS, limit=LARGEST_ANSWER
        )


def _event(item: Item) -> dict[str, str]:
    """Names and codes, which never change; no sentence but that of the operation, if the deployment chose it."""
    event = {
        "event": item.event,
        "notice": item.notice,
        "at": item.at.isoformat(),
        "reference": item.reference,
        "kind": item.kind_name,
        "url": item.url,
    }
    return {**event, "sentence": item.sentence} if item.sentence else event
