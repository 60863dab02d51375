"""Read the deliveries received, and detect that expected ones are missing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from django import forms
from django.core.cache import cache
from django.db.models import Max, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.web.forms import PeriodForm
from backoffice.ledger import callback_url
from backoffice.ledger.callback_url import is_own_address
from backoffice.ledger.models import Transaction
from backoffice.operations.models.operations import Operation
from backoffice.operations.selectors import operations_by_transaction, visible_operations
from backoffice.operations.states import Status
from backoffice.webhooks import configuration
from backoffice.webhooks.models import Delivery, DeliveryVerification

VIEW_PERMISSIONS = ("ledger.view_balance", "ledger.view_transaction")


class DeliveryFilterForm(PeriodForm):
    """The filters of the report of deliveries. Every field is optional."""

    verdict = forms.ChoiceField(required=False, choices=[("", "Any verdict"), *DeliveryVerification.choices])
    event = forms.CharField(required=False, max_length=200, label="Event", help_text="Its name, in any case")
    field_order = ("verdict", "event", "since", "until")


NEWEST_FIRST = ("-received_at", "-id")
DELIVERY_GRACE = timedelta(days=1)
_CLOSED_BY_DELIVERY = timedelta(
    hours=1
)  # an operation closed so soon after a delivery may have been closed because of it
_LOOKBACK = timedelta(days=7)
_CACHE_KEY = "webhooks:silence"
_TONES = {DeliveryVerification.VALID: "good", DeliveryVerification.UNVERIFIED: "warn"}


@dataclass(frozen=True)
class ReceiverStatus:
    """The configuration of the receiver: fingerprints of the public keys, or the problem with them."""

    is_on: bool
    fingerprints: list[str]
    problem: str = ""


@dataclass(frozen=True)
class DeliveryRow:
    """A delivery, the transaction it names, if that is in the mirror, and the operation it belongs to."""

    delivery: Delivery
    transaction_pk: int | None
    operation: Operation | None

    @property
    def tone(self) -> str:
        """CSS class of the badge for the result of the verification."""
        return _TONES.get(DeliveryVerification(self.delivery.verdict), "bad")


@dataclass(frozen=True)
class MissingDeliveries:
    """The provider should have delivered something and has not. `last_at` is the last delivery; None for
    never.
    """

    last_at: datetime | None


def receiver_status() -> ReceiverStatus:
    try:
        keys = configuration.public_keys()
    except ValueError as exc:
        return ReceiverStatus(configuration.is_on(), [], str(exc))
    return ReceiverStatus(configuration.is_on(), [key.fingerprint for key in keys])


def all_deliveries() -> QuerySet[Delivery]:
    """All deliveries, without their bodies."""
    return Delivery.objects.defer("body")


def deliveries_with_transaction() -> QuerySet[Delivery]:
    """The same, annotated with the mirrored transaction that each names, as `transaction_pk`."""
    mirrored = Transaction.objects.filter(transaction_id=OuterRef("transaction_id")).values("pk")
    return cast("QuerySet[Delivery]", all_deliveries().annotate(transaction_pk=Subquery(mirrored[:1])))


def delivery_rows(user: User, deliveries: Sequence[Delivery]) -> list[DeliveryRow]:
    """Rows of `deliveries_with_transaction` with their subjects, as far as this person may see them."""
    operations = operations_by_transaction(user, {delivery.transaction_id for delivery in deliveries} - {""})
    return [
        DeliveryRow(one, vars(one)["transaction_pk"], operations.get(one.transaction_id))
        for one in deliveries
    ]


def delivery_row(user: User, delivery: Delivery) -> DeliveryRow:
    """The same for one delivery, also matched by the payment's reference."""
    (row,) = delivery_rows(user, [delivery])
    if row.operation is not None or not delivery.reference:
        return row
    payments = visible_operations(user).filter(kind="payment", payload__reference=delivery.reference)
    return DeliveryRow(delivery, row.transaction_pk, payments.first())


def last_valid_at() -> datetime | None:
    """When the last new valid delivery arrived. A replay of an old one does not count.

    A delivery first refused for want of the key is new when it arrives again and is valid.
    """
    newest: datetime | None = Delivery.objects.filter(valid_at__isnull=False).aggregate(at=Max("valid_at"))[
        "at"
    ]
    return newest


def cached_missing_deliveries() -> MissingDeliveries | None:
    """`missing_deliveries`, cached in this process for a minute, since the threshold is a day."""
    known: tuple[MissingDeliveries | None] | None = cache.get(_CACHE_KEY)
    if known is None:
        known = (missing_deliveries(),)
        cache.set(_CACHE_KEY, known, timeout=60)
    return known[0]


def missing_deliveries() -> MissingDeliveries | None:
    """Set if something settled more than a day ago and no valid delivery has arrived since; otherwise None.

    Reported only if our callback URL is set at the provider. Counts what settled after the last delivery, or
    after the URL was set.
    """
    if not configuration.is_on():
        return None
    setting = (
        Operation.objects.filter(kind="callback_url", status=Status.SUCCEEDED).order_by("-closed_at").first()
    )
    cached = callback_url.cached_callback_url()
    address = cached.value if cached.is_known else setting and str(setting.payload.get("url", ""))
    if not address or not is_own_address(address):
        return None
    now, last_at = timezone.now(), last_valid_at()
    known = (last_at, setting.closed_at if setting else None)
    since = max([now - _LOOKBACK, *(moment for moment in known if moment is not None)])
    settled = Operation.objects.filter(
        Q(closed_at__gt=since + _CLOSED_BY_DELIVERY, closed_at__lte=now - DELIVERY_GRACE),
        status__in=(Status.SUCCEEDED, Status.FAILED),
        attempts__provider_transaction_id__isnull=False,
    )
    return MissingDeliveries(last_at) if settled.exists() else None
