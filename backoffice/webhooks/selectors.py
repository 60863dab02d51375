"""Reads what was delivered, and whether deliveries still come."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from django.core.cache import cache
from django.db.models import Max, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.ledger import selectors as ledger
from backoffice.ledger.callback import is_ours
from backoffice.ledger.mirrored import Transaction
from backoffice.operations.models import Operation
from backoffice.operations.selectors import operations_by_transaction, visible_operations
from backoffice.operations.states import Status
from backoffice.webhooks import configuration
from backoffice.webhooks.models import Delivery

NEWEST_FIRST = ("-received_at", "-id")
NEWS_MAY_TAKE = timedelta(days=1)
_CLOSED_BY_NEWS = timedelta(hours=1)  # what ends so soon after news may have ended because of it
_LOOKS_BACK = timedelta(days=7)
_REMEMBERED = "webhooks:silence"


@dataclass(frozen=True)
class Receiver:
    """What this deployment has configured: fingerprints of the keys, or the problem with them."""

    is_on: bool
    fingerprints: list[str]
    problem: str = ""


@dataclass(frozen=True)
class Row:
    """A delivery, the transaction that it names, if that is here, and the operation of ours behind it."""

    delivery: Delivery
    transaction_pk: int | None
    operation: Operation | None


@dataclass(frozen=True)
class Silence:
    """The service should have delivered something and has not. `last_at` is when it last did; None for never."""

    last_at: datetime | None


def receiver() -> Receiver:
    """The receiver as it is configured."""
    try:
        keys = configuration.public_keys()
    except ValueError as exc:
        return Receiver(configuration.is_on(), [], str(exc))
    return Receiver(configuration.is_on(), [key.fingerprint for key in keys])


def deliveries() -> QuerySet[Delivery]:
    """Every delivery, without its body."""
    return Delivery.objects.defer("body")


def listed() -> QuerySet[Delivery]:
    """The same for people to see: each with the mirrored transaction that it names, as `transaction_pk`."""
    named = Transaction.objects.filter(transaction_id=OuterRef("transaction_id")).values("pk")
    return cast("QuerySet[Delivery]", deliveries().annotate(transaction_pk=Subquery(named[:1])))


def rows_of(user: User, found: Sequence[Delivery]) -> list[Row]:
    """Deliveries that were `listed`, with what they are about, as far as this person may see it."""
    caused = operations_by_transaction(user, {delivery.transaction_id for delivery in found} - {""})
    return [Row(one, vars(one)["transaction_pk"], caused.get(one.transaction_id)) for one in found]


def row_of(user: User, delivery: Delivery) -> Row:
    """The same of one, found by the payment's reference, too."""
    (row,) = rows_of(user, [delivery])
    if row.operation is not None or not delivery.reference:
        return row
    paid = visible_operations(user).filter(kind="payment", payload__reference=delivery.reference)
    return Row(delivery, row.transaction_pk, paid.first())


def last_valid_at() -> datetime | None:
    """When the last valid delivery came that was new: whoever replays an old one brings no sign of life.

    One that was refused at first, for want of the key, is new when it comes again and is valid.
    """
    newest: datetime | None = Delivery.objects.filter(valid_at__isnull=False).aggregate(at=Max("valid_at"))[
        "at"
    ]
    return newest


def silence_on_pages() -> Silence | None:
    """`silence`, as this process knew it within the last minute: it is a matter of days."""
    known: tuple[Silence | None] | None = cache.get(_REMEMBERED)
    if known is None:
        known = (silence(),)
        cache.set(_REMEMBERED, known, timeout=60)
    return known[0]


def silence() -> Silence | None:
    """That something settled more than a day ago, and no valid delivery has come since; None while all is well.

    Told only where the service has our address. Settled counts after the last delivery, or after the address was set.
    """
    if not configuration.is_on():
        return None
    set_by = (
        Operation.objects.filter(kind="callback_url", status=Status.SUCCEEDED).order_by("-closed_at").first()
    )
    told = ledger.known_callback_url()
    address = told.value if told.is_known else set_by and str(set_by.payload.get("url", ""))
    if not address or not is_ours(address):
        return None
    now, last_at = timezone.now(), last_valid_at()
    known = (last_at, set_by.closed_at if set_by else None)
    since = max([now - _LOOKS_BACK, *(moment for moment in known if moment is not None)])
    settled = Operation.objects.filter(
        Q(closed_at__gt=since + _CLOSED_BY_NEWS, closed_at__lte=now - NEWS_MAY_TAKE),
        status__in=(Status.SUCCEEDED, Status.FAILED),
        attempts__service_transaction_id__isnull=False,
    )
    return Silence(last_at) if settled.exists() else None
