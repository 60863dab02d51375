"""Keeps what arrives at our address, each delivery once. Moves nothing else."""

import hashlib
from time import monotonic
from typing import Any

from django.db import connection
from django.utils import timezone

from backoffice.audit.canonical import storable
from backoffice.core.gateway import dialect
from backoffice.core.queue import ring
from backoffice.operations.models import ID_LENGTH
from backoffice.webhooks import configuration
from backoffice.webhooks.models import Delivery
from backoffice.webhooks.services.looking import EVERY, TASK
from backoffice.webhooks.states import DeliveryVerification
from payments_gateway.deliveries import Delivery as Judged
from payments_gateway.deliveries import identity, verify

MOST_NOT_VALID = 1000
"""Deliveries that are not valid and are kept, the newest: who knows the address must not fill the disk."""

_FIELDS = [field for field in Delivery._meta.concrete_fields if not field.primary_key]
# What its first valid verdict changes: one that could not be verified before, for want of the key, and can be now. All
# that the signature does not cover may be another's in what comes after that, so it stays as it was.
_OF_THE_VERDICT = (
    "verdict",
    "problem",
    "key",
    "event",
    "transaction_id",
    "reference",
    "digest",
    "body",
    "valid_at",
    "wanted_at",
)
# Nothing in these is anybody's text: the names are those of our own columns, values are parameters.
_KEEP = f"""
    INSERT INTO webhooks_delivery ({", ".join(field.attname for field in _FIELDS)})
    VALUES ({", ".join(["%s"] * len(_FIELDS))})
    ON CONFLICT (identity) DO UPDATE SET times = webhooks_delivery.times + 1, last_at = EXCLUDED.last_at
"""  # noqa: S608
_UNLESS_VALID = (
    "CASE WHEN webhooks_delivery.verdict = 'valid' THEN webhooks_delivery.{0} ELSE EXCLUDED.{0} END"
)
_VALID_NOW = "".join(f", {name} = {_UNLESS_VALID.format(name)}" for name in _OF_THE_VERDICT)
_RETURNING = " RETURNING times, wanted_at IS NOT NULL"
_rung_at = float("-inf")


def receive_delivery(body: bytes) -> DeliveryVerification:
    """Judge a body, keep it, and say what it is worth. Starts a re-read if the service signed it and it is new, which
    is: nothing with the same data and signature came before, whatever is written around them.

    One statement keeps it and says that a re-read is wanted, so it is one commit: what was answered is not lost. A
    repeat is counted and starts nothing. Never raises for anything that a body can hold.
    """
    delivery = _judged(body)
    times, is_wanted = _keep(delivery)
    if delivery.verdict != DeliveryVerification.VALID and times == 1:
        _drop_oldest()
    if is_wanted:
        _ring()
    return DeliveryVerification(delivery.verdict)


def _judged(body: bytes) -> Delivery:
    now = timezone.now()
    delivery = Delivery(
        digest=hashlib.sha256(body).hexdigest(), received_at=now, last_at=now, times=1, body=body
    )
    try:
        keys = configuration.public_keys()
    except ValueError:
        keys = ()  # the page and `manage.py check` say what is wrong with them
    if not keys:
        delivery.verdict = DeliveryVerification.UNVERIFIED
        delivery.problem = "No public key of the service can be used, so nothing can be verified."
        delivery.identity = identity(body, dialect())
        return delivery
    _note(delivery, verify(body, keys, dialect()))
    if delivery.verdict == DeliveryVerification.VALID:
        delivery.valid_at = delivery.wanted_at = now
    return delivery


def _note(delivery: Delivery, judged: Judged) -> None:
    """Write down what was found, and what people can look for, as far as it has room."""
    news = judged.news()
    delivery.identity = judged.identity
    delivery.verdict = DeliveryVerification(judged.verdict.value)
    delivery.problem = judged.problem[:300]
    delivery.key = judged.key.fingerprint if judged.key else ""
    delivery.event = storable(judged.event)[:200]
    delivery.transaction_id = _if_it_fits(getattr(news, "transaction_id", ""), ID_LENGTH)
    delivery.reference = _if_it_fits(getattr(news, "reference", ""), 200)


def _if_it_fits(told: str, length: int) -> str:
    """The text as it was told, or nothing: a part of an id is another id."""
    return told if len(told) <= length else ""


def _keep(delivery: Delivery) -> tuple[int, bool]:
    """Keep it, or count it once more; how often it came, and whether a re-read is wanted because of it."""
    further = _VALID_NOW if delivery.verdict == DeliveryVerification.VALID else ""
    with connection.cursor() as cursor:
        cursor.execute(f"{_KEEP}{further}{_RETURNING}", _values(delivery))
        times, is_wanted = cursor.fetchone()
    return times, bool(is_wanted)


def _values(delivery: Delivery) -> list[Any]:
    return [field.get_db_prep_save(getattr(delivery, field.attname), connection) for field in _FIELDS]


def _drop_oldest() -> None:
    """Keep the newest of what is not valid, and no more."""
    not_valid = Delivery.objects.exclude(verdict=DeliveryVerification.VALID).order_by("-pk")
    for newest_to_go in not_valid.values_list("pk", flat=True)[MOST_NOT_VALID : MOST_NOT_VALID + 1]:
        not_valid.filter(pk__lte=newest_to_go).delete()


def _ring() -> None:
    """Have a worker look now; not more often than it would look anyway, since a message costs as much as all the rest.

    The sweeper finds what was not rung for in its next round.
    """
    global _rung_at
    now = monotonic()
    if now - _rung_at >= EVERY.total_seconds():
        _rung_at = now
        ring(TASK, "")
