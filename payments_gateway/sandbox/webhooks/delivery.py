"""Deliver the outbox to the callback URL, from a thread of the only serving process.

The thread runs when it is woken after a commit, and twice a second: for retries, delayed deliveries, and
orders that have become due. Anything but a 2xx is retried after `RETRY_DELAYS`, by the provider's clock. Each
delivery is sent at least once; a process that ends during an attempt repeats it after its next start. Sends
to this machine only.
"""

import ipaddress
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import requests
import urllib3
from django.db import connection
from django.db.models import F
from django.db.models.functions import Coalesce
from django.db.transaction import atomic

from payments_gateway.connection import exchange, open_session
from payments_gateway.errors import NotSentError, OutcomeUnknownError
from payments_gateway.sandbox import clock
from payments_gateway.sandbox.merchant.details import callback_url
from payments_gateway.sandbox.models import Attempt, Delivery, DeliveryState
from payments_gateway.sandbox.webhooks import signing

_WAKE_UP = threading.Event()


def wake_delivery_thread() -> None:
    """Run the delivery thread now instead of at its next interval."""
    _WAKE_UP.set()


def wait_for_wakeup(seconds: float) -> None:
    """Wait for `wake_delivery_thread`, at most this many seconds."""
    _WAKE_UP.wait(seconds)
    _WAKE_UP.clear()


_CONNECT_SECONDS = 2
_TOTAL_SECONDS = 5
_READ_BYTES = 64 * 1024
_HEADERS = {"Content-Type": "application/json", "User-Agent": "business-payments-sandbox"}


class ForeignAddressError(Exception):
    """Deliveries to this address are not allowed; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class PostResult:
    """The result of one attempt: the HTTP status of the response, or None and a reason."""

    status: int | None
    reason: str = ""

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post_webhook(url: str, body: bytes) -> PostResult:
    """Send once and wait at most five seconds for the whole response; redirects are not followed.

    Raises ForeignAddressError for an address that is not on this machine.
    """
    request = _prepared(url, body)
    _check_loopback(request.url or "")
    try:
        with open_session(None) as session:
            answer = exchange(
                session, request, connect=_CONNECT_SECONDS, total=_TOTAL_SECONDS, limit=_READ_BYTES
            )
    except NotSentError:
        return PostResult(None, "the connection failed")
    except OutcomeUnknownError:
        return PostResult(None, "no complete response arrived in time")
    return PostResult(answer.status)


def _prepared(url: str, body: bytes) -> requests.PreparedRequest:
    try:
        return requests.Request("POST", url, _HEADERS, data=body).prepare()
    except (requests.RequestException, ValueError) as exc:
        raise ForeignAddressError(f"{url[:200]} is not a web address") from exc


def _check_loopback(url: str) -> None:
    """Check the host as urllib3, which connects, parses it. Names other than localhost are not resolved."""
    host = urllib3.util.parse_url(url).host or ""
    if host == "localhost":
        return
    try:
        is_ours = ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_ours = False
    if not is_ours:
        raise ForeignAddressError(
            f"{host or url[:200]} is not this machine, and the simulation sends nothing elsewhere"
        )


RETRY_DELAYS = (1, 5, 30, 120, 600)
"""Seconds between a failed attempt and the next. After the last delay there is one more attempt."""

_ROUND_SECONDS = 0.5


def start_delivery_thread(*, before_each_round: Callable[[], None]) -> None:
    """Start the delivery thread. It ends with the process.

    While there is a callback URL, `before_each_round` is called before each check of the outbox: it settles
    what is due, as a request would.
    """
    threading.Thread(
        target=_run_delivery_thread, args=(before_each_round,), name="webhook-delivery", daemon=True
    ).start()


def _run_delivery_thread(catch_up: Callable[[], None]) -> None:
    try:
        while True:
            wait_for_wakeup(_ROUND_SECONDS)
            if callback_url():
                catch_up()
            deliver_due()
    finally:
        # The exception that ended this thread is printed on standard error; a new thread continues.
        connection.close()
        start_delivery_thread(before_each_round=catch_up)


def deliver_due() -> None:
    """Make one attempt for each due delivery, in their order."""
    while (delivery := _next_due()) is not None:
        try:
            _record_attempt(delivery, post_webhook(delivery.url, _body_of(delivery).encode()))
        except ForeignAddressError as exc:
            _finish(delivery, DeliveryState.NOT_DELIVERED, str(exc))


def _next_due() -> Delivery | None:
    waiting = Delivery.objects.filter(state=DeliveryState.WAITING, due_at__lte=clock.now())
    return waiting.order_by(Coalesce(F("place"), F("id"))).first()


def _body_of(delivery: Delivery) -> str:
    """Sign before the first attempt and store the body: every later attempt sends the same bytes."""
    if not delivery.body:
        key = signing.key_for(delivery.id)
        delivery.body = signing.signed_body(delivery.event, delivery.data, key, delivery.forgery)
        Delivery.objects.filter(id=delivery.id).update(body=delivery.body)
    return delivery.body


@atomic(durable=True)
def _record_attempt(delivery: Delivery, outcome: PostResult) -> None:
    if not Delivery.objects.filter(id=delivery.id).exists():
        return  # deleted by a reset meanwhile
    Attempt.objects.create(delivery=delivery, at=clock.now(), status=outcome.status, reason=outcome.reason)
    if not outcome.is_success:
        _postpone(delivery)
    elif delivery.copies:
        Delivery.objects.filter(id=delivery.id).update(copies=delivery.copies - 1)
    else:
        _finish(delivery, DeliveryState.DELIVERED)


def _postpone(delivery: Delivery) -> None:
    failures = delivery.failures + 1
    if failures > len(RETRY_DELAYS):
        _finish(delivery, DeliveryState.GIVEN_UP, f"no success in {failures} tries")
        return
    due_at = clock.now() + timedelta(seconds=RETRY_DELAYS[failures - 1])
    Delivery.objects.filter(id=delivery.id).update(failures=failures, due_at=due_at)


def _finish(delivery: Delivery, state: DeliveryState, reason: str = "") -> None:
    Delivery.objects.filter(id=delivery.id).update(state=state, reason=reason)
