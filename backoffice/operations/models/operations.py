"""An operation, the digest of its content, its approvals, its release, its attempts, and the secret one may have made.

The digest is what approvals bind to: it covers the operation's id, kind, payload and environment. The rules that
money depends on are repeated here as constraints. The table of states and "never the preparer" are triggers, because
a check constraint sees one row only.
"""

import hashlib
import json
import secrets
import uuid
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.urls import reverse

from backoffice.accounts.models import User
from backoffice.core.encryption import EncryptedRow
from backoffice.core.fields import ExactDecimalField
from backoffice.operations.models import reason_codes
from backoffice.operations.models.reason_codes import Blocker, CheckResult
from backoffice.operations.states import BEFORE_SENDING, CLOSED, Outcome, Status

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def digest_of(*, operation_id: UUID | None, kind: str, payload: dict[str, Any], environment: str) -> str:
    """SHA-256, in hexadecimal, over the canonical JSON of the content.

    Keys are sorted and amounts are text, so the digest is the same whatever stored the payload in between. It binds the
    operation's id and the environment: a signature given here is worth nothing for another operation or elsewhere.
    Without an id it tells whether two operations have the same content.
    """
    content = {
        "v": 1,
        "id": str(operation_id or ""),
        "environment": environment,
        "kind": kind,
        "payload": payload,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def verification_code(digest: str) -> str:
    """The first 40 bits of a digest as two people can compare them aloud: `K7F2-91XD`."""
    text = _base32(int(digest[:10], 16), 8)
    return f"{text[:4]}-{text[4:]}"


def new_reference(letter: str) -> str:
    """A short name for an operation, such as `W-7Q2K9F`; unique by the database's word."""
    return f"{letter}-{_base32(secrets.randbits(30), 6)}"


def _base32(number: int, length: int) -> str:
    return "".join(_CROCKFORD[(number >> (5 * place)) & 31] for place in reversed(range(length)))


def content_digest(operation_id: uuid.UUID, kind: str, payload: dict[str, Any]) -> str:
    """The digest of this content in this deployment's environment."""
    return digest_of(operation_id=operation_id, kind=kind, payload=payload, environment=settings.ENVIRONMENT)


def content_key(kind: str, payload: dict[str, Any]) -> str:
    """The same for the same content, whatever the operation: two of them cannot wait at once."""
    return digest_of(operation_id=None, kind=kind, payload=payload, environment=settings.ENVIRONMENT)


class OperationManager(models.Manager["Operation"]):
    """Finds operations; `get_locked` for everything that changes one."""

    def get_locked(self, pk: uuid.UUID) -> "Operation":
        """The operation, locked to the end of the transaction.

        SQLite has no row locks: there the transaction holds the only write lock from its BEGIN IMMEDIATE. The
        compare-and-set of every move decides in the end, on both engines.
        """
        return self.select_for_update(of=("self",)).select_related("maker").get(pk=pk)


class Operation(models.Model):
    """One movement of money or one sensitive change, from its preparation to its proven outcome."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=12, unique=True)
    kind = models.CharField(max_length=32)
    payload = models.JSONField()
    digest = models.CharField(max_length=64)
    sentence = models.CharField(max_length=300)
    currency = models.CharField(max_length=12, blank=True)
    amount = ExactDecimalField(null=True)
    counterparty = models.CharField(max_length=200, blank=True)
    counterparty_detail = models.CharField(max_length=200, blank=True)
    # Null in operations prepared before these were kept, and the last two where nobody is paid. A column that may be
    # null is added without rebuilding the table, which on SQLite would drop its triggers (migration 0003).
    content_key = models.CharField(max_length=64, null=True, editable=False)  # noqa: DJ001 - unique, so null
    beneficiary_key = models.CharField(max_length=200, null=True, editable=False)  # noqa: DJ001 - see above
    beneficiary_account = models.CharField(max_length=200, null=True, editable=False)  # noqa: DJ001 - see above

    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    reason = models.CharField(max_length=500, blank=True)
    approvals_needed = models.PositiveSmallIntegerField()
    rule = models.CharField(max_length=300)

    maker = models.ForeignKey(User, on_delete=models.PROTECT, related_name="operations_prepared")
    prepared_from = models.ForeignKey("self", on_delete=models.PROTECT, null=True, related_name="copies")
    prepared_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    closed_at = models.DateTimeField(null=True)

    objects = OperationManager()

    if TYPE_CHECKING:
        approvals: RelatedManager["Approval"]
        attempts: RelatedManager["Attempt"]

    class Meta:
        default_permissions = ("view",)
        permissions = [
            ("prepare_operation", "Can prepare operations that move money"),
            ("propose_change", "Can prepare changes of keys, accounts and addresses at the service"),
            ("approve_operation", "Can approve or reject operations that others prepared"),
            ("release_operation", "Can send approved operations"),
            ("resolve_operation", "Can propose what became of operations whose outcome is not known"),
            ("pause_sending", "Can stop all sending alone, and propose that it goes on"),
        ]
        ordering = ("-prepared_at", "-id")
        indexes = [
            models.Index(fields=["-prepared_at", "-id"], name="operation_newest"),
            models.Index(fields=["status", "-prepared_at", "-id"], name="operation_by_status"),
            models.Index(
                fields=["beneficiary_key", "amount", "prepared_at"], name="operation_by_beneficiary"
            ),
            models.Index(fields=["beneficiary_account", "-prepared_at", "-id"], name="operation_by_account"),
            models.Index(
                fields=["-prepared_at", "-id"], name="operation_open", condition=Q(closed_at__isnull=True)
            ),
            models.Index(
                fields=["closed_at", "status"], name="operation_ended", condition=Q(closed_at__isnull=False)
            ),
            models.Index(
                fields=["decided_at", "status", "prepared_at"],
                name="operation_decided",
                condition=Q(decided_at__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(approvals_needed__gte=1), name="operation_needs_a_second_person"
            ),
            models.CheckConstraint(condition=Q(status__in=Status.values), name="operation_status_known"),
            models.CheckConstraint(
                condition=Q(status__in=CLOSED, closed_at__isnull=False)
                | (~Q(status__in=CLOSED) & Q(closed_at__isnull=True)),
                name="operation_closed_has_time",
            ),
            models.UniqueConstraint(
                fields=["content_key"],
                condition=Q(status__in=BEFORE_SENDING),
                name="operation_content_waits_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reference} {self.sentence}"

    def get_absolute_url(self) -> str:
        return reverse("operations:detail", args=[self.pk])

    @property
    def code(self) -> str:
        """The short code of the digest, for two people to compare."""
        return verification_code(self.digest)

    @property
    def is_closed(self) -> bool:
        return Status(self.status) in CLOSED

    def current_digest(self) -> str:
        """The digest of the content as it is now; differs from `digest` if somebody touched the row."""
        return content_digest(self.pk, self.kind, self.payload)

    def is_past(self, moment: datetime) -> bool:
        """Whether the time to decide and send has run out."""
        return moment >= self.expires_at


class Approval(models.Model):
    """One person's countersignature under exactly one content."""

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="approvals")
    approver = models.ForeignKey(User, on_delete=models.PROTECT, related_name="approvals")
    maker = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    comment = models.CharField(max_length=500, blank=True)
    at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        ordering = ("at",)
        constraints = [
            models.UniqueConstraint(fields=["operation", "approver"], name="approval_once_per_person"),
            models.CheckConstraint(condition=~Q(approver=F("maker")), name="approval_never_by_the_maker"),
        ]

    def __str__(self) -> str:
        return f"{self.approver} countersigned {self.operation_id}"


class Release(models.Model):
    """The word to send, waiting for its turn and a worker: deleted in the very commit that claims the operation.

    Holds the service's one-time token, sealed to this operation and digest, for at most 90 seconds.
    """

    IN_TURN = ("released_at", "pk")  # releases of one balance leave in this order

    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, primary_key=True, related_name="release"
    )
    released_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    released_at = models.DateTimeField(db_index=True)
    expires_at = models.DateTimeField()
    # The currency of the balance that will be debited; null where none is.
    balance = models.CharField(max_length=12, null=True, editable=False)  # noqa: DJ001 - as in the attempt
    sealed_token = models.BinaryField(null=True)
    # Why it has not left though it was tried, and since when; null where nothing is in the way.
    blocker = models.CharField(max_length=32, choices=Blocker, null=True, editable=False)  # noqa: DJ001 - null for none
    blocker_parameters = models.JSONField(default=dict, editable=False)
    blocked_since = models.DateTimeField(null=True, editable=False)
    # Failed for a reason of our own: until then others of its balance need not wait for it. The order is fairness; that
    # one at a time leaves is held by a unique index.
    out_of_turn_until = models.DateTimeField(null=True, editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                condition=Q(blocker__isnull=True, blocked_since__isnull=True)
                | Q(blocker__isnull=False, blocker__in=Blocker.values, blocked_since__isnull=False),
                name="release_blocked_has_time",
            ),
        ]

    def __str__(self) -> str:
        return f"Release of {self.operation_id}"

    @property
    def blocker_sentence(self) -> str:
        """Why it has not left, in words; empty if nothing is in the way."""
        return reason_codes.blocker_sentence(self.blocker, self.blocker_parameters) if self.blocker else ""

    @property
    def bound_to(self) -> str:
        """What the sealed token is bound to: it opens for this operation with this content only."""
        return f"release:{self.operation_id}:{self.operation.digest}"


# Of a transaction's id at the service, which does not say how long one gets: an index bears no more.
TRANSACTION_ID_LENGTH = 500
# Open, and no transaction of the service known to be its own: any new one of the balance could be.
UNMATCHED = Q(closed_at__isnull=True, service_transaction_id__isnull=True)


class AttemptManager(models.Manager["Attempt"]):
    """Finds attempts to send."""

    def in_doubt(self, balance: str) -> "models.QuerySet[Attempt]":
        """The attempt at this balance of which nobody knows yet which transaction of the service it is; one, at most.

        While there is one, nothing else leaves this balance, so that a new transaction can only be its own.
        """
        return self.filter(UNMATCHED, balance=balance)


class Attempt(models.Model):
    """One try to send, written and committed before the first byte leaves."""

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    released_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    started_at = models.DateTimeField()
    deadline_at = models.DateTimeField()

    # The currency of the balance that is debited; null where none is, so that the unique index lets those pass.
    balance = models.CharField(max_length=12, null=True, editable=False)  # noqa: DJ001 - unique, so null
    watermark_transaction_id = models.TextField(
        blank=True
    )  # of any length: the service does not say how long
    watermark_balance = ExactDecimalField(null=True)
    watermark_service_time = models.DateTimeField(null=True)
    # Ids of what the service showed just before, of SKEW and newer, and what this could have been taken for.
    watermark_shown = models.JSONField(null=True)

    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.OPEN)
    answer_status = models.PositiveSmallIntegerField(null=True)
    answer = models.CharField(max_length=500, blank=True)
    service_transaction_id = models.CharField(max_length=TRANSACTION_ID_LENGTH, null=True, unique=True)  # noqa: DJ001 - many have none
    # When the service named it in an answer; null where it was taken for ours by what the list shows.
    named_at = models.DateTimeField(null=True)
    fee = ExactDecimalField(null=True)
    result = models.JSONField(null=True)
    checks = models.PositiveIntegerField(default=0)
    check_result = models.CharField(max_length=32, choices=CheckResult, blank=True)  # of the last check
    check_parameters = models.JSONField(default=dict)
    next_check_at = models.DateTimeField(null=True, db_index=True)
    closed_at = models.DateTimeField(null=True)
    watch_next_at = models.DateTimeField(
        null=True, db_index=True
    )  # the next look for news that contradict the end
    resolution = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, related_name="+")

    objects = AttemptManager()

    MAY_TAKE = timedelta(hours=1)  # so long after our request the service may still execute it
    SKEW = timedelta(minutes=5)  # so far its Date header may be off the times in its list, either way

    class Meta:
        default_permissions = ()
        ordering = ("number",)
        constraints = [
            models.UniqueConstraint(
                fields=["balance"], condition=UNMATCHED, name="attempt_one_in_doubt_per_balance"
            ),
            models.UniqueConstraint(fields=["operation", "number"], name="attempt_number_once"),
            models.UniqueConstraint(
                fields=["operation"],
                condition=Q(closed_at__isnull=True),
                name="attempt_one_open_per_operation",
            ),
            models.CheckConstraint(
                condition=(Q(outcome=Outcome.OPEN, closed_at__isnull=True))
                | (~Q(outcome=Outcome.OPEN) & Q(closed_at__isnull=False)),
                name="attempt_closed_has_outcome",
            ),
        ]

    def __str__(self) -> str:
        return f"Attempt {self.number} of {self.operation_id}"

    @property
    def last_check(self) -> str:
        """What the last check showed, in words; empty before the first."""
        return (
            reason_codes.check_sentence(self.check_result, self.check_parameters) if self.check_result else ""
        )

    @property
    def may_come_until(self) -> datetime:
        """Until when the service may still execute it; what it does not show then did not happen."""
        return self.started_at + self.MAY_TAKE

    @property
    def sought_from(self) -> datetime:
        """The time in the service's list from which on a transaction can be this attempt."""
        return (self.watermark_service_time or self.started_at) - self.SKEW

    @property
    def sought_until(self) -> datetime:
        """The time in the service's list up to which a transaction can be this attempt."""
        return self.sought_from + 2 * self.SKEW + self.MAY_TAKE

    def is_new_since(self, transaction_id: str) -> bool:
        """Whether the service did not show this transaction just before, as far as it matters to this attempt."""
        return transaction_id not in {self.watermark_transaction_id, *(self.watermark_shown or [])}


class Secret(EncryptedRow):
    """What the service made and shows nobody twice, such as a new API key: sealed, for the person who had it sent.

    Written in the commit that records the answer; deleted when it has been shown or taken into use.
    """

    SEALED = "sealed"

    operation = models.OneToOneField(
        "operations.Operation", on_delete=models.PROTECT, primary_key=True, related_name="secret"
    )
    belongs_to = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    kept_at = models.DateTimeField()
    sealed = models.BinaryField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"Secret of {self.operation_id}"

    @property
    def bound_to(self) -> str:
        """What it is sealed to: it opens as the secret of this operation only."""
        return f"secret:{self.operation_id}"

    @property
    def owner(self) -> str:
        """Who had it sent, and by which operation."""
        return f"{self.belongs_to.email} ({self.operation.reference})"
