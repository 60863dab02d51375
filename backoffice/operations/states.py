"""The states of an operation, the only transitions between them, and the outcomes of an attempt.

The database repeats the table of transitions as a trigger.
"""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Status(TextChoices):
    """The status of an operation. The same word in code, database, screen, CSV and audit log."""

    PENDING = "pending", _("Pending")
    APPROVED = "approved", _("Approved")
    SENDING = "sending", _("Sending")
    PROCESSING = "processing", _("Processing")
    UNKNOWN = "unknown", _("Unknown")
    REVIEW = "review", _("Review")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed")
    REJECTED = "rejected", _("Rejected")
    EXPIRED = "expired", _("Expired")
    CANCELLED = "cancelled", _("Cancelled")


EDGES: dict[Status, frozenset[Status]] = {
    Status.PENDING: frozenset({Status.APPROVED, Status.REJECTED, Status.EXPIRED, Status.CANCELLED}),
    # Directly to succeeded only for what is applied here and never sent (`LocalKind`), and for what two people resolved
    # as paid without a request from here; the trigger checks this too.
    Status.APPROVED: frozenset({Status.SENDING, Status.SUCCEEDED, Status.EXPIRED, Status.CANCELLED}),
    # Back to approved only on proof: no byte was sent, or the provider refused the one-time code.
    Status.SENDING: frozenset(
        {Status.APPROVED, Status.PROCESSING, Status.UNKNOWN, Status.SUCCEEDED, Status.FAILED}
    ),
    Status.PROCESSING: frozenset({Status.SUCCEEDED, Status.FAILED, Status.REVIEW}),
    Status.UNKNOWN: frozenset({Status.SUCCEEDED, Status.FAILED, Status.PROCESSING, Status.REVIEW}),
    Status.REVIEW: frozenset({Status.SUCCEEDED, Status.FAILED}),
    Status.SUCCEEDED: frozenset(),
    Status.FAILED: frozenset(),
    Status.REJECTED: frozenset(),
    Status.EXPIRED: frozenset(),
    Status.CANCELLED: frozenset(),
}

CLOSED = frozenset(status for status, onward in EDGES.items() if not onward)
OPEN = frozenset(Status) - CLOSED
BEFORE_SENDING = frozenset({Status.PENDING, Status.APPROVED})
# What may still be sent. Of the operations with the same content, only one has one of these statuses: one that is being
# sent may return to approved, which an equal one would prevent.
TO_SEND = BEFORE_SENDING | {Status.SENDING}
IN_FLIGHT = frozenset({Status.SENDING, Status.PROCESSING, Status.UNKNOWN, Status.REVIEW})
AWAITING_PROVIDER = frozenset({Status.PROCESSING, Status.UNKNOWN})
NOT_EXECUTED = frozenset({Status.REJECTED, Status.EXPIRED, Status.CANCELLED, Status.FAILED})
NEEDS_ATTENTION = frozenset({Status.UNKNOWN, Status.REVIEW})
OUTCOME_UNKNOWN = NEEDS_ATTENTION | {Status.SENDING}  # not known whether it was executed


class Outcome(TextChoices):
    """How an attempt to send ended. An attempt without an end is open: money may be moving."""

    OPEN = "open", _("No outcome yet")
    NOT_SENT = "not_sent", _("Not sent")
    OTP_REJECTED = "otp_rejected", _("One-time code refused")
    REJECTED = "rejected", _("Refused by the provider")
    SUCCEEDED = "succeeded", _("Succeeded")
    FAILED = "failed", _("Failed at the provider")


PROVEN_NOT_EXECUTED = frozenset({Outcome.NOT_SENT, Outcome.OTP_REJECTED})
