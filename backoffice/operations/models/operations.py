"""An operation, the digest of its content, its approvals, release and attempts.

The digest is what approvals bind to: it covers the operation's id, kind, payload and environment. The rules that money
depends on are repeated here as constraints, and as triggers where a check constraint would see too few rows.
"""

import hashlib
import json
import secrets
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.urls import reverse
from django.utils.translation import gettext
from pydantic import ValidationError

from backoffice.accounts.models import User
from backoffice.audit.canonical import canonical_time
from backoffice.core.database.writes import NEVER_DELETED, appended
from backoffice.core.encryption import SealedRow
from backoffice.core.fields import ExactDecimalField, TolerantJSONField, normalized_text
from backoffice.core.web.formatting import in_words
from backoffice.core.web.request_context import set_operation
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.models import reason_codes
from backoffice.operations.models.reason_codes import Blocker, CheckResult
from backoffice.operations.states import (
    CLOSED,
    NOT_EXECUTED,
    PROVEN_NOT_EXECUTED,
    TO_SEND,
    Outcome,
    Status,
)
from backoffice.policies.delegations import Delegation
from backoffice.policies.document import Level, Levels, read_levels

if TYPE_CHECKING:
    from django.db.models.fields.related_descriptors import RelatedManager


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def content_digest(operation_id: UUID | None, kind: str, payload: dict[str, Any]) -> str:
    """SHA-256, in hexadecimal, over the canonical JSON of the content.

    Keys are sorted and amounts are text, so the digest does not depend on how the content was stored. It
    binds the operation's id and the environment: an approval is not valid for another operation or
    deployment. Without an id, it is equal for operations with the same content.
    """
    content = {
        "v": 1,
        "id": str(operation_id or ""),
        "environment": settings.ENVIRONMENT,
        "kind": kind,
        "payload": payload,
    }
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def verification_code(digest: str) -> str:
    """The first 60 bits of a digest, for two people to compare aloud: `K7F2-91XD-7Q2K`."""
    text = _base32(int(digest[:15], 16), 12)
    return "-".join(text[start : start + 4] for start in range(0, 12, 4))


def new_reference(letter: str) -> str:
    """A short name for an operation, such as `W-7Q2K9F`; a unique constraint rules out duplicates."""
    return f"{letter}-{_base32(secrets.randbits(30), 6)}"


def _base32(number: int, length: int) -> str:
    return "".join(_CROCKFORD[(number >> (5 * place)) & 31] for place in reversed(range(length)))


def content_key(kind: str, payload: dict[str, Any]) -> str:
    """Equal for equal content; only one operation with the same key may be pending, approved or sending."""
    return content_digest(None, kind, payload)


_FREES_REFERENCE = PROVEN_NOT_EXECUTED | {Outcome.REJECTED}


class OperationManager(models.Manager["Operation"]):
    """Use `get_locked` wherever an operation is changed."""

    def get_locked(self, pk: UUID) -> "Operation":
        """The operation, locked until the transaction ends. The compare-and-set of each change decides in the end."""
        operation = self.locked().select_related("preparer").get(pk=pk)
        set_operation(operation.reference)
        return operation

    def locked(self) -> models.QuerySet["Operation"]:
        """Locked as they are read, but not their keys: rows that refer to them can be inserted meanwhile. On SQLite
        the transaction has the only write lock from its BEGIN IMMEDIATE.
        """
        return self.select_for_update(of=("self",), no_key=True)

    def holding_reference(self, kind: str, reference: str) -> models.QuerySet["Operation"]:
        """The operations of a kind under this reference at the provider, ignoring case.

        One that was closed frees its reference only if no request was sent for it, or the provider rejected it. One
        that people resolved as not executed keeps it: something may still arrive under it.
        """
        sent = Attempt.objects.filter(operation=models.OuterRef("pk")).exclude(outcome__in=_FREES_REFERENCE)
        is_free = Q(~models.Exists(sent), status__in=NOT_EXECUTED)
        return self.filter(~is_free, kind=kind, payload__reference__iexact=reference)


class Operation(SealedRow):
    """One movement of money or one sensitive change, from its preparation to its proven outcome."""

    WRITES = NEVER_DELETED

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    reference = models.CharField(max_length=12, unique=True)
    kind = models.CharField(max_length=32)
    payload = TolerantJSONField()
    digest = models.CharField(max_length=64)
    sentence = models.CharField(max_length=300)
    currency = models.CharField(max_length=12, blank=True)
    amount = ExactDecimalField(null=True)
    recipient = models.CharField(max_length=200, blank=True)
    recipient_detail = models.CharField(max_length=200, blank=True)
    content_key = models.CharField(max_length=64, editable=False)
    # Both are null where nobody is paid.
    recipient_key = models.CharField(max_length=200, null=True, editable=False)  # noqa: DJ001 - null for none
    recipient_account = models.CharField(max_length=200, null=True, editable=False)  # noqa: DJ001 - null for none

    status = models.CharField(max_length=16, choices=Status, default=Status.PENDING)
    # See `reason_codes.ClosingReason`; empty if there is none.
    closing_reason = TolerantJSONField(default=dict)
    approvals_needed = models.PositiveSmallIntegerField()
    rule = TolerantJSONField()  # an ApprovalRule with its parameters
    # The version of the approval policy; null for the rules of SECOND_APPROVAL_ABOVE.
    policy_version = models.PositiveIntegerField(null=True, editable=False)
    levels = TolerantJSONField(null=True, editable=False)  # null if an earlier release prepared it

    preparer = models.ForeignKey(User, on_delete=models.PROTECT, related_name="operations_prepared")
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
            ("propose_change", "Can prepare changes of keys, accounts and addresses at the provider"),
            ("approve_operation", "Can approve or reject operations that others prepared"),
            ("approve_governance_change", "Can approve changes of people that others prepared"),
            ("release_operation", "Can send approved operations"),
            ("resolve_operation", "Can prepare resolutions of unknown outcomes"),
            ("pause_payments", "Can pause payments, and prepare to resume them"),
        ]
        ordering = ("-prepared_at", "-id")
        indexes = [
            models.Index(fields=["-prepared_at", "-id"], name="operation_newest"),
            models.Index(fields=["status", "-prepared_at", "-id"], name="operation_by_status"),
            models.Index(fields=["kind", "-prepared_at", "-id"], name="operation_by_kind"),
            models.Index(fields=["recipient_key", "amount", "prepared_at"], name="operation_by_recipient"),
            models.Index(fields=["recipient_account", "-prepared_at", "-id"], name="operation_by_account"),
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
                condition=Q(status__in=sorted(CLOSED), closed_at__isnull=False)
                | (~Q(status__in=sorted(CLOSED)) & Q(closed_at__isnull=True)),
                name="operation_closed_has_time",
            ),
            models.UniqueConstraint(
                fields=["content_key"],
                condition=Q(status__in=sorted(TO_SEND)),
                name="operation_content_pending_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reference} {self.sentence}"

    def get_absolute_url(self) -> str:
        return reverse("operations:detail", args=[self.pk])

    @property
    def verification_code(self) -> str:
        """The verification code: the short form of the digest, for two people to compare."""
        return verification_code(self.digest)

    @property
    def rule_sentence(self) -> str:
        """Who must approve it, in words."""
        return in_words(reason_codes.rule_sentence, self.rule)

    @property
    def required_levels(self) -> Levels:
        """The levels under which it was prepared: of everyone, if an earlier release prepared it.

        Raises ContentUnreadableError.
        """
        if self.levels is None:
            return (Level(needed=self.approvals_needed),)
        try:
            return read_levels(self.levels)
        except ValidationError as exc:
            raise ContentUnreadableError from exc

    @property
    def reason(self) -> str:
        """Why it was rejected or failed, in words; empty otherwise."""
        return in_words(reason_codes.closing_sentence, self.closing_reason)

    @property
    def is_closed(self) -> bool:
        return Status(self.status) in CLOSED

    def current_digest(self) -> str:
        """The digest of the content as it is stored now; differs from `digest` if the row was manipulated."""
        return content_digest(self.pk, self.kind, self.payload)

    def has_expired(self, moment: datetime) -> bool:
        """Whether the operation has expired at this moment."""
        return moment >= self.expires_at

    def sealed_content(self) -> dict[str, object]:
        """That its preparer prepared this content until when, how lists show it, and how many must approve it."""
        return {
            **self.decision("prepared", self.preparer_id, self.prepared_at, self.digest),
            "expires_at": canonical_time(self.expires_at),
            "reference": self.reference,
            "sentence": self.sentence,
            "currency": self.currency,
            "amount": None if self.amount is None else normalized_text(self.amount),
            "recipient": [self.recipient, self.recipient_detail],
        }

    @property
    def owner(self) -> str:
        return self.reference

    def decision(self, name: str, person_id: object, at: datetime, digest: str) -> dict[str, object]:
        """What every seal covers: the decision on this operation, its content, its policy, who and when."""
        return {
            "decision": name,
            "operation": str(self.pk),
            "kind": self.kind,
            "digest": digest,
            "person": str(person_id),
            "at": canonical_time(at),
            "approvals_needed": self.approvals_needed,
            "rule": self.rule,
            **({} if self.levels is None else {"policy_version": self.policy_version, "levels": self.levels}),
        }


class Approval(SealedRow):
    """One person's approval of exactly one content."""

    WRITES = appended("seal")

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="approvals")
    approver = models.ForeignKey(User, on_delete=models.PROTECT, related_name="approvals")
    preparer = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    comment = models.CharField(max_length=500, blank=True)
    approved_at = models.DateTimeField()
    # Whom a stand-in approved for, and the delegation; both null for an approval in the approver's own right.
    on_behalf_of = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="approvals_by_stand_ins", editable=False
    )
    delegation = models.ForeignKey(
        Delegation, on_delete=models.PROTECT, null=True, related_name="approvals", editable=False
    )

    class Meta:
        default_permissions = ()
        ordering = ("approved_at",)
        constraints = [
            models.UniqueConstraint(fields=["operation", "approver"], name="approval_once_per_person"),
            models.UniqueConstraint(
                fields=["operation", "on_behalf_of"],
                condition=Q(on_behalf_of__isnull=False),
                name="approval_once_for_a_person",
            ),
            models.CheckConstraint(
                condition=~Q(approver=F("preparer")), name="approval_never_by_the_preparer"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.approver} approved {self.operation_id}"

    def sealed_content(self) -> dict[str, object]:
        """That this person approved this content under this policy, and for whom if a stand-in did."""
        decision = self.operation.decision("approved", self.approver_id, self.approved_at, self.digest)
        if self.on_behalf_of_id is None and self.delegation_id is None:
            return decision
        return {**decision, "on_behalf_of": self.on_behalf_of_id, "delegation": self.delegation_id}

    @property
    def involved(self) -> frozenset[int]:
        """Who approved, and for whom if a stand-in did. None of them approves the operation again."""
        return frozenset(filter(None, (self.approver_id, self.on_behalf_of_id)))

    @property
    def approved_by(self) -> str:
        """`Ada Obi`, or `Ada Obi for Chidi Eze`. Needs `approver` and `on_behalf_of`."""
        if self.on_behalf_of is None:
            return str(self.approver)
        return gettext("{stand_in} for {person}").format(stand_in=self.approver, person=self.on_behalf_of)

    @property
    def owner(self) -> str:
        return self.operation.reference


class Release(SealedRow):
    """The order to send an operation, waiting for its turn, with the encrypted one-time code; deleted by the claim."""

    QUEUE_ORDER = ("released_at", "pk")  # the order in which the releases of one balance are sent

    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, primary_key=True, related_name="release"
    )
    released_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    released_at = models.DateTimeField(db_index=True)
    expires_at = models.DateTimeField()
    # The currency of the balance that will be debited; null if none is.
    balance = models.CharField(max_length=12, null=True, editable=False)  # noqa: DJ001 - as in the attempt
    # Ids of similar transactions at the provider that the releaser has seen and declared another payment.
    look_alikes = models.JSONField(default=list, editable=False)
    # Other names of the account's holder than the approved one that the releaser has confirmed; null if none.
    holder_names = models.JSONField(null=True, editable=False)
    # Which attempt it orders, so that a used release orders no second one. Null, for the first, before release 0.2.
    attempt_number = models.PositiveSmallIntegerField(null=True, editable=False)
    encrypted_otp = models.BinaryField(null=True)
    # Why sending it failed so far, and since when; null if nothing blocks it.
    blocker = models.CharField(max_length=32, choices=Blocker, null=True, editable=False)  # noqa: DJ001 - null for none
    blocker_parameters = models.JSONField(default=dict, editable=False)
    blocked_since = models.DateTimeField(null=True, editable=False)
    # Set after an internal error: until then other releases of the balance may be sent first. The order is
    # only for fairness; a unique index ensures that one at a time is sent.
    skipped_until = models.DateTimeField(null=True, editable=False)

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

    def sealed_content(self) -> dict[str, object]:
        """That this person ordered this attempt to send this content, from which balance, and until when."""
        operation = self.operation
        return {
            **operation.decision("released", self.released_by_id, self.released_at, operation.digest),
            "expires_at": canonical_time(self.expires_at),
            "look_alikes": self.look_alikes,
            **({"holder_names": self.holder_names} if self.holder_names else {}),
            **({"attempt": self.attempt_number} if (self.attempt_number or 1) > 1 else {}),
            "balance": self.balance,
        }

    @property
    def owner(self) -> str:
        return self.operation.reference

    @property
    def blocker_sentence(self) -> str:
        """The blocker in words; empty if nothing blocks it."""
        if not self.blocker:
            return ""
        return in_words(reason_codes.blocker_sentence, self.blocker, self.blocker_parameters)

    @property
    def bound_to(self) -> str:
        """The context of the encryption: the code is bound to this operation and content."""
        return f"release:{self.operation_id}:{self.operation.digest}"


# Maximum length of a provider's transaction id. The specification sets none; this is what an index can hold.
TRANSACTION_ID_LENGTH = 500
# Open attempts whose transaction at the provider is not known: a new one of their balance and amount could be theirs.
IS_UNMATCHED = Q(closed_at__isnull=True, provider_transaction_id__isnull=True)


class AttemptManager(models.Manager["Attempt"]):
    def unmatched(self, balance: "str | models.OuterRef") -> "models.QuerySet[Attempt]":
        """The attempts at this balance whose transaction at the provider is not known; at most one for each amount."""
        return self.filter(IS_UNMATCHED, balance=balance)

    def holding(self, balance: str, amount: Decimal | None) -> "models.QuerySet[Attempt]":
        """The attempts at this balance because of which nothing with this amount is sent now.

        That is the one whose request is under way, and those that hold the amount.
        """
        holds_amount = self.unmatched(balance) if amount is None else self.holding_amount(balance, amount)
        return self.unmatched(balance).filter(is_under_way=True) | holds_amount

    def holding_amount(
        self, balance: "str | models.OuterRef", amount: "Decimal | models.OuterRef"
    ) -> "models.QuerySet[Attempt]":
        """The attempts whose transaction is not known and could be mistaken for another one with this amount.

        A transaction is matched only if its amount is exactly the attempt's (`kinds.base.common_match_fields`), so
        another amount of the same balance cannot be mistaken for it. An attempt of unknown amount holds all of them;
        so does every attempt under `STRICT_BALANCE_ORDER`.
        """
        unmatched = self.unmatched(balance)
        if settings.STRICT_BALANCE_ORDER:
            return unmatched
        return unmatched.filter(Q(amount=amount) | Q(amount__isnull=True))

    def same(self, attempt: "Attempt") -> "models.QuerySet[Attempt]":
        """This attempt, and not another one that was given its id after a restore.

        The stored row may lack the beginning of the request that the caller knows of.
        """
        same = Q(begun_at__isnull=True, started_at=attempt.started_at)
        if attempt.begun_at:
            same |= Q(begun_at=attempt.begun_at)
        return self.filter(same, pk=attempt.pk, operation=attempt.operation_id)


class Attempt(models.Model):
    """One try to send, committed before the connection is made; its `begun_at` before the first byte is sent.

    Without `released_by`, no request was made: two people named the transaction that paid the operation.
    """

    WRITES = NEVER_DELETED

    operation = models.ForeignKey(Operation, on_delete=models.PROTECT, related_name="attempts")
    number = models.PositiveSmallIntegerField()
    released_by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    digest = models.CharField(max_length=64)
    started_at = models.DateTimeField()
    # Until when the request may begin. Null in attempts of earlier releases, which did not record `begun_at`.
    begin_by = models.DateTimeField(null=True)
    # When the request began: committed with the connection ready, right before the first byte.
    begun_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField()

    # The currency of the balance that is debited; null if none is, which the unique index permits many times.
    balance = models.CharField(max_length=12, null=True, editable=False)  # noqa: DJ001 - unique, so null
    # The amount by which its transaction is matched. Null if no balance is debited.
    amount = ExactDecimalField(null=True, editable=False)
    # From the claim until it is recorded what came of the request, or that nothing did.
    is_under_way = models.BooleanField(default=False, editable=False)
    # Text of any length: the specification sets no maximum for a transaction id.
    watermark_transaction_id = models.TextField(blank=True)
    watermark_balance = ExactDecimalField(null=True)
    watermark_provider_time = models.DateTimeField(null=True, db_index=True)
    # Ids of transactions listed within CLOCK_SKEW before sending that match the content of this operation.
    watermark_seen_ids = models.JSONField(null=True)

    # Why the bank's name of the account's holder could not be read before sending; usually null.
    name_not_checked = models.JSONField(null=True)

    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.OPEN)
    response_status = models.PositiveSmallIntegerField(null=True)
    responses = models.JSONField(default=list)  # see `reason_codes.Response`; the late ones after the first
    provider_transaction_id = models.CharField(max_length=TRANSACTION_ID_LENGTH, null=True, unique=True)  # noqa: DJ001 - many have none
    # When a response contained the transaction id; null if the transaction was matched in the list.
    id_received_at = models.DateTimeField(null=True)
    fee = ExactDecimalField(null=True)
    result = models.JSONField(null=True)
    checks = models.PositiveIntegerField(default=0)
    check_result = models.CharField(max_length=32, choices=CheckResult, blank=True)  # of the last check
    check_parameters = models.JSONField(default=dict)
    next_check_at = models.DateTimeField(null=True, db_index=True)
    closed_at = models.DateTimeField(null=True)
    resolution = models.ForeignKey(Operation, on_delete=models.PROTECT, null=True, related_name="+")

    objects = AttemptManager()

    # How long after our request the provider may still execute it.
    EXECUTION_WINDOW = timedelta(hours=1)
    # How far the provider's Date header may differ from the times in its list, either way.
    CLOCK_SKEW = timedelta(minutes=5)

    class Meta:
        default_permissions = ()
        ordering = ("number",)
        constraints = [
            models.UniqueConstraint(
                fields=["balance"],
                condition=Q(IS_UNMATCHED, is_under_way=True),
                name="attempt_one_under_way_per_balance",
            ),
            models.UniqueConstraint(
                fields=["balance", "amount"], condition=IS_UNMATCHED, name="attempt_one_unmatched_per_amount"
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
            models.CheckConstraint(
                condition=Q(released_by__isnull=False)
                | Q(
                    begun_at__isnull=True,
                    outcome=Outcome.SUCCEEDED,
                    provider_transaction_id__isnull=False,
                    resolution__isnull=False,
                ),
                name="attempt_released_or_resolved",
            ),
        ]

    def __str__(self) -> str:
        return f"Attempt {self.number} of {self.operation_id}"

    @property
    def response(self) -> str:
        """What came of the request, in words; empty while nothing is known."""
        return in_words(reason_codes.responses_sentence, self.responses)

    @property
    def last_check(self) -> str:
        """The result of the last check in words; empty before the first."""
        if not self.check_result:
            return ""
        return in_words(reason_codes.check_sentence, self.check_result, self.check_parameters)

    @property
    def execution_deadline(self) -> datetime:
        """Until when the provider may still execute it; if it is not listed by then, it was not executed."""
        return self.started_at + self.EXECUTION_WINDOW

    @property
    def search_from(self) -> datetime:
        """The earliest time in the provider's list of a transaction that can be this attempt's."""
        return (self.watermark_provider_time or self.started_at) - self.CLOCK_SKEW

    @property
    def received_id_search_from(self) -> datetime:
        """The earliest time in the provider's list of a transaction whose id was in a response or matched before."""
        return self.search_from - timedelta(days=1)

    @property
    def search_until(self) -> datetime:
        """The latest time in the provider's list of a transaction that can be this attempt's."""
        return self.search_from + 2 * self.CLOCK_SKEW + self.EXECUTION_WINDOW

    def holds(self, amount: Decimal | None) -> bool:
        """Whether its transaction could be mistaken for that of another operation of its balance with this amount
        (`AttemptManager.holding_amount`).
        """
        return settings.STRICT_BALANCE_ORDER or None in {self.amount, amount} or self.amount == amount

    def is_after_watermark(self, transaction_id: str) -> bool:
        """Whether the transaction was not recorded as listed just before sending."""
        return transaction_id not in {self.watermark_transaction_id, *(self.watermark_seen_ids or [])}
