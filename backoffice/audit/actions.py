"""Everything that the audit log can say. One list for the whole product, one block for each application.

A value is `object.past_participle` and stays for ever: old entries carry it. The label is what stands between
the person and the object in a sentence: "Ada Obi *countersigned* CS-2026-0042".
"""

from django.db import models


class Action(models.TextChoices):
    """What happened."""

    # audit
    LOG_VERIFIED = "audit.verified", "verified the audit log"

    # reports
    REPORT_EXPORTED = "report.exported", "exported"

    # operations
    OPERATION_PREPARED = "operation.prepared", "prepared"
    OPERATION_COUNTERSIGNED = "operation.countersigned", "countersigned"
    OPERATION_REJECTED = "operation.rejected", "rejected"
    OPERATION_CANCELLED = "operation.cancelled", "cancelled"
    OPERATION_EXPIRED = "operation.expired", "closed as expired"
    OPERATION_RELEASED = "operation.released", "released for sending"
    OPERATION_RELEASE_LAPSED = (
        "operation.release_lapsed",
        "withdrew the release, which was not sent in time, of",
    )
    OPERATION_CLAIMED = "operation.claimed", "began to send"
    OPERATION_RETURNED = "operation.returned", "returned, because nothing was executed,"
    OPERATION_ACCEPTED = "operation.accepted", "had accepted by the service"
    OPERATION_UNRESOLVED = "operation.unresolved", "does not know the outcome of"
    OPERATION_ESCALATED = "operation.escalated", "asked people to review"
    OPERATION_SUCCEEDED = "operation.succeeded", "confirmed"
    OPERATION_FAILED = "operation.failed", "closed as failed"
    OPERATION_REFUSED = "operation.refused", "was refused an action on"

    @property
    def group(self) -> str:
        """The object that the action is about: the part before the dot."""
        return self.value.partition(".")[0]

    @classmethod
    def groups(cls) -> list[str]:
        """Every group once, in the order of this list."""
        return list(dict.fromkeys(action.group for action in cls))
