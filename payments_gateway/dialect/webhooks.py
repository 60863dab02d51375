"""Open points of webhook deliveries. How they are signed is sure, and stays in `deliveries`."""

from collections.abc import Mapping
from dataclasses import dataclass

from payments_gateway.dialect.points import point
from payments_gateway.dialect.words import EventKind

_EVENTS = "Events"


@dataclass(frozen=True, kw_only=True)
class WebhookPoints:
    """What a delivery is made of; the specification shows nothing of it."""

    delivery_event_member: str = point("event", "likely", _EVENTS, "What names the kind of event.")
    delivery_data_member: str = point("data", "likely", _EVENTS, "What holds the news, and is signed.")
    delivery_signature_member: str = point(
        "signature", "likely", _EVENTS, "The signature of the data, base64."
    )
    event_kinds: Mapping[str, str] = point(
        {kind.value: kind.value for kind in EventKind},
        "likely",
        _EVENTS,
        "Kind of event on the wire -> ours, compared without case. Any other is kept as it is.",
    )
    news_session_members: tuple[str, ...] = point(
        ("sessionId",), "likely", _EVENTS, "News of a transaction: the session of the bank transfer."
    )
    news_reference_members: tuple[str, ...] = point(
        ("reference",), "likely", _EVENTS, "News: the merchant's reference, by which a payment is found."
    )
    news_failure_members: tuple[str, ...] = point(
        ("failureReason",), "likely", _EVENTS, "News of a transaction: why it failed."
    )
    news_resolution_members: tuple[str, ...] = point(
        ("resolveId",), "likely", _EVENTS, "News of a payment: the id that it is resolved by."
    )
