"""Verify and store each delivery once, then read the provider again because of it.

A delivery never changes an operation; only a read of the provider does.
"""

import hashlib
from datetime import timedelta
from time import monotonic
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.canonical import storable_text
from backoffice.core import clock
from backoffice.core.background import enqueue_on_commit
from backoffice.core.gateway import provider_profile
from backoffice.core.leases import acquire_lease
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH
from backoffice.operations.outcome import schedule
from backoffice.webhooks import configuration
from backoffice.webhooks.models import Delivery, DeliveryVerification
from payments_gateway.webhooks import ReceivedWebhook, verify_webhook, webhook_identity

PROCESS_TASK = "webhooks.process"
MIN_INTERVAL = timedelta(seconds=1)
"""Due deliveries are processed at most this often, however many arrive."""
CHECK_LEASE = "webhook checks"
_CHECK_LEASE_DURATION = timedelta(minutes=2)
"""How long a killed process can hold the lease. The checks remain due, and the sweeper does them."""
_BATCH_SIZE = 500


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
def recheck_delivery(delivery_id: int, *, actor: User) -> Delivery:
    """Read the provider again because of this delivery, whatever its verification, at a person's request."""
    delivery = Delivery.objects.get(pk=delivery_id)
    Delivery.objects.filter(pk=delivery.pk).update(check_due_at=clock.now())
    audit.record(Action.DELIVERY_RECHECKED, actor=actor, target=delivery, verdict=delivery.verdict)
    enqueue_on_commit(PROCESS_TASK, "")
    return delivery


def _schedule_checks() -> dict[int, str]:
    """Schedule checks in operations and mirror; returns the transactions named, by delivery.

    If the process is killed before the end, this is repeated; after it, the sweeper does the checks.
    """
    due = dict(
        Delivery.objects.filter(check_due_at__isnull=False).values_list("pk", "transaction_id")[:_BATCH_SIZE]
    )
    schedule.schedule_checks(_transaction_ids(due))
    Delivery.objects.filter(pk__in=due).update(check_due_at=None, checked_at=clock.now())
    return due


def _transaction_ids(deliveries: dict[int, str]) -> set[str]:
    return set(deliveries.values()) - {""}


MAX_INVALID_KEPT = 1000
"""How many invalid deliveries are kept, the newest: a sender who knows the URL must not fill the disk."""

_FIELDS = [field for field in Delivery._meta.concrete_fields if not field.primary_key]
# Columns set by the first valid verification, such as when the missing key has been configured. Later repeats do not
# change them: whatever the signature does not cover could be forged in a repeat.
_VERDICT_COLUMNS = (
    "verdict",
    "error",
    "key",
    "event",
    "transaction_id",
    "reference",
    "digest",
    "body",
    "valid_at",
    "check_due_at",
)
# No input is interpolated into these: names are those of our own columns, values are parameters.
_INSERT = f"""
    INSERT INTO webhooks_delivery ({", ".join(field.attname for field in _FIELDS)})
    VALUES ({", ".join(["%s"] * len(_FIELDS))})
    ON CONFLICT (identity) DO UPDATE
    SET received_count = webhooks_delivery.received_count + 1, last_at = EXCLUDED.last_at
"""  # noqa: S608
_UNLESS_VALID = (
    "CASE WHEN webhooks_delivery.verdict = 'valid' THEN webhooks_delivery.{0} ELSE EXCLUDED.{0} END"
)
_SET_VALID = "".join(f", {name} = {_UNLESS_VALID.format(name)}" for name in _VERDICT_COLUMNS)
_RETURNING = " RETURNING received_count, check_due_at IS NOT NULL"
_enqueued_at = float("-inf")


def receive_delivery(body: bytes) -> DeliveryVerification:
    """Verify and store a body and return the result. A read of the provider becomes due if it is valid and
    new.

    New means: no delivery with the same data and signature was received before. One statement stores the
    delivery and makes the read due, so nothing that was answered is lost. A repeat is counted and triggers
    nothing. Never raises for any body.
    """
    delivery = _verified(body)
    received_count, is_check_due = _store(delivery)
    if delivery.verdict != DeliveryVerification.VALID and received_count == 1:
        _delete_oldest_invalid()
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
    if not keys:
        delivery.verdict = DeliveryVerification.UNVERIFIED
        delivery.identity = webhook_identity(body, provider_profile())
        return delivery
    _fill_in(delivery, verify_webhook(body, keys, provider_profile()))
    if delivery.verdict == DeliveryVerification.VALID:
        delivery.valid_at = delivery.check_due_at = now
    return delivery


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


def _text_within(text: str, length: int) -> str:
    """The text, or empty if it is too long: a truncated id would be another id."""
    return text if len(text) <= length else ""


def _store(delivery: Delivery) -> tuple[int, bool]:
    """Store it, or count a repeat; returns how often it was received, and whether a read is due because of
    it.
    """
    set_valid = _SET_VALID if delivery.verdict == DeliveryVerification.VALID else ""
    with connection.cursor() as cursor:
        cursor.execute(f"{_INSERT}{set_valid}{_RETURNING}", _values(delivery))
        received_count, is_check_due = cursor.fetchone()
    return received_count, bool(is_check_due)


def _values(delivery: Delivery) -> list[Any]:
    return [field.get_db_prep_save(getattr(delivery, field.attname), connection) for field in _FIELDS]


def _delete_oldest_invalid() -> None:
    """Keep only the newest invalid deliveries."""
    not_valid = Delivery.objects.exclude(verdict=DeliveryVerification.VALID).order_by("-pk")
    for newest_surplus in not_valid.values_list("pk", flat=True)[MAX_INVALID_KEPT : MAX_INVALID_KEPT + 1]:
        not_valid.filter(pk__lte=newest_surplus).delete()


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
