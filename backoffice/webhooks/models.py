"""Webhook deliveries received: each once, with the result of its verification and how often it was received."""

from django.db import models
from django.db.models import Q, TextChoices
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH


class DeliveryVerification(TextChoices):
    """The result of verifying the signature. Only a valid delivery triggers status checks."""

    VALID = "valid", _("Valid")
    INVALID = "invalid", _("Invalid")
    UNSIGNED = "unsigned", _("Unsigned")
    MALFORMED = "malformed", _("Malformed")
    UNVERIFIED = "unverified", _("Not verified")  # no key was configured to verify it
    TEST = "test", _("Test")  # signed here, with the key of a test delivery: never evidence of the provider


PROBLEMS = {
    DeliveryVerification.INVALID: _("The signature does not match any configured public key."),
    DeliveryVerification.UNSIGNED: _("The delivery has no signature."),
    DeliveryVerification.MALFORMED: _("The delivery cannot be read: {error}."),
    DeliveryVerification.UNVERIFIED: _(
        "The signature was not verified: no usable public key of the provider is configured."
    ),
}
"""Why a delivery is not valid, as a sentence. A valid one and a test have none."""


class StartedRead(TextChoices):
    """A read of the provider that a delivery started. The label is the sentence, with its parameters in braces."""

    SYNC = "sync", _("Sync of the provider's transactions")
    STATUS_CHECK = (
        "status_check",
        _("Immediate status check of the operation with this transaction:"),
    )
    UNMATCHED_CHECKS = (
        "unmatched_checks",
        _(
            "Status checks of operations without a known transaction, because the delivery may be about any of them:"
        ),
    )
    NEWEST_UNMATCHED_CHECKS = (
        "newest_unmatched_checks",
        _(
            "Status checks of operations without a known transaction, because the delivery may be about any of them. "
            "The newest {shown} of {count}:"
        ),
    )
    OTHER_CHECKS = (
        "other_checks",
        _("Other open operations, checked earlier than scheduled: {count}"),
    )


class Delivery(models.Model):
    """One delivery, however often it was received. It is a hint only: it never changes an operation.

    `identity` is the hash of its data and signature, or of the whole body if unsigned: the same identity is a
    repeat. `body` is the first body, or the first valid one; `digest` is its SHA-256. `valid_at` is when it
    was first verified, null if never. `check_due_at` is since when a read of the provider is due because of it,
    null if none is; `checked_at` is when that was last done, and `started` the last runs, newest first, each
    `{"at": …, "reads": […]}` with the codes of `StartedRead`.

    `headers`, `response_status` and `response_ms` belong to the request whose body is stored. A header whose value is
    not stored has null (`endpoint.headers_to_store`). `response_ms` is in milliseconds, from the beginning of the
    request until our response is ready. `event_at` is the time of the transaction or payment in the delivery.
    """

    identity = models.CharField(max_length=64, unique=True)
    digest = models.CharField(max_length=64)
    received_at = models.DateTimeField()
    last_at = models.DateTimeField()
    received_count = models.PositiveIntegerField(default=1)
    verdict = models.CharField(max_length=16, choices=DeliveryVerification)
    error = models.CharField(max_length=300, blank=True)  # what makes a malformed one unreadable
    key = models.CharField(max_length=64, blank=True)  # fingerprint of the key that signed it
    event = models.CharField(max_length=200, blank=True)
    transaction_id = models.CharField(max_length=TRANSACTION_ID_LENGTH, blank=True)
    reference = models.CharField(max_length=200, blank=True)
    body = models.BinaryField()
    valid_at = models.DateTimeField(null=True)
    check_due_at = models.DateTimeField(null=True)
    checked_at = models.DateTimeField(null=True)
    event_at = models.DateTimeField(null=True)
    # With defaults in the database, because the previous release inserts rows without these two columns.
    headers = models.JSONField(default=dict, db_default={})
    response_status = models.PositiveSmallIntegerField(null=True)  # null if received before it was stored
    response_ms = models.PositiveIntegerField(null=True)
    started = models.JSONField(default=list, db_default=[])
    # The network that sent it first; empty if received before it was stored.
    source = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        default_permissions = ()
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(fields=["-received_at", "-id"], name="delivery_newest_first"),
            models.Index(
                fields=["valid_at"], condition=Q(valid_at__isnull=False), name="delivery_valid_by_time"
            ),
            models.Index(
                fields=["id"], condition=~Q(verdict=DeliveryVerification.VALID), name="delivery_not_valid"
            ),
            models.Index(fields=["id"], condition=Q(verdict=DeliveryVerification.TEST), name="delivery_test"),
            models.Index(fields=["id"], condition=Q(check_due_at__isnull=False), name="delivery_check_due"),
            models.Index(
                fields=["transaction_id", "event_at"],
                condition=~Q(transaction_id=""),
                name="delivery_transaction",
            ),
            models.Index(
                fields=["reference", "event_at"], condition=~Q(reference=""), name="delivery_reference"
            ),
            models.Index(fields=["digest"], name="delivery_digest"),
        ]

    def __str__(self) -> str:
        return f"the webhook {self.event or 'without an event'} {self.digest[:8]}"

    def get_absolute_url(self) -> str:
        return reverse("webhooks:delivery", args=[self.pk])

    @property
    def is_test(self) -> bool:
        """Whether it was sent from here as a test."""
        return self.verdict == DeliveryVerification.TEST

    @property
    def problem(self) -> str:
        """Why it is not valid; empty if it is."""
        error = gettext(self.error) if self.error else ""
        return str(PROBLEMS.get(DeliveryVerification(self.verdict), "")).format(error=error)


class DeliveryTestKey(models.Model):
    """The public key of the last test delivery, in one row, by which the endpoint recognises it.

    The private key is never stored: it is made for one test and discarded once the delivery is signed.
    """

    public_pem = models.TextField()
    made_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = (models.CheckConstraint(condition=Q(pk=1), name="webhooks_one_test_key"),)

    def __str__(self) -> str:
        return "the key of test deliveries"
