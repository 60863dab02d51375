"""A version of the policies over past operations: which would have been refused, or needed more, fewer or different
approvals.

Each operation is described as it was when it was prepared, so what was known then decides, not what is known now. Only
the roles and groups of its preparer are those of now. Whether its recipient had to be approved is replayed; cooling is
not.
"""

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from backoffice.operations.descriptions import (
    History,
    RowFacts,
    StoredSubject,
    describe_batch,
    describe_with,
)
from backoffice.operations.kinds.base import Debit
from backoffice.operations.kinds.batch import BatchKind, BatchPayload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.operations import Operation
from backoffice.policies.document import LAST_RULE, Level, Levels, PolicyDocument, approvals_in, read_levels
from backoffice.policies.evaluator import Evaluator, requires_less, strictest
from backoffice.policies.sentences import approved_only_text, kind_name, last_rule_sentence, rule_sentences

REPLAYED_DAYS = 90
MOST_OPERATIONS = 50_000


class Change(TextChoices):
    """What the version would have changed for an operation."""

    REFUSED = "refused", _("Refused")
    MORE = "more", _("More approvals")
    FEWER = "fewer", _("Fewer or different approvals")
    SAME = "same", _("Unchanged")


@dataclass(frozen=True)
class ReplayedOperation:
    """One operation, how many approvals it needed, and what the version would have done by which rule."""

    operation_id: UUID
    reference: str
    kind: str
    currency: str
    amount: Decimal | None
    prepared_at: datetime
    needed: int
    would_need: int
    rule: int  # 0 if its recipient was not approved, and had to be
    change: Change

    @property
    def kind_name(self) -> str:
        return kind_name(self.kind)


@dataclass(frozen=True)
class Replay:
    """All operations of the period, the newest first."""

    since: datetime
    operations: Sequence[ReplayedOperation]
    is_cut: bool = False  # older ones of the period are left out

    @property
    def changed(self) -> list[ReplayedOperation]:
        return [one for one in self.operations if one.change != Change.SAME]

    @property
    def summary(self) -> list[tuple[str, str, dict[str, int]]]:
        """Each kind and currency of the operations, and how many of these have which change."""
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for one in self.operations:
            counts[one.kind, one.currency][one.change] += 1
        return [
            (kind_name(kind), currency, {change.value: counted[change] for change in Change})
            for (kind, currency), counted in sorted(counts.items())
        ]

    @property
    def totals(self) -> dict[str, int]:
        counted = Counter(one.change for one in self.operations)
        return {change.value: counted[change] for change in Change}


_COLUMNS = ("id", "reference", "kind", "payload", "currency", "amount", "recipient_key")
_FURTHER = ("preparer_id", "prepared_at", "approvals_needed", "levels")


def replay(document: PolicyDocument, now: datetime) -> Replay:
    """The document over the operations of the last `REPLAYED_DAYS`. Rows of batches are decided with their batch."""
    since = now - timedelta(days=REPLAYED_DAYS)
    found = Operation.objects.filter(prepared_at__gt=since, batch_row__isnull=True).order_by(
        "-prepared_at", "-id"
    )
    read = list(found.values_list(*_COLUMNS, *_FURTHER)[: MOST_OPERATIONS + 1])
    rows = [row for row in read[:MOST_OPERATIONS] if row[2] in KINDS]
    subjects = [_subject(row) for row in rows]
    batches = _batch_rows([row[0] for row in rows if row[2] == BatchKind.name])
    history = History(
        document,
        subjects,
        rows=[row for each in batches.values() for row in each],
        with_recipients=bool(document.recipients.approved_only),
    )
    evaluator = Evaluator(document)
    operations = [
        _replayed(document, evaluator, history, subject, row, batches.get(row[0], []))
        for subject, row in zip(subjects, rows, strict=True)
    ]
    return Replay(since, [one for one in operations if one], is_cut=len(read) > MOST_OPERATIONS)


def _subject(row: tuple[Any, ...]) -> StoredSubject:
    pk, _reference, kind, payload, currency, amount, key, preparer, at, *_needed = row
    own = Debit(currency, amount) if amount is not None else None
    return StoredSubject(
        pk, KINDS[kind], payload, preparer, "", at, own, is_stored=True, key=key or "", stored=payload
    )


def _batch_rows(batches: Sequence[UUID]) -> dict[UUID, list[RowFacts]]:
    found: dict[UUID, list[RowFacts]] = defaultdict(list)
    if not batches:
        return found
    rows = BatchRow.objects.filter(batch__in=batches).order_by("batch", "number")
    for batch, currency, amount, key, payload in rows.values_list(
        "batch", "currency", "amount", "recipient_key", "payload"
    ):
        found[batch].append(RowFacts(currency, amount, key, str(payload.get("network") or "")))
    return found


def _replayed(
    document: PolicyDocument,
    evaluator: Evaluator,
    history: History,
    subject: StoredSubject,
    row: tuple[Any, ...],
    batch_rows: Sequence[RowFacts],
) -> ReplayedOperation | None:
    """None if this version of Countersign cannot read its content or its levels."""
    try:
        if subject.kind.name == BatchKind.name:
            payload = BatchPayload.model_validate(subject.stored)
            described = describe_batch(subject, payload, batch_rows, history)
        else:
            described = describe_with(subject, history)
    except ValidationError:
        return None
    decision = strictest([evaluator.decide(one) for one in described])
    is_not_approved = any(
        one.kind in document.recipients.approved_only and one.recipient and not one.recipient.is_saved
        for one in described
    )
    pk, reference, kind, _payload, currency, amount, _key, _preparer, at, needed, stored = row
    would_need = approvals_in(decision.rule.levels)
    try:
        is_less = _is_less(json.dumps(stored), needed, decision.rule.levels)
    except ValidationError:
        return None
    change = (
        Change.REFUSED
        if decision.rule.refuse or is_not_approved
        else Change.FEWER
        if is_less
        else Change.MORE
        if would_need > needed
        else Change.SAME
    )
    rule = 0 if is_not_approved else decision.number
    return ReplayedOperation(pk, reference, kind, currency, amount, at, needed, would_need, rule, change)


@lru_cache(maxsize=1000)
def _is_less(stored: str, needed: int, levels: Levels) -> bool:
    """As `requires_less` of the levels that an operation needed, which earlier releases did not store."""
    read = json.loads(stored)
    return requires_less((Level(needed=needed),) if read is None else read_levels(read), levels)


def sentences_by_number(document: PolicyDocument) -> list[str]:
    """The sentence of each rule by its number; of 0, which kinds pay approved recipients only."""
    return [
        approved_only_text(document.recipients),
        *rule_sentences(document),
        last_rule_sentence(LAST_RULE.levels),
    ]


def replay_csv(replayed: Replay, sentences: Sequence[str]) -> bytes:
    """Every operation of the replay, with its rule and the sentence of that rule (`sentences_by_number`)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(
        (
            "reference",
            "kind",
            "currency",
            "amount",
            "prepared_at",
            "approvals",
            "would_need",
            "rule",
            "change",
            "sentence",
        )
    )
    for one in replayed.operations:
        amount = "" if one.amount is None else f"{one.amount:f}"
        at = one.prepared_at.isoformat(timespec="seconds")
        writer.writerow(
            (
                one.reference,
                one.kind,
                one.currency,
                amount,
                at,
                one.needed,
                one.would_need,
                one.rule,
                one.change.value,
                sentences[one.rule],
            )
        )
    return out.getvalue().encode()
