"""Decides several operations, each on its own: what one of them meets does not touch the others."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import DatabaseError

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import policy
from backoffice.operations.errors import OperationAction, OperationError
from backoffice.operations.models import Approval, Operation
from backoffice.operations.services.approving import approve_operation
from backoffice.operations.services.deciding import reject_operation
from backoffice.operations.services.moves import record_refusal

logger = logging.getLogger(__name__)

AT_ONCE = 50
_UNCLEAR = "The database did not confirm it. Look at the operation before you decide about it again."


class Decision(StrEnum):
    """What can be decided about many at once."""

    APPROVE = "approve"
    REJECT = "reject"


class Result(StrEnum):
    """What became of one of them. The value is the tone in which it is shown."""

    DONE = "good"
    DONE_BEFORE = "info"
    REFUSED = "bad"


@dataclass(frozen=True)
class Choice:
    """An operation, and the digest of the content that the person saw."""

    operation: Operation
    digest: str


@dataclass(frozen=True)
class Line:
    """The result for one operation, in words."""

    operation: Operation
    result: Result
    text: str


def approve_operations(
    choices: Iterable[Choice], *, actor: User, second_factor_at: datetime | None, comment: str = ""
) -> list[Line]:
    """Countersign each as `approve_operation` does; one line for each, in their order. Nothing is sent.

    What has to be looked at alone (`policy.check_in_bulk`) is refused. What this person has countersigned before is
    only reported, so the same request again changes nothing.
    """

    def decide(choice: Choice) -> str:
        _check_in_bulk(choice.operation, actor)
        changed = approve_operation(
            choice.operation.pk,
            actor=actor,
            digest=choice.digest,
            second_factor_at=second_factor_at,
            comment=comment,
        )
        return f"Countersigned. It is {changed.get_status_display().lower()} now; nothing is sent."

    def was_decided(choice: Choice) -> bool:
        return Approval.objects.filter(
            operation=choice.operation, approver=actor, digest=choice.digest
        ).exists()

    before = "You had countersigned it before. Nothing was changed."
    return [_line(choice, decide, was_decided, before) for choice in choices]


def reject_operations(
    choices: Iterable[Choice], *, actor: User, second_factor_at: datetime | None, reason: str
) -> list[Line]:
    """Reject each as `reject_operation` does, with the same reason; one line for each, in their order.

    What this person has rejected before is only reported.
    """

    def decide(choice: Choice) -> str:
        reject_operation(
            choice.operation.pk,
            actor=actor,
            digest=choice.digest,
            second_factor_at=second_factor_at,
            reason=reason,
        )
        return "Rejected. Nothing was sent."

    def was_decided(choice: Choice) -> bool:
        return Entry.objects.filter(
            target_type=choice.operation._meta.label_lower,
            target_id=str(choice.operation.pk),
            action=Action.OPERATION_REJECTED,
            actor=actor.pk,
        ).exists()

    before = "You had rejected it before. Nothing was changed."
    return [_line(choice, decide, was_decided, before) for choice in choices]


def _line(
    choice: Choice, decide: Callable[[Choice], str], was_decided: Callable[[Choice], bool], before: str
) -> Line:
    """Asks again after a refusal: the same request may have run at the same moment."""
    if was_decided(choice):
        return Line(choice.operation, Result.DONE_BEFORE, before)
    try:
        return Line(choice.operation, Result.DONE, decide(choice))
    except OperationError as exc:
        if was_decided(choice):
            return Line(choice.operation, Result.DONE_BEFORE, before)
        return Line(choice.operation, Result.REFUSED, str(exc))
    except DatabaseError:
        logger.exception(
            "A decision among many met the database", extra={"operation": str(choice.operation.pk)}
        )
        return Line(choice.operation, Result.REFUSED, _UNCLEAR)


def _check_in_bulk(operation: Operation, actor: User) -> None:
    try:
        policy.check_in_bulk(operation)
    except OperationError as exc:
        record_refusal(operation.pk, OperationAction.APPROVE, actor, exc)
        raise
