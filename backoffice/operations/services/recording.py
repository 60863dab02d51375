"""What came back from the one request, sorted by what it proves, and written down."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.operations.kinds import Receipt
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.moves import move
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError, NotSentError, RejectedError, TokenRefusedError

FIRST_CHECK_AFTER = timedelta(seconds=2)


@dataclass(frozen=True)
class Answer:
    """What the request proved: where the operation goes, and how the attempt ended (open: not proven yet)."""

    status: Status
    outcome: Outcome
    action: Action
    message: str
    http_status: int | None = None
    transaction_id: str | None = None


def answer_of(request: Callable[[], Receipt]) -> Answer:
    """Make the request and sort its end. Whatever proves neither execution nor refusal is `unknown`."""
    try:
        receipt = request()
    except NotSentError as exc:
        return _answer(exc, Status.APPROVED, Outcome.NOT_SENT, Action.OPERATION_RETURNED)
    except TokenRefusedError as exc:
        return _answer(exc, Status.APPROVED, Outcome.TOKEN_REFUSED, Action.OPERATION_RETURNED)
    except RejectedError as exc:
        return _answer(exc, Status.FAILED, Outcome.REJECTED, Action.OPERATION_FAILED)
    except GatewayError as exc:
        return _answer(exc, Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_UNRESOLVED)
    return Answer(
        Status.PROCESSING,
        Outcome.OPEN,
        Action.OPERATION_ACCEPTED,
        "Accepted by the service",
        http_status=200,
        transaction_id=receipt.transaction_id,
    )


def no_answer() -> Answer:
    """The process that sent is gone, or took longer than its deadline: anything may have happened."""
    return Answer(
        Status.UNKNOWN,
        Outcome.OPEN,
        Action.OPERATION_UNRESOLVED,
        "No answer was recorded before the deadline",
    )


def _answer(exc: GatewayError, status: Status, outcome: Outcome, action: Action) -> Answer:
    return Answer(status, outcome, action, str(exc)[:500], http_status=exc.status)


@transaction.atomic
def record_answer(attempt_id: int, answer: Answer) -> None:
    """Write down what came back; does nothing if the operation was closed by other evidence meanwhile."""
    operation = Operation.objects.get_locked(Attempt.objects.get(pk=attempt_id).operation_id)
    attempt = Attempt.objects.select_for_update().get(pk=attempt_id)
    if attempt.closed_at is not None or operation.status not in {Status.SENDING, Status.UNKNOWN}:
        return
    answer = _as_late(answer) if operation.status == Status.UNKNOWN else answer
    _write(attempt, answer)
    if answer.status != operation.status:
        move(
            operation, answer.status, **({"reason": answer.message} if answer.status == Status.FAILED else {})
        )
    audit.record(
        answer.action,
        actor=None,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        answer=answer.message,
        http_status=answer.http_status,
        service_transaction_id=attempt.service_transaction_id,
        status=operation.status,
    )


def _as_late(answer: Answer) -> Answer:
    """An answer after the operation became `unknown`: proof that nothing was executed closes it as failed.

    It does not go back to approved, because people have been told that its outcome is open (states.EDGES).
    """
    if answer.status != Status.APPROVED:
        return answer
    return Answer(Status.FAILED, answer.outcome, Action.OPERATION_FAILED, answer.message, answer.http_status)


def _write(attempt: Attempt, answer: Answer) -> None:
    attempt.outcome, attempt.answer, attempt.answer_status = (
        answer.outcome,
        answer.message,
        answer.http_status,
    )
    now = timezone.now()
    if answer.outcome == Outcome.OPEN:
        attempt.next_check_at = now + FIRST_CHECK_AFTER
    else:
        attempt.closed_at, attempt.next_check_at = now, None
    claimed = Attempt.objects.filter(service_transaction_id=answer.transaction_id).exclude(pk=attempt.pk)
    if answer.transaction_id and not claimed.exists():
        attempt.service_transaction_id = answer.transaction_id
    attempt.save()
