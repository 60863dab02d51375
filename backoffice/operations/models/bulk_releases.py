"""Several approved operations that one person released together, for the page that shows their progress.

Each operation has a release of its own, with its seal and its audit entry.
"""

import hashlib
import uuid
from collections import Counter

from django.db import models
from django.db.models import Case, Count, Exists, F, OuterRef, Q, Value, When
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.models import User
from backoffice.audit.canonical import canonical_time
from backoffice.core.database.writes import NEVER_DELETED, appended
from backoffice.core.encryption import SealedRow
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.refusals.sentences import sentence
from backoffice.operations.states import Status


class BulkRelease(SealedRow):
    """A person's order to send these operations, in this sequence. While `is_pending`, a worker releases them.

    Sealed with the person and the time of the second factor: a row that was written with the database alone
    releases nothing.
    """

    WRITES = NEVER_DELETED

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    released_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    # When the second factor was confirmed for the last "Send" of this page.
    second_factor_at = models.DateTimeField()
    is_pending = models.BooleanField()
    confirmed_at = models.DateTimeField()
    # Why the last order ended before its operations were released, as a code with parameters; null if it did not.
    refusal = models.JSONField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["confirmed_at"], condition=Q(is_pending=True), name="bulk_release_pending"),
        ]

    def __str__(self) -> str:
        return f"bulk release {str(self.pk)[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("operations:bulk_release", args=[self.pk])

    def sealed_content(self) -> dict[str, object]:
        """That this person ordered exactly these contents to be sent, with a second factor of this time."""
        return {
            "decision": "bulk_released",
            "bulk_release": str(self.pk),
            "person": str(self.released_by_id),
            "second_factor_at": canonical_time(self.second_factor_at),
            "items": self.items_digest(),
        }

    def items_digest(self) -> str:
        """A digest of the operations and their contents, in order."""
        shown = self.items.order_by("position").values_list("operation", "digest")
        return hashlib.sha256("\n".join(f"{pk}:{digest}" for pk, digest in shown).encode()).hexdigest()

    @property
    def owner(self) -> str:
        return str(self)

    @property
    def reason(self) -> str:
        """Why the last order ended early, in words; empty if it did not."""
        return sentence(self.refusal) if self.refusal else ""


class ItemState(models.TextChoices):
    """Where one operation of a bulk release is, in the order of the page: what needs a person first."""

    REFUSED = "refused", _("Not sent")
    REVIEW = Status.REVIEW.value, Status.REVIEW.label
    UNKNOWN = Status.UNKNOWN.value, Status.UNKNOWN.label
    FAILED = Status.FAILED.value, Status.FAILED.label
    WAITING = "waiting", _("To send")
    QUEUED = "queued", _("Queued")
    SENDING = Status.SENDING.value, Status.SENDING.label
    PROCESSING = Status.PROCESSING.value, Status.PROCESSING.label
    SUCCEEDED = Status.SUCCEEDED.value, Status.SUCCEEDED.label
    CANCELLED = Status.CANCELLED.value, Status.CANCELLED.label
    EXPIRED = Status.EXPIRED.value, Status.EXPIRED.label


NOT_SENT = (ItemState.REFUSED, ItemState.WAITING, ItemState.QUEUED, ItemState.CANCELLED, ItemState.EXPIRED)

_TO_SEND = (ItemState.WAITING, ItemState.QUEUED, ItemState.SENDING)
_IS_WAITING, _IS_QUEUED = Q(state=ItemState.WAITING), Q(state=ItemState.QUEUED)
_IS_TO_SEND = Q(state__in=_TO_SEND)
_IS_MOVING = Q(state__in=(*_TO_SEND, ItemState.PROCESSING))


class BulkReleaseItemQuerySet(models.QuerySet["BulkReleaseItem"]):
    def with_state(self) -> "BulkReleaseItemQuerySet":
        """Each with its `state`, an `ItemState`, from the operation and its release as they are now."""
        released = Release.objects.filter(operation=OuterRef("operation"), expires_at__gt=Now())
        approved = Q(operation__status=Status.APPROVED)
        return self.annotate(
            state=Case(
                When(approved & Exists(released), then=Value(ItemState.QUEUED)),
                When(approved & Q(refusal__isnull=False), then=Value(ItemState.REFUSED)),
                When(approved, then=Value(ItemState.WAITING)),
                default=F("operation__status"),
                output_field=models.CharField(),
            )
        )

    def waiting(self) -> "BulkReleaseItemQuerySet":
        """Those whose operation is approved and not released, and that were not refused."""
        return self.with_state().filter(_IS_WAITING)

    def queued(self) -> "BulkReleaseItemQuerySet":
        """Those whose operation is released and not sent yet."""
        return self.with_state().filter(_IS_QUEUED)

    def moving(self) -> "BulkReleaseItemQuerySet":
        """Those still to be sent, being sent, or processing at the provider."""
        return self.with_state().filter(_IS_MOVING)

    def to_send(self) -> "BulkReleaseItemQuerySet":
        """Those not sent yet: waiting, released or being sent. Selected through the open operations, which are few."""
        found = Operation.objects.filter(closed_at__isnull=True, status__in=[Status.APPROVED, Status.SENDING])
        return self.filter(operation__in=found.values("pk")).with_state().filter(_IS_TO_SEND)

    def in_paused_batch(self) -> "BulkReleaseItemQuerySet":
        """Those whose operation is a row of a batch that is paused now: it is neither released nor sent."""
        return self.filter(operation__batch_row__batch__batch__paused_at__isnull=False)

    def in_no_paused_batch(self) -> "BulkReleaseItemQuerySet":
        """All others: also those of no batch."""
        return self.filter(operation__batch_row__batch__batch__paused_at__isnull=True)

    def counts_to_release(self) -> dict[tuple[str, str], int]:
        """How many operations there are of each currency and kind."""
        grouped = self.order_by().values_list("operation__currency", "operation__kind")
        return {(currency, kind): number for currency, kind, number in grouped.annotate(number=Count("pk"))}

    def counts(self) -> dict[ItemState, int]:
        """How many are in each state, in the order of `ItemState`, without those of which there are none."""
        states = self.with_state().order_by().values_list(F("state"))
        found = Counter(state for (state,) in states)
        return {state: found[state] for state in ItemState if state in found}


class BulkReleaseItem(models.Model):
    """One operation of a bulk release, with the content that the person saw."""

    WRITES = appended("refusal")

    bulk_release = models.ForeignKey(BulkRelease, on_delete=models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    # Why it was not released, as a code with parameters (`sentence`); null while nothing is known against it.
    refusal = models.JSONField(null=True)

    objects = BulkReleaseItemQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ("position",)
        constraints = [
            models.UniqueConstraint(fields=["bulk_release", "position"], name="bulk_release_position_once"),
            models.UniqueConstraint(fields=["bulk_release", "operation"], name="bulk_release_operation_once"),
        ]

    def __str__(self) -> str:
        return f"{self.position} of {self.bulk_release_id}"

    @property
    def state_label(self) -> str:
        """The state of `with_state` in words."""
        return str(ItemState(vars(self)["state"]).label)

    @property
    def reason(self) -> str:
        """Why it was not released, in words; empty while nothing is known against it."""
        return sentence(self.refusal) if self.refusal else ""
