"""Deliver the outbox to the callback URL, from a thread of the one process that serves.

It runs when it is woken after a commit, and twice a second besides: for retries, delayed deliveries, and what has
become due in the books. Anything but a 2xx is tried again after `PAUSES` of the provider's time. Each delivery is
sent at least once; a process that ends during a try repeats it after its next start. Sends to this machine only.
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
from payments_gateway.sandbox.merchant.profile import callback_url
from payments_gateway.sandbox.webhooks import signing
from payments_gateway.sandbox.webhooks.models import Attempt, Delivery, DeliveryState

_WAKE_UP = threading.Event()


def wake_courier() -> None:
    """Let the courier look now instead of at its next round."""
    _WAKE_UP.set()


def wait_for_wakeup(seconds: float) -> None:
    """Return at the next ring, or after that many seconds."""
    _WAKE_UP.wait(seconds)
    _WAKE_UP.clear()


_CONNECT_SECONDS = 2
_TOTAL_SECONDS = 5
_READ_BYTES = 64 * 1024
_HEADERS = {"Content-Type": "application/json", "User-Agent": "business-payments-sandbox"}


class ForeignAddressError(Exception):
    """Nothing may be sent to this address; the message says why."""


@dataclass(frozen=True, slots=True)
class PostResult:
    """How one try ended: the status that came back, or none and the reason in words."""

    status: int | None
    reason: str = ""

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def post_webhook(url: str, body: bytes) -> PostResult:
    """Send once and wait at most five seconds for the whole answer; redirects are not followed.

    Raises NotOursError for an address that is not of this machine.
    """
    request = _prepared(url, body)
    _check_loopback(request.url or "")
    try:
        with open_session(None) as session:
            answer = exchange(
                session, request, connect=_CONNECT_SECONDS, total=_TOTAL_SECONDS, limit=_READ_BYTES
            )
    except NotSentError:
        return PostResult(None, "nobody took the connection")
    except OutcomeUnknownError:
        return PostResult(None, "no whole answer came in time")
    return PostResult(answer.status)


def _prepared(url: str, body: bytes) -> requests.PreparedRequest:
    try:
        return requests.Request("POST", url, _HEADERS, data=body).prepare()
    except (requests.RequestException, ValueError) as exc:
        raise ForeignAddressError(f"{url[:200]} is not a web address") from exc


def _check_loopback(url: str) -> None:
    """Look at the host with the eyes of the library that connects. Names other than localhost are not looked up."""
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
"""Seconds between one failed try and the next. After the last there is one more try, then it is given up."""

_ROUND_SECONDS = 0.5


def start_courier(*, before_each_round: Callable[[], None]) -> None:
    """Begin to deliver. The thread ends with the process.

    While there is a callback URL, `before_each_round` is called before each look at the outbox: it brings the books to
    where time has brought them, as a request would.
    """
    threading.Thread(target=_run_courier, args=(before_each_round,), name="courier", daemon=True).start()


def _run_courier(catch_up: Callable[[], None]) -> None:
    try:
        while True:
            wait_for_wakeup(_ROUND_SECONDS)
            if callback_url():
                catch_up()
            deliver_due()
    finally:
        # What ended this thread is on standard error by now; the next one goes on with what is still waiting.
        connection.close()
        start_courier(before_each_round=catch_up)


def deliver_due() -> None:
    """Make one try for each delivery that is due, in the order in which they are to arrive."""
    while (delivery := _next_due()) is not None:
        try:
            _record_attempt(delivery, post_webhook(delivery.url, _body_of(delivery).encode()))
        except ForeignAddressError as exc:
            _finish(delivery, DeliveryState.NOT_DELIVERED, str(exc))


def _next_due() -> Delivery | None:
    waiting = Delivery.objects.filter(state=DeliveryState.WAITING, due_at__lte=clock.now())
    return waiting.order_by(Coalesce(F("place"), F("id"))).first()


def _body_of(delivery: Delivery) -> str:
    """Sign before the first try, and keep what was signed: every later try sends the same bytes."""
    if not delivery.body:
        key = signing.key_for(delivery.id)
        delivery.body = signing.signed_body(delivery.event, delivery.data, key, delivery.forgery)
        Delivery.objects.filter(id=delivery.id).update(body=delivery.body)
    return delivery.body


@atomic(durable=True)
def _record_attempt(delivery: Delivery, outcome: PostResult) -> None:
    if not Delivery.objects.filter(id=delivery.id).exists():
        return  # a reset came in between
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
