"""Verify each delivery and have it stored once (`storing.py`), then read the provider again because of it.

A delivery never changes an operation; only a read of the provider does. What one reports of a payment is shown with
its time, and nothing is decided by it.
"""

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from time import monotonic
from typing import Any

from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.canonical import storable_text
from backoffice.core import clock
from backoffice.core.background import enqueue_on_commit
from backoffice.core.gateway import provider_profile
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.core.leases import acquire_lease
from backoffice.operations.kinds.payment import store_payment_event
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH
from backoffice.operations.outcome import schedule
from backoffice.operations.outcome.schedule import ScheduledChecks
from backoffice.webhooks import configuration
from backoffice.webhooks.models import Delivery, DeliveryTestKey, DeliveryVerification, StartedRead
from backoffice.webhooks.storing import store
from payments_gateway import Payment, PaymentUpdate
from payments_gateway.webhooks import (
    PublicKey,
    ReceivedWebhook,
    SignatureStatus,
    load_public_key,
    verify_webhook,
    webhook_identity,
)

PROCESS_TASK = "webhooks.process"
MIN_INTERVAL = timedelta(seconds=1)
"""Due deliveries are processed at most this often, however many arrive."""
CHECK_LEASE = "webhook checks"
_CHECK_LEASE_DURATION = timedelta(minutes=2)
"""How long a killed process can hold the lease. The checks remain due, and the sweeper does them."""
_BATCH_SIZE = 500
RUNS_KEPT = 5
"""How many runs of the processing are stored with a delivery, the newest: its own and those that people requested."""


def process_due_deliveries() -> int:
    """Process all deliveries for which a read of the provider is due, and check what they name; returns how
    many.

    Safe to call at any time and from several processes: one of them schedules checks and one runs them,
    however long that takes. Whatever is scheduled meanwhile is due, also for attempts that no delivery names,
    and the sweeper checks it.
    """
    is_due = Delivery.objects.filter(check_due_at__isnull=False).exists()
    if not is_due or not acquire_lease("webhooks", MIN_INTERVAL):
        return 0
    scheduled = _schedule_checks()
    if lease := acquire_lease(CHECK_LEASE, _CHECK_LEASE_DURATION):
        with lease:
            schedule.run_scheduled_checks(_transaction_ids(scheduled))
    return len(scheduled)


@transaction.atomic
def process_again(delivery_id: int, *, actor: User) -> Delivery:
    """Make the read of the provider due again because of this delivery, whatever its verification.

    Nothing more happens, and nothing is recorded, if it is due already or if the delivery is a test.
    """
    found = Delivery.objects.filter(pk=delivery_id).exclude(verdict=DeliveryVerification.TEST)
    is_requested = found.filter(check_due_at__isnull=True).update(check_due_at=clock.now())
    delivery = Delivery.objects.get(pk=delivery_id)
    if is_requested:
        audit.record(Action.DELIVERY_RECHECKED, actor=actor, target=delivery, verdict=delivery.verdict)
        enqueue_on_commit(PROCESS_TASK, "")
    return delivery


def _schedule_checks() -> dict[int, str]:
    """Schedule checks in operations and mirror, and store what each delivery started; returns the transactions
    named, by delivery.

    If the process is killed before the end, this is repeated; after it, the sweeper does the checks.
    """
    due = Delivery.objects.filter(check_due_at__isnull=False).only("transaction_id", "started")
    rows = list(due[:_BATCH_SIZE])
    named = {row.pk: row.transaction_id for row in rows}
    checks = schedule.schedule_checks(_transaction_ids(named))
    _store_payment_events(named)
    at = clock.now()
    for row in rows:
        run = {"at": at.isoformat(), "reads": _started_reads(row.transaction_id, checks)}
        row.started = [run, *row.started][:RUNS_KEPT]
    Delivery.objects.bulk_update(rows, ["started"], batch_size=100)
    Delivery.objects.filter(pk__in=named).update(check_due_at=None, checked_at=at)
    return named


def _store_payment_events(deliveries: Collection[int]) -> None:
    """Keep what the valid ones of these deliveries report of payments, to be shown as last reported.

    The signature is verified again: neither a row written past Countersign nor a test may show a status.
    """
    valid = Delivery.objects.filter(
        pk__in=deliveries, verdict=DeliveryVerification.VALID, valid_at__isnull=False
    )
    about_payments = valid.filter(transaction_id="").exclude(reference="").order_by("valid_at", "pk")
    rows = {delivery: str(delivery) for delivery in about_payments}
    run_each_isolated(_store_payment_event, rows, failed=ignore)


def _store_payment_event(delivery: Delivery) -> None:
    try:
        keys = configuration.public_keys()
    except ValueError:
        return
    received = verify_webhook(bytes(delivery.body), keys, provider_profile()) if keys else None
    if received is None or received.signature_status != SignatureStatus.VALID or delivery.valid_at is None:
        return
    # The signature does not cover the event, so the data itself must not be that of a transaction.
    data = received.typed_data()
    if isinstance(data, PaymentUpdate) and "transactionId" not in received.data:
        reported = Payment.model_validate({**received.data, "raw": {}})
        store_payment_event(data.reference, reported, delivery.valid_at)


def _started_reads(transaction_id: str, checks: ScheduledChecks) -> list[dict[str, Any]]:
    """What was started because of a delivery with this transaction, as codes."""
    operations = [str(pk) for pk in checks.named.get(transaction_id, ())]
    reads: list[dict[str, Any]] = [{"code": StartedRead.SYNC.value}]
    if operations:
        reads.append({"code": StartedRead.STATUS_CHECK.value, "operations": operations})
    elif checks.unmatched:
        reads.append(_unmatched_checks(checks))
    if checks.others:
        reads.append({"code": StartedRead.OTHER_CHECKS.value, "count": checks.others})
    return reads


def _unmatched_checks(checks: ScheduledChecks) -> dict[str, Any]:
    listed = [str(pk) for pk in checks.unmatched]
    if checks.unmatched_count <= len(listed):
        return {"code": StartedRead.UNMATCHED_CHECKS.value, "operations": listed}
    code = StartedRead.NEWEST_UNMATCHED_CHECKS.value
    return {"code": code, "operations": listed, "shown": len(listed), "count": checks.unmatched_count}


def _transaction_ids(deliveries: dict[int, str]) -> set[str]:
    return set(deliveries.values()) - {""}


MAX_INVALID_KEPT = 1000
"""How many invalid deliveries are kept, the newest: a sender who knows the URL must not fill the disk."""
MAX_INVALID_KEPT_OF_SOURCE = 200
"""How many of them from one network."""
MAX_TESTS_KEPT = 1000
"""How many test deliveries are kept, the newest. Counted apart, so that neither kind displaces the other."""

_SLOW_WRITE = 1.0  # seconds
_enqueued_at = float("-inf")


@dataclass(frozen=True)
class Arrival:
    """What is stored of a request besides its body: its headers, the network it is from (`network_of`), and when it
    began, by `time.monotonic`.
    """

    headers: Mapping[str, str | None] = field(default_factory=dict)
    source: str = ""
    began: float = field(default_factory=monotonic)

    @property
    def milliseconds(self) -> int:
        """How long the request has taken up to now."""
        return max(0, round((monotonic() - self.began) * 1000))


def response_status(verdict: DeliveryVerification) -> HTTPStatus:
    """The status of our response to a delivery: only the provider's own deliveries and tests are accepted."""
    is_accepted = verdict in {DeliveryVerification.VALID, DeliveryVerification.TEST}
    return HTTPStatus.OK if is_accepted else HTTPStatus.BAD_REQUEST


def receive_delivery(body: bytes, arrival: Arrival | None = None) -> DeliveryVerification:
    """Verify and store a body and return the result. A read of the provider becomes due if it is valid and
    new.

    New means: no delivery with the same data and signature was received before. One statement stores the
    delivery and makes the read due, so nothing that was answered is lost. A repeat is counted and triggers
    nothing. Never raises for any body.

    The statement also stores the time that the response took, which cannot include the statement itself. So that
    a slow database shows, a second statement corrects the time of a new delivery if the first one took more than
    a second.
    """
    arrival = arrival or Arrival()
    delivery = _verified(body)
    delivery.headers, delivery.source = dict(arrival.headers), arrival.source
    delivery.response_status = response_status(DeliveryVerification(delivery.verdict))
    delivery.response_ms = arrival.milliseconds
    received_count, is_check_due = store(delivery)
    if received_count == 1 and arrival.milliseconds > delivery.response_ms + _SLOW_WRITE * 1000:
        Delivery.objects.filter(identity=delivery.identity).update(response_ms=arrival.milliseconds)
    if delivery.verdict != DeliveryVerification.VALID and received_count == 1:
        _delete_oldest(delivery)
    if is_check_due:
        _enqueue()
    return DeliveryVerification(delivery.verdict)


def _verified(body: bytes) -> Delivery:
    now = timezone.now()
    delivery = Delivery(
        digest=hashlib.sha256(body).hexdigest(), received_at=now, last_at=now, received_count=1, body=body
    )
    try:
        keys = configuration.public_keys()
    except ValueError:
        keys = ()  # the page and `manage.py check` report what is wrong with them
    received = verify_webhook(body, keys, provider_profile()) if keys else None
    if received is None:
        delivery.verdict = DeliveryVerification.UNVERIFIED
        delivery.identity = webhook_identity(body, provider_profile())
    else:
        _fill_in(delivery, received)
    if delivery.verdict == DeliveryVerification.VALID:
        delivery.valid_at = delivery.check_due_at = now
    elif test := _verified_test(body):
        _fill_in(delivery, test)
        delivery.verdict = DeliveryVerification.TEST
    return delivery


TEST_EVENT = "Countersign test"
"""The event of a test delivery. Only deliveries that contain it cost the query for the key of tests."""


def _verified_test(body: bytes) -> ReceivedWebhook | None:
    """The delivery, if the key of the last test has signed it; None for any other. It never becomes valid: it
    starts no read and does not end the alarm about missing deliveries.
    """
    if TEST_EVENT.encode() not in body:
        return None
    received = [verify_webhook(body, [key], provider_profile()) for key in _test_keys()]
    return next((one for one in received if one.signature_status == SignatureStatus.VALID), None)


def _test_keys() -> list[PublicKey]:
    """The key of the last test, if there was one."""
    return [load_public_key(pem) for pem in DeliveryTestKey.objects.values_list("public_pem", flat=True)]


def _fill_in(delivery: Delivery, received: ReceivedWebhook) -> None:
    """Set the result of the verification and the searchable fields, as far as their columns are long enough."""
    data = received.typed_data()
    delivery.identity = received.identity
    delivery.verdict = DeliveryVerification(received.signature_status.value)
    delivery.error = received.error[:300]
    delivery.key = received.key.fingerprint if received.key else ""
    delivery.event = storable_text(received.event)[:200]
    delivery.transaction_id = _text_within(getattr(data, "transaction_id", ""), TRANSACTION_ID_LENGTH)
    delivery.reference = _text_within(getattr(data, "reference", ""), 200)
    delivery.event_at = getattr(data, "updated_at", None) or getattr(data, "created_at", None)


def _text_within(text: str, length: int) -> str:
    """The text, or empty if it is too long: a truncated id would be another id."""
    return text if len(text) <= length else ""


def _delete_oldest(stored: Delivery) -> None:
    """Keep only the newest test deliveries, or of all others that are not valid the newest of each source.

    Above the limit of all sources the one with the most gives way, so a flood displaces only itself.
    """
    if stored.is_test:
        _keep_newest(Delivery.objects.filter(verdict=DeliveryVerification.TEST), MAX_TESTS_KEPT)
        return
    invalid = Delivery.objects.exclude(verdict__in=[DeliveryVerification.VALID, DeliveryVerification.TEST])
    _keep_newest(invalid.filter(source=stored.source), MAX_INVALID_KEPT_OF_SOURCE)
    sources = invalid.order_by().values("source").annotate(count=Count("pk")).order_by("-count", "source")
    counts = {row["source"]: row["count"] for row in sources}
    surplus = sum(counts.values()) - MAX_INVALID_KEPT
    if surplus > 0:
        largest = next(iter(counts))
        _keep_newest(invalid.filter(source=largest), max(0, counts[largest] - surplus))


def _keep_newest(deliveries: "QuerySet[Delivery]", limit: int) -> None:
    newest_first = deliveries.order_by("-pk")
    for newest_surplus in newest_first.values_list("pk", flat=True)[limit : limit + 1]:
        deliveries.filter(pk__lte=newest_surplus).delete()


def _enqueue() -> None:
    """Enqueue the task, at most as often as it may run, since a message costs as much as the rest of the
    request.

    The sweeper finds deliveries without a message in its next round.
    """
    global _enqueued_at
    now = monotonic()
    if now - _enqueued_at >= MIN_INTERVAL.total_seconds():
        _enqueued_at = now
        enqueue_on_commit(PROCESS_TASK, "")
