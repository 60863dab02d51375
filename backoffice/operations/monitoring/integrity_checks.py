"""The integrity checks, one function per rule; each returns the references of the operations, or a sentence about
what else breaks it. Read-only.

Rules that one query can check cover all operations; the others cover those of the `InspectionScope`.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, TypeAlias
from uuid import UUID

from django.db import DatabaseError, DataError, OperationalError, connection
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from backoffice.audit.actions import Action
from backoffice.audit.checkpoints import contradictions
from backoffice.audit.models import Entry, LastVerification
from backoffice.audit.verification import ChainVerification, fault_sentence
from backoffice.core.database.queries import batched
from backoffice.core.isolation import ignore, run_each_isolated
from backoffice.core.models import GatewayKey
from backoffice.operations import seals
from backoffice.operations.delivery.expected_wait import LONGEST_RELEASE
from backoffice.operations.delivery.otp import longest_lifetime
from backoffice.operations.delivery.record import is_silent
from backoffice.operations.kinds.approval_policy import ApprovalPolicyKind
from backoffice.operations.kinds.recipient import RecipientKind
from backoffice.operations.kinds.recipient_import import RecipientImportKind
from backoffice.operations.kinds.registry import local_kinds, money_kinds
from backoffice.operations.models.batches import ImportedRow
from backoffice.operations.models.operations import IS_UNMATCHED, Approval, Attempt, Operation, Release
from backoffice.operations.models.secret import Secret
from backoffice.operations.monitoring.database_rules import altered_rules
from backoffice.operations.monitoring.recorded_rights import (
    altered_accounts,
    altered_delegations,
    unrecorded_rights,
)
from backoffice.operations.states import AWAITING_PROVIDER, EDGES, PROVEN_NOT_EXECUTED, Outcome, Status
from backoffice.policies.models import PolicyVersion
from backoffice.recipients.models import RecipientState, RecipientVersion

logger = logging.getLogger(__name__)
CHUNK = 500
SWEEPER_TOLERANCE = timedelta(minutes=2)  # how late the sweeper may be with its work
LATEST_CHECK = timedelta(minutes=15)

_HAS_LATER_ATTEMPT = Exists(
    Attempt.objects.filter(operation=OuterRef("operation"), number__gt=OuterRef("number"))
)
_MONEY_KINDS = money_kinds()
_LOCAL_KINDS = local_kinds()


@dataclass(frozen=True)
class InspectionScope:
    """The operations one inspection checks individually, its time, and the verification of the audit log."""

    now: datetime
    operations: Sequence[UUID]
    log: ChainVerification

    def chunks(self) -> Iterator[Sequence[UUID]]:
        """The operations, in chunks of a size that a database accepts in one query."""
        return batched(self.operations, CHUNK)


RecordComparison: TypeAlias = Callable[[Sequence[UUID]], list[str]]
"""Compares operations with what else is recorded about them; returns the references of those that differ."""


@dataclass(frozen=True)
class IntegrityCheck:
    """A rule as a sentence, and the function that finds what breaks it."""

    name: str  # also the label in the metrics
    sentence: Promise
    broken_by: Callable[[InspectionScope], list[str]]
    names_operations: bool = True  # or a sentence about what else breaks the rule


def _compared(differing: RecordComparison, scope: InspectionScope) -> list[str]:
    """The references of the operations that differ, and of those whose rows or entries cannot be read.

    If one of a chunk cannot be read, each of the chunk is compared alone, so that it hides no other.
    """
    found: list[str] = []
    for chunk in scope.chunks():
        try:
            found += differing(chunk)
        except (*seals.UNREADABLE, DataError, OperationalError) as exc:
            if _concerns_no_row(exc):
                raise
            logger.warning("A row cannot be read (%s), so each is compared alone", type(exc).__name__)
            found += _compared_alone(differing, chunk)
    return found


def _concerns_no_row(exc: Exception) -> bool:
    """Whether comparing each operation alone would not help: nothing more can be read in this transaction, or the
    error has another cause than a row. SQLite raises an OperationalError for invalid JSON.
    """
    if not isinstance(exc, DatabaseError):
        return False
    return connection.in_atomic_block or (isinstance(exc, OperationalError) and connection.vendor != "sqlite")


def _compared_alone(differing: RecordComparison, operations: Sequence[UUID]) -> list[str]:
    """One that cannot be read counts as differing, also while it is skipped because of that."""
    stored = Operation.objects.filter(pk__in=operations).order_by("reference")
    references = dict(stored.values_list("pk", "reference"))
    rows = {
        (differing, pk): f"The comparison of {reference} with its record"
        for pk, reference in references.items()
    }
    equal = {pk for pk, differs in run_each_isolated(_differs, rows, failed=ignore) if not differs}
    return [reference for pk, reference in references.items() if pk not in equal]


def _differs(row: tuple[RecordComparison, UUID]) -> tuple[UUID, bool]:
    differing, pk = row
    return pk, bool(differing([pk]))


def sent_again(_scope: InspectionScope) -> list[str]:
    """A further attempt was opened although an earlier one is not proven not executed."""
    again = Attempt.objects.filter(number__gt=1).values("operation")
    earlier = Attempt.objects.exclude(outcome__in=PROVEN_NOT_EXECUTED).filter(
        _HAS_LATER_ATTEMPT, operation__in=again
    )
    return _references(earlier.values("operation"))


def insufficient_approvals(_scope: InspectionScope) -> list[str]:
    """Approved or sent without enough approvals of this content by people other than the preparer."""
    valid = (
        Approval.objects.filter(
            operation=OuterRef("pk"), digest=OuterRef("digest"), preparer=OuterRef("preparer")
        )
        .exclude(approver=OuterRef("preparer"))
        .order_by()
        .values("operation")
        .annotate(people=Count("approver", distinct=True))
        .values("people")
    )
    needs_people = ~Q(status__in=[Status.PENDING, Status.REJECTED, Status.EXPIRED, Status.CANCELLED])
    was_sent = Exists(Attempt.objects.filter(operation=OuterRef("pk")))
    counted = Operation.objects.filter(needs_people | Q(was_sent)).annotate(
        people=Coalesce(Subquery(valid), 0)
    )
    return _references(counted.filter(people__lt=F("approvals_needed")).values("pk"))


def content_changed(scope: InspectionScope) -> list[str]:
    """The stored content, or the content that was sent, is not what was approved."""
    sent_otherwise = Attempt.objects.exclude(digest=F("operation__digest")).values("operation")
    return _references(sent_otherwise) + _compared(_with_other_content, scope)


def _with_other_content(operations: Sequence[UUID]) -> list[str]:
    stored = Operation.objects.filter(pk__in=operations).only("reference", "kind", "payload", "digest")
    return [each.reference for each in stored if each.digest != each.current_digest()]


def altered_record(scope: InspectionScope) -> list[str]:
    """A row of an open operation has no valid seal, or the log has other content or people."""
    return _compared(_altered, scope)


def _altered(operations: Sequence[UUID]) -> list[str]:
    return [operation.reference for operation in seals.altered_operations(operations)]


def altered_policy(_scope: InspectionScope) -> list[str]:
    """A version of the policies has no valid seal or no approved operation, is not the one that the audit log has, or
    one that was approved is gone.

    Read again if something is found: a version may have been put into effect between the queries.
    """
    return _altered_policies() and _altered_policies()


def _altered_policies() -> list[str]:
    versions = {version.number: version for version in PolicyVersion.objects.order_by("number")}
    agreed = Operation.objects.filter(kind=ApprovalPolicyKind.name, status=Status.SUCCEEDED)
    operations = set(agreed.values_list("pk", flat=True))
    altered = [
        str(version)
        for version in versions.values()
        if version.is_altered or version.operation not in operations
    ]
    missing = agreed.exclude(pk__in=[version.operation for version in versions.values()])
    altered += missing.order_by("reference").values_list("reference", flat=True)
    return list(dict.fromkeys([*_versions_unlike_the_log(versions), *altered]))


def _versions_unlike_the_log(versions: Mapping[int, PolicyVersion]) -> list[str]:
    """The versions that the audit log has and the table has not, or otherwise, and the other way round."""
    entries = Entry.objects.filter(action=Action.POLICY_IN_EFFECT).order_by("position")
    recorded = list(entries.values_list("target_label", "detail"))
    unlike = [
        label
        for number, (label, detail) in enumerate(recorded, start=1)
        if number not in versions or not versions[number].is_in(detail)
    ]
    return unlike + [str(version) for number, version in versions.items() if number > len(recorded)]


def unrecorded_right(_scope: InspectionScope) -> list[str]:
    """A person has other roles or groups than the audit log records, or a role other permissions."""
    return unrecorded_rights()


def altered_account(_scope: InspectionScope) -> list[str]:
    """A password, authenticator or one-time link was written into the database, and is not accepted."""
    return altered_accounts()


def altered_delegation(_scope: InspectionScope) -> list[str]:
    """A delegation is not as two people agreed on it, ended otherwise than the log records, or is gone."""
    return altered_delegations()


def altered_recipient(scope: InspectionScope) -> list[str]:
    """A version of a recipient has no valid seal or no approved operation, or one that was approved is gone.

    The seals of those whom the inspected operations pay; the operations of all.
    """
    kinds = (RecipientKind.name, RecipientImportKind.name)
    agreed = Operation.objects.filter(kind__in=kinds, status=Status.SUCCEEDED)
    versions = RecipientVersion.objects.exclude(state=RecipientState.SUGGESTED)
    invented = versions.exclude(operation__in=agreed.values("pk"))
    missing = agreed.exclude(pk__in=versions.values("operation"))
    found = [version.owner for version in invented.order_by("pk")]
    found += missing.order_by("reference").values_list("reference", flat=True)
    found += _incomplete_imports(agreed)
    for chunk in scope.chunks():
        paid = Operation.objects.filter(pk__in=chunk, recipient_key__isnull=False).order_by()
        of_paid = versions.filter(key__in=paid.values("recipient_key"))
        found += [version.owner for version in of_paid.order_by("pk") if version.is_altered]
    return list(dict.fromkeys(found))


def _incomplete_imports(agreed: QuerySet[Operation]) -> list[str]:
    """Imports of which not every row has its version."""
    counts = RecipientVersion.objects.filter(operation=OuterRef("pk")).order_by().values("operation")
    added = Coalesce(Subquery(counts.annotate(n=Count("pk")).values("n")), 0)
    rows = ImportedRow.objects.filter(operation=OuterRef("pk")).order_by().values("operation")
    imported = agreed.filter(kind=RecipientImportKind.name).annotate(
        added=added, imported=Coalesce(Subquery(rows.annotate(n=Count("pk")).values("n")), 0)
    )
    lacking = imported.exclude(added=F("imported"))
    return list(lacking.order_by("reference").values_list("reference", flat=True))


# The status after each action of the log: a fixed one, or the one recorded in the entry (`_IN_ENTRY`).
_IN_ENTRY = "recorded"
_STATUS_AFTER = {
    Action.OPERATION_PREPARED: Status.PENDING,
    Action.OPERATION_APPROVED: _IN_ENTRY,
    Action.OPERATION_REJECTED: Status.REJECTED,
    Action.OPERATION_CANCELLED: Status.CANCELLED,
    Action.OPERATION_EXPIRED: Status.EXPIRED,
    Action.OPERATION_CLAIMED: Status.SENDING,
    Action.OPERATION_RETURNED: _IN_ENTRY,
    Action.OPERATION_ACCEPTED: _IN_ENTRY,
    Action.OPERATION_OUTCOME_UNKNOWN: _IN_ENTRY,
    Action.OPERATION_CONTRADICTED: _IN_ENTRY,
    Action.OPERATION_ESCALATED: _IN_ENTRY,
    Action.OPERATION_SUCCEEDED: _IN_ENTRY,
    Action.OPERATION_FAILED: _IN_ENTRY,
    Action.OPERATION_RESOLVED: _IN_ENTRY,
    Action.OPERATION_APPLIED: Status.SUCCEEDED,
}


def unrecorded_transition(scope: InspectionScope) -> list[str]:
    """The log's entries do not lead to the status, or do not match the number of attempts."""
    return _compared(_with_other_transitions, scope)


def _with_other_transitions(operations: Sequence[UUID]) -> list[str]:
    sent = Counter(Attempt.objects.filter(operation__in=operations).values_list("operation", flat=True))
    stored = Operation.objects.filter(pk__in=operations)
    transitions = _recorded_transitions(operations)
    broken = []
    for pk, reference, status in stored.values_list("pk", "reference", "status"):
        path = transitions[str(pk)]
        if _final_status(path) != status or _recorded_attempts(path) != sent[pk]:
            broken.append(reference)
    return broken


def _recorded_attempts(path: Sequence[tuple[str, str]]) -> int:
    """How many attempts the entries record: each claim, and a payment that a resolution named while it was approved."""
    claims = sum(action == Action.OPERATION_CLAIMED for action, _ in path)
    named = sum(
        action == Action.OPERATION_RESOLVED and before == Status.APPROVED
        for (_, before), (action, _) in pairwise(path)
    )
    return claims + named


def _recorded_transitions(chunk: Sequence[UUID]) -> dict[str, list[tuple[str, str]]]:
    """Action and resulting status of each entry with a status, in order, by operation id; empty if it is no text."""
    entries = Entry.objects.filter(
        target_type=Operation._meta.label_lower,
        target_id__in=[str(pk) for pk in chunk],
        action__in=_STATUS_AFTER,
    )
    transitions: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pk, action, status in entries.order_by("position").values_list(
        "target_id", "action", "detail__status"
    ):
        after = _STATUS_AFTER[Action(action)]
        recorded = status if isinstance(status, str) else ""
        transitions[pk].append((action, recorded if after == _IN_ENTRY else after))
    return transitions


def _final_status(path: Sequence[tuple[str, str]]) -> str | None:
    """The status the entries lead to; None if they leave the table of states or lack the preparation."""
    if not path or path[0][0] != Action.OPERATION_PREPARED:
        return None
    status = Status.PENDING
    for action, recorded in path[1:]:
        stays = recorded == status and _STATUS_AFTER[Action(action)] == _IN_ENTRY
        if not stays and recorded not in EDGES[status]:
            return None
        status = Status(recorded)
    return status


def shared_transaction(_scope: InspectionScope) -> list[str]:
    """Two attempts claim the same transaction of the provider."""
    claimed = Attempt.objects.exclude(provider_transaction_id=None).order_by()
    twice = claimed.values("provider_transaction_id").annotate(times=Count("pk")).filter(times__gt=1)
    shared = Attempt.objects.filter(provider_transaction_id__in=twice.values("provider_transaction_id"))
    return _references(shared.values("operation"))


# The statuses allowed for each outcome of the last attempt, and for none. Proof of no execution lets an
# operation be sent again, cancelled or expire; after an unknown outcome, the same proof closes it as failed.
_NOT_EXECUTED_STATUSES = frozenset({Status.APPROVED, Status.EXPIRED, Status.CANCELLED, Status.FAILED})
_STATUSES = {
    Outcome.OPEN: {Status.SENDING, Status.PROCESSING, Status.UNKNOWN, Status.REVIEW},
    Outcome.NOT_SENT: _NOT_EXECUTED_STATUSES,
    Outcome.OTP_REJECTED: _NOT_EXECUTED_STATUSES,
    Outcome.REJECTED: {Status.FAILED},
    Outcome.SUCCEEDED: {Status.SUCCEEDED},
    Outcome.FAILED: {Status.FAILED},
}
_NEVER_SENT = {Status.PENDING, Status.APPROVED, Status.REJECTED, Status.EXPIRED, Status.CANCELLED}


def inconsistent_status(_scope: InspectionScope) -> list[str]:
    """The status does not follow from the last attempt, or money moved and no transaction is named."""
    fitting = Q(pk__in=[])
    for outcome, statuses in _STATUSES.items():
        fitting |= Q(outcome=outcome, operation__status__in=statuses)
    nameless = Q(outcome=Outcome.SUCCEEDED, operation__kind__in=_MONEY_KINDS, provider_transaction_id=None)
    ended = Attempt.objects.filter(~fitting | nameless).exclude(_HAS_LATER_ATTEMPT)
    applied = Q(status=Status.SUCCEEDED, kind__in=_LOCAL_KINDS)
    unsent = Operation.objects.exclude(Q(status__in=_NEVER_SENT) | applied).filter(attempts=None)
    return _references(ended.values("operation")) + _references(unsent.values("pk"))


def broken_audit_log(scope: InspectionScope) -> list[str]:
    """The audit log fails its verification, now or when the whole of it was last verified."""
    faults = [str(scope.log.fault)] if scope.log.fault else []
    return faults + [
        fault_sentence(last.fault) for last in LastVerification.objects.all() if last.fault and not faults
    ]


def checkpoint_contradicted(_scope: InspectionScope) -> list[str]:
    """The audit log contradicts a checkpoint that is stored outside the database."""
    return contradictions()


def database_rule_altered(_scope: InspectionScope) -> list[str]:
    """A trigger or constraint of the migrations is missing or changed, or a trigger was added."""
    return altered_rules()


def stale_release(scope: InspectionScope) -> list[str]:
    """A release is kept past its expiry, lasts longer than allowed, or waits where nothing can be sent."""
    return [
        release.operation.reference
        for release in Release.objects.select_related("operation")
        if release.expires_at < scope.now - SWEEPER_TOLERANCE
        or release.expires_at - release.released_at > _lifetime(release)
        or release.operation.status != Status.APPROVED
    ]


def _lifetime(release: Release) -> timedelta:
    if release.encrypted_otp is not None:
        return longest_lifetime()
    return LONGEST_RELEASE


def unneeded_secret(_scope: InspectionScope) -> list[str]:
    """A secret is still stored although it was shown or taken into use."""
    shown = Entry.objects.filter(action=Action.SECRET_REVEALED).order_by()
    stored = {str(pk): at for pk, at in Secret.objects.values_list("pk", "encrypted_at")}
    shown_since = {
        pk for pk, at in shown.filter(target_id__in=stored).values_list("target_id", "at") if at >= stored[pk]
    }
    in_use = GatewayKey.objects.filter(made_by__in=stored).values_list("made_by", flat=True)
    return _references(Operation.objects.filter(pk__in=[*shown_since, *in_use]).values("pk"))


def unchecked_outcome(scope: InspectionScope) -> list[str]:
    """The outcome is open and no check is scheduled, or the check is long overdue."""
    open_attempts = Attempt.objects.filter(closed_at__isnull=True)
    never = Q(operation__status__in=AWAITING_PROVIDER, next_check_at__isnull=True)
    overdue = Q(operation__status__in=AWAITING_PROVIDER, next_check_at__lt=scope.now - LATEST_CHECK)
    silent = Q(is_silent(scope.now - SWEEPER_TOLERANCE), operation__status=Status.SENDING)
    return _references(open_attempts.filter(never | overdue | silent).values("operation"))


def two_unknown_at_balance(_scope: InspectionScope) -> list[str]:
    """Two attempts at one balance have no transaction and equal amounts, so that theirs cannot be distinguished."""
    unmatched = Attempt.objects.filter(IS_UNMATCHED).exclude(balance=None).order_by()
    twice = unmatched.values("balance", "amount").annotate(times=Count("pk")).filter(times__gt=1)
    found = [
        pk
        for balance, amount in twice.values_list("balance", "amount")
        for pk in unmatched.filter(balance=balance, amount=amount).values_list("operation", flat=True)
    ]
    return _references(Operation.objects.filter(pk__in=found).values("pk"))


def two_under_way_at_balance(_scope: InspectionScope) -> list[str]:
    """Two requests are under way at one balance."""
    under_way = Attempt.objects.filter(IS_UNMATCHED, is_under_way=True).exclude(balance=None).order_by()
    twice = under_way.values("balance").annotate(times=Count("pk")).filter(times__gt=1)
    return _references(under_way.filter(balance__in=twice.values("balance")).values("operation"))


INTEGRITY_CHECKS = (
    IntegrityCheck(
        "sent_again",
        _("No operation is sent again unless the earlier attempt is proven not executed."),
        sent_again,
    ),
    IntegrityCheck(
        "insufficient_approvals",
        _("Everything approved or sent has enough approvals, none of them by the preparer."),
        insufficient_approvals,
    ),
    IntegrityCheck(
        "content_changed",
        _("The stored content and the sent content are what was approved."),
        content_changed,
    ),
    IntegrityCheck(
        "altered_record",
        _("No open operation, approval or release was altered or inserted outside Countersign."),
        altered_record,
    ),
    IntegrityCheck(
        "altered_policy",
        _(
            "Every version of the approval policies was approved by two people, and none was altered or deleted."
        ),
        altered_policy,
        names_operations=False,
    ),
    IntegrityCheck(
        "altered_recipient",
        _("Every version of a recipient was approved by two people, and none was altered or deleted."),
        altered_recipient,
        names_operations=False,
    ),
    IntegrityCheck(
        "altered_delegation",
        _("Every delegation was approved by two people, and none was altered or deleted."),
        altered_delegation,
        names_operations=False,
    ),
    IntegrityCheck(
        "unrecorded_right",
        _(
            "Every person has the roles and groups that the audit log records, and every role its permissions."
        ),
        unrecorded_right,
        names_operations=False,
    ),
    IntegrityCheck(
        "altered_account",
        _("Every password, authenticator and one-time link was set through Countersign."),
        altered_account,
        names_operations=False,
    ),
    IntegrityCheck(
        "unrecorded_transition",
        _("The audit log records every change of status, and every change is allowed."),
        unrecorded_transition,
    ),
    IntegrityCheck(
        "shared_transaction",
        _("Each transaction of the provider belongs to one attempt only."),
        shared_transaction,
    ),
    IntegrityCheck(
        "inconsistent_status", _("Every status follows from the last attempt."), inconsistent_status
    ),
    IntegrityCheck(
        "broken_audit_log",
        _("The audit log is complete and unchanged."),
        broken_audit_log,
        names_operations=False,
    ),
    IntegrityCheck(
        "checkpoint_contradicted",
        _("The audit log agrees with every checkpoint outside the database."),
        checkpoint_contradicted,
        names_operations=False,
    ),
    IntegrityCheck(
        "database_rule_altered",
        _("The triggers and constraints of the database are exactly those that the migrations create."),
        database_rule_altered,
        names_operations=False,
    ),
    IntegrityCheck("stale_release", _("No release or one-time code is kept past its expiry."), stale_release),
    IntegrityCheck("unneeded_secret", _("No secret is kept longer than needed."), unneeded_secret),
    IntegrityCheck(
        "unchecked_outcome",
        _("Every outcome that is not known yet is checked on schedule."),
        unchecked_outcome,
    ),
    IntegrityCheck(
        "two_unknown_at_balance",
        _("At most one attempt per balance and amount has no known transaction yet."),
        two_unknown_at_balance,
    ),
    IntegrityCheck(
        "two_under_way_at_balance",
        _("Each balance has at most one request in progress."),
        two_under_way_at_balance,
    ),
)


def _references(pks: QuerySet[Any, Any]) -> list[str]:
    """The references of these operations, in order."""
    return list(
        Operation.objects.filter(pk__in=pks).order_by("reference").values_list("reference", flat=True)
    )
