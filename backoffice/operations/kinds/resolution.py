"""What became of an operation whose outcome the service's list did not settle: one person says it, another signs it.

Nothing is sent. The service's own record is part of what is signed.
"""

from typing import Any

from backoffice.core.display import format_amount, local_time
from backoffice.operations.kinds.base import Counterparty, Effect, Facts, Linked, LocalKind
from backoffice.operations.kinds.resolution_case import open_case
from backoffice.operations.kinds.resolution_form import MEANINGS, ResolutionForm
from backoffice.operations.kinds.resolution_payload import (
    End,
    ResolutionChoice,
    ResolutionPayload,
    SeenTransaction,
    TakenTransaction,
)
from backoffice.operations.permissions import RESOLVE


class ResolutionKind(LocalKind[ResolutionPayload]):
    """Two people settle what the machine could not."""

    name = "resolution"
    label = "Resolution"
    plural = "Resolutions"
    letter = "R"
    verb = "Settle an outcome"
    permission = RESOLVE
    effect = Effect.SETTLES
    payload_type = ResolutionPayload
    form_type = ResolutionForm

    def sentence(self, payload: ResolutionPayload) -> str:
        return f"Settle {payload.reference}: {_said(payload)}"

    def counterparty(self, payload: ResolutionPayload) -> Counterparty:
        return Counterparty(payload.reference, "Outcome of an operation")

    def facts(self, payload: ResolutionPayload) -> Facts:
        return [
            ("Operation", Linked.to(payload.operation, f"{payload.reference} · {payload.sentence}")),
            ("Sent", f"{local_time(payload.sent_at)}, attempt {payload.attempt}"),
            ("What became of it", _said(payload)),
            *(_transaction_facts(payload.transaction) if payload.transaction else []),
            *_meaning_facts(payload),
            *(_taken_facts(payload.named) if payload.named else []),
            ("How that is known", payload.reason),
        ]

    def initial(self, payload: ResolutionPayload) -> dict[str, Any]:
        return {
            "operation": payload.operation,
            "verdict": payload.verdict.value,
            "transaction_id": payload.transaction.transaction_id if payload.transaction else "",
            "meaning": payload.meaning.value if payload.meaning else "",
            "reason": payload.reason,
        }

    def cautions(self, payload: ResolutionPayload) -> list[str]:
        """What does not fit, and that there is nothing to settle any more."""
        seen = payload.transaction or (payload.named.shown if payload.named else None)
        differs = [f"Does not fit what was sent: {', '.join(seen.differs)}."] if seen and seen.differs else []
        if seen and payload.meaning:
            differs.append(
                f"Nobody here knows the service's word for it, {seen.word}: ask the service yourself."
            )
        _, attempt = open_case(payload.operation)
        if attempt is not None and attempt.number == payload.attempt:
            return differs
        return [
            f"The outcome of {payload.reference} is known by now, so this cannot be applied any more.",
            *differs,
        ]


def _said(payload: ResolutionPayload) -> str:
    if payload.verdict == ResolutionChoice.ABSENT:
        taken = payload.named
        return f"it did not happen{f', though it had transaction {taken.transaction_id}' if taken else ''}"
    seen = payload.transaction
    if seen is None:
        return "it happened"
    if payload.meaning:
        means = "that it succeeded" if payload.end == End.SUCCEEDED else "that it failed and no money is gone"
        return f"it happened, as transaction {seen.transaction_id}, and {seen.word} means {means}"
    failed = ", which failed" if payload.end == End.FAILED else ""
    return f"it happened, as transaction {seen.transaction_id}{failed}"


def _meaning_facts(payload: ResolutionPayload) -> Facts:
    seen = payload.transaction
    return [(f"What {seen.word} means", MEANINGS[payload.meaning])] if seen and payload.meaning else []


def _taken_facts(taken: TakenTransaction) -> Facts:
    if taken.shown is None:
        return [("Taken for it", f"transaction {taken.transaction_id}, which the service does not show")]
    return [
        (
            "Taken for it",
            f"transaction {taken.transaction_id}, which the service shows as {_status(taken.shown)}",
        ),
        *_transaction_facts(taken.shown),
    ]


def _status(seen: SeenTransaction) -> str:
    return seen.status or "having no status"


def _transaction_facts(seen: SeenTransaction) -> Facts:
    facts = [
        ("Transaction", seen.transaction_id),
        (
            "At the service",
            f"{seen.type} {seen.currency} {format_amount(seen.amount, seen.currency)}, {seen.status}",
        ),
        ("Its time", local_time(seen.created_at) if seen.created_at else "not told"),
        ("Its counterparty", seen.counterparty or "not told"),
    ]
    if seen.previous_balance is not None:
        facts.append(
            ("Balance before it", f"{seen.currency} {format_amount(seen.previous_balance, seen.currency)}")
        )
    return [*facts, ("Does not fit", ", ".join(seen.differs))] if seen.differs else facts
