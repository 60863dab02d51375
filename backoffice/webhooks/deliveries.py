"""Read the deliveries received, and detect that expected ones are missing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.db.models import BooleanField, Exists, ExpressionWrapper, Max, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.web.formatting import code_sentence
from backoffice.core.web.forms import ListFilterForm, end_of_day, start_of_day
from backoffice.ledger import callback_url
from backoffice.ledger.callback_url import is_own_address, without_secret
from backoffice.ledger.models import Transaction
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Operation
from backoffice.operations.selectors import operations_by_transaction, visible_operations
from backoffice.operations.states import Status
from backoffice.webhooks import configuration
from backoffice.webhooks.models import Delivery, DeliveryVerification, StartedRead

VIEW_PERMISSIONS = ("ledger.view_balance", "ledger.view_transaction")


_DIGEST_BEGINNING = re.compile(r"[0-9a-fA-F]{8,64}")  # lists show eight characters


class DeliveryFilterForm(ListFilterForm):
    """The filters of the list and of the report of deliveries. Every field is optional."""

    verdict = forms.ChoiceField(
        required=False, label=_("Signature"), choices=[("", _("All")), *DeliveryVerification.choices]
    )
    event = forms.CharField(
        required=False, max_length=200, label=_("Event"), widget=forms.TextInput(attrs={"list": "events"})
    )
    subject = forms.CharField(
        required=False,
        max_length=TRANSACTION_ID_LENGTH,
        label=_("Transaction ID, reference or SHA-256 of the body"),
    )
    field_order = ("verdict", "event", "subject", "since", "until")

    def apply(self, deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
        """The deliveries that match every filter, by when they were first received. Call only on a valid form."""
        values = self.cleaned_data
        chosen = {
            "verdict": values["verdict"],
            "event__iexact": values["event"],
            "received_at__gte": values["since"] and start_of_day(values["since"]),
            "received_at__lt": values["until"] and end_of_day(values["until"]),
        }
        found = deliveries.filter(**{name: value for name, value in chosen.items() if value})
        return found.filter(_about(values["subject"])) if values["subject"] else found


def _about(subject: str) -> Q:
    """Exactly this transaction id or reference, or a digest that begins so. One index serves each."""
    same = Q(transaction_id=subject) | Q(reference=subject)
    if not _DIGEST_BEGINNING.fullmatch(subject):
        return same
    beginning = subject.lower()
    return same | Q(digest__gte=beginning, digest__lt=f"{beginning}g")


NEWEST_FIRST = ("-received_at", "-id")
DELIVERY_GRACE = timedelta(days=1)
# An operation closed so soon after a delivery may have been closed because of it.
_CLOSED_BY_DELIVERY = timedelta(hours=1)
_LOOKBACK = timedelta(days=7)
_TONES = {
    DeliveryVerification.VALID: "good",
    DeliveryVerification.UNVERIFIED: "warn",
    DeliveryVerification.TEST: "info",
}


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

    @property
    def is_out_of_order(self) -> bool:
        """Whether a delivery verified before it reports a later state of the same transaction or payment."""
        return bool(vars(self.delivery)["is_out_of_order"])


@dataclass(frozen=True)
class ReadRow:
    """One read that a delivery started, in words, and the operations concerned that the person may see."""

    sentence: str
    operations: list[Operation]


@dataclass(frozen=True)
class ProcessingRun:
    """What one run of the processing started because of a delivery."""

    at: datetime
    reads: list[ReadRow]


@dataclass(frozen=True)
class MissingDeliveries:
    """The provider should have delivered something and has not.

    `last_at` is the last valid delivery; None if there was none. `address` is the callback URL that the provider
    reported at `reported_at`, without its secret part; `reported_at` is None for the one set from here, while none was
    read from the provider yet.
    """

    last_at: datetime | None
    address: str
    reported_at: datetime | None


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
    """The same, annotated with the mirrored transaction that each names, as `transaction_pk`, and whether it
    arrived out of order, as `is_out_of_order`.
    """
    mirrored = Transaction.objects.filter(transaction_id=OuterRef("transaction_id")).values("pk")
    annotations = {"transaction_pk": Subquery(mirrored[:1]), "is_out_of_order": out_of_order()}
    return all_deliveries().annotate(**annotations)


def out_of_order() -> "ExpressionWrapper[Q]":
    """Whether a delivery that was verified before reports a later state of the same transaction or payment.

    A delivery with a transaction is compared by it, any other by its reference, as of a payment. Both must be valid:
    a forged one must not mark others. The time is the one in the data, which the signature covers; a delivery without
    it is never out of order.
    """
    newer = Delivery.objects.filter(
        transaction_id=OuterRef("transaction_id"),
        event_at__gt=OuterRef("event_at"),
        valid_at__lt=OuterRef("valid_at"),
    )
    of_transaction = newer.exclude(transaction_id="")
    of_payment = newer.filter(~Q(reference=""), transaction_id="").filter(reference=OuterRef("reference"))
    return ExpressionWrapper(Exists(of_transaction) | Exists(of_payment), output_field=BooleanField())


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
    holding = Operation.objects.holding_reference("payment", delivery.reference).values("pk")
    payment = visible_operations(user).filter(pk__in=holding).first()
    return DeliveryRow(delivery, row.transaction_pk, payment)


def processing_runs(user: User, delivery: Delivery) -> list[ProcessingRun]:
    """What the delivery started, the last run first, with the operations that this person may see."""
    named = {pk for run in delivery.started for read in run["reads"] for pk in read.get("operations", ())}
    operations = {str(one.pk): one for one in visible_operations(user).filter(pk__in=named)}
    return [
        ProcessingRun(datetime.fromisoformat(run["at"]), list(_read_rows(run["reads"], operations)))
        for run in delivery.started
    ]


def _read_rows(reads: list[dict[str, Any]], operations: Mapping[str, Operation]) -> Iterator[ReadRow]:
    for read in reads:
        concerned = [operations[pk] for pk in read.get("operations", ()) if pk in operations]
        yield ReadRow(code_sentence(StartedRead, read), concerned)


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
    return cached_in_process("missing-deliveries", missing_deliveries, seconds=60)


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
    if not settled.exists():
        return None
    return MissingDeliveries(last_at, without_secret(address), cached.read_at)
