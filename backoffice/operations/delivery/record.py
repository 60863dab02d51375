"""Classify what came back from the one request by what it proves, record it, and set when the status is checked next.

The times of the checks count from the start (open) or the end (closed) of the attempt.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from pydantic import SecretStr

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations.delivery.release import enqueue_next
from backoffice.operations.kinds.base import SendReceipt
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.matching import EXECUTION_WINDOW, claim_transaction, claim_transaction_where
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Attempt, Operation, Secret
from backoffice.operations.models.reason_codes import IncidentKind, recorded_end
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError, NotSentError, OtpRefusedError, RejectedError

# When a closed attempt is looked at again, counted from its end and rounded up to full ones of the second. The look
# in the middle comes after the time in which the service may still execute what it got.
RECHECK_CLOSED_AFTER = (
    (timedelta(minutes=10), timedelta(minutes=1)),
    (EXECUTION_WINDOW + timedelta(minutes=5), timedelta(minutes=15)),
    (timedelta(hours=24), timedelta(hours=1)),
)


def first_recheck_time(closed_at: datetime) -> datetime:
    """When an attempt that was closed then is looked at again for the first time."""
    return recheck_times(closed_at)[0]


def recheck_times(closed_at: datetime) -> list[datetime]:
    return [_rounded_up(closed_at + after, to) for after, to in RECHECK_CLOSED_AFTER]


def _rounded_up(moment: datetime, to: timedelta) -> datetime:
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + -(-(moment - midnight) // to) * to


# When the service's list is looked at, counted from the beginning of the attempt. The last one is the horizon.
CHECK_AFTER = tuple(
    timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900, 3600, 6 * 3600, 24 * 3600)
)


@dataclass(frozen=True)
class SendResult:
    """What the request proved: where the operation goes, and how the attempt ended (open: not proven yet)."""

    status: Status
    outcome: Outcome
    action: Action
    message: str
    http_status: int | None = None
    transaction_id: str | None = None
    result: dict[str, str] | None = None
    secret: SecretStr | None = None


def send_and_classify(request: Callable[[], SendReceipt]) -> SendResult:
    """Make the request and sort its end. Whatever proves neither execution nor refusal is `unknown`."""
    try:
        receipt = request()
    except NotSentError as exc:
        return _result_of_error(exc, Status.APPROVED, Outcome.NOT_SENT, Action.OPERATION_RETURNED)
    except OtpRefusedError as exc:
        return _result_of_error(exc, Status.APPROVED, Outcome.TOKEN_REFUSED, Action.OPERATION_RETURNED)
    except RejectedError as exc:
        return _result_of_error(exc, Status.FAILED, Outcome.REJECTED, Action.OPERATION_FAILED)
    except GatewayError as exc:
        return _result_of_error(exc, Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_UNRESOLVED)
    return _accepted(receipt)


def _accepted(receipt: SendReceipt) -> SendResult:
    """The service said yes. Unless that proves the end, the operation goes on until a read shows it."""
    done = (Status.SUCCEEDED, Outcome.SUCCEEDED, Action.OPERATION_SUCCEEDED)
    going_on = (Status.PROCESSING, Outcome.OPEN, Action.OPERATION_ACCEPTED)
    status, outcome, action = done if receipt.is_final else going_on
    return SendResult(
        status,
        outcome,
        action,
        f"Accepted by the service{f', as {receipt.status}' if receipt.status else ''}",
        transaction_id=receipt.transaction_id
        if len(receipt.transaction_id or "") <= TRANSACTION_ID_LENGTH
        else None,
        result=receipt.result or None,
        secret=receipt.secret,
    )


def _result_of_error(exc: GatewayError, status: Status, outcome: Outcome, action: Action) -> SendResult:
    message = str(exc)
    if exc.body_excerpt and status == Status.UNKNOWN:
        message = f"{message} It said: {exc.body_excerpt}"
    return SendResult(status, outcome, action, message[:500], http_status=exc.status)


def sender_grace() -> timedelta:
    """How long after its deadline a sender is still waited for: it has an answer to write down, at most."""
    return timedelta(seconds=settings.SEND_WITHIN_SECONDS)


def next_check_time(started_at: datetime, now: datetime) -> datetime | None:
    """When to look next at an attempt that began then; None when the horizon is reached."""
    return next((started_at + pause for pause in CHECK_AFTER if started_at + pause > now), None)


@transaction.atomic
def record_result(attempt_id: int, answer: SendResult) -> None:
    """Write down what came back. An answer that no longer fits the state moves nothing, and is put on record."""
    operation, attempt = _locked(attempt_id)
    if attempt.closed_at is None and operation.status in {Status.SENDING, Status.UNKNOWN}:
        _apply(operation, attempt, answer)
    else:
        _record_late(operation, attempt, answer)


@transaction.atomic
def record_timeout(attempt_id: int, *, now: datetime) -> None:
    """Declare the outcome unknown if the operation is still `sending` long after its deadline.

    The process that sent is gone, or frozen: anything may have happened.
    """
    operation, attempt = _locked(attempt_id)
    if operation.status == Status.SENDING and now > attempt.deadline_at + sender_grace():
        silence = "No answer was recorded before the deadline"
        _apply(
            operation, attempt, SendResult(Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_UNRESOLVED, silence)
        )


@transaction.atomic
def complete_result(attempt_id: int, told: dict[str, str]) -> None:
    """Put what a read told into the gaps of what the answer told. Nothing that is there is changed."""
    attempt = Attempt.objects.select_for_update().get(pk=attempt_id)
    known = attempt.result or {}
    attempt.result = known | {name: text for name, text in told.items() if known.get(name) == ""}
    attempt.save(update_fields=["result"])


def _locked(attempt_id: int) -> tuple[Operation, Attempt]:
    operation = Operation.objects.get_locked(Attempt.objects.get(pk=attempt_id).operation_id)
    return operation, Attempt.objects.select_for_update().get(pk=attempt_id)


def _apply(operation: Operation, attempt: Attempt, answer: SendResult) -> None:
    if operation.status == Status.UNKNOWN:
        answer = _as_late_result(answer)
    if answer.transaction_id and not claim_transaction(attempt, answer.transaction_id, named_at=clock.now()):
        answer = _contradicted(operation, answer)
    _close_or_schedule(attempt, answer)
    _keep_secret(operation, attempt, answer)
    if answer.status != operation.status:
        reason = {"reason": answer.message} if answer.status == Status.FAILED else {}
        transition(operation, answer.status, **reason)
    _audit(answer.action, operation, attempt, answer)
    release_balance(attempt)


def release_balance(attempt: Attempt) -> None:
    """Let the next one leave the balance if this attempt is not in doubt any more."""
    if attempt.closed_at or attempt.service_transaction_id:
        enqueue_next(attempt.balance)


def _as_late_result(answer: SendResult) -> SendResult:
    """An answer after the operation became `unknown`: proof that nothing was executed closes it as failed.

    It does not go back to approved, because people have been told that its outcome is open (states.EDGES).
    """
    if answer.status != Status.APPROVED:
        return answer
    return replace(answer, status=Status.FAILED, action=Action.OPERATION_FAILED)


def _contradicted(operation: Operation, answer: SendResult) -> SendResult:
    """The service names a transaction that closed another operation: one of the two is wrong, so nothing is proven."""
    other = Attempt.objects.select_related("operation").get(service_transaction_id=answer.transaction_id)
    incidents.raise_incident(
        other.operation,
        kind=IncidentKind.NAMED_FOR_ANOTHER,
        evidence={"transaction": answer.transaction_id, "other": operation.reference},
    )
    return replace(
        answer,
        status=Status.UNKNOWN,
        outcome=Outcome.OPEN,
        action=Action.OPERATION_CONTRADICTED,
        message=f"The service names transaction {answer.transaction_id}, by which "
        f"{other.operation.reference} was closed. People must look at both.",
    )


def _close_or_schedule(attempt: Attempt, answer: SendResult) -> None:
    now = clock.now()
    is_open = answer.outcome == Outcome.OPEN
    is_unclear = answer.status == Status.UNKNOWN
    attempt.outcome = answer.outcome
    attempt.answer = answer.message
    attempt.answer_status = answer.http_status
    attempt.result = answer.result
    attempt.closed_at, attempt.watch_next_at = (None, None) if is_open else (now, first_recheck_time(now))
    attempt.next_check_at = None
    if is_open:
        attempt.next_check_at = now if is_unclear else next_check_time(attempt.started_at, now) or now
    attempt.save()


def _keep_secret(operation: Operation, attempt: Attempt, answer: SendResult) -> None:
    """Seal what the service shows only once, for the person who had it sent; in the commit that records the answer."""
    if answer.secret is None or Secret.objects.filter(operation=operation).exists():
        return
    secret = Secret(operation=operation, belongs_to=attempt.released_by, kept_at=clock.now())
    secret.seal(answer.secret.get_secret_value())
    secret.save(force_insert=True)


def _record_late(operation: Operation, attempt: Attempt, answer: SendResult) -> None:
    """Keep an answer that came when others had looked already, and put before people what it contradicts.

    An end stays. While there is none, the transaction that the service names counts for more than the one that was
    taken for it, and a refusal leads to review.
    """
    on_record = recorded_end(attempt.number, attempt.outcome, attempt.service_transaction_id)
    is_news = _contradicts(attempt, answer)
    if answer.transaction_id and not (attempt.closed_at and attempt.service_transaction_id):
        claim_transaction_where(
            attempt, Attempt.objects.filter(pk=attempt.pk), answer.transaction_id, clock.now()
        )
    attempt.result = attempt.result or answer.result
    attempt.answer = f"{attempt.answer} Later: {answer.message}"[:500] if attempt.answer else answer.message
    attempt.answer_status = answer.http_status or attempt.answer_status
    attempt.save(update_fields=["result", "answer", "answer_status"])
    _keep_secret(operation, attempt, answer)
    _audit(Action.OPERATION_ANSWERED_LATE, operation, attempt, answer)
    if is_news:
        incidents.raise_incident(
            operation,
            kind=IncidentKind.LATE_ANSWER,
            evidence={"answer": answer.message, "named": answer.transaction_id, "on_record": on_record},
        )
        _escalate(operation, attempt, answer)


def _escalate(operation: Operation, attempt: Attempt, answer: SendResult) -> None:
    """Where the service refused what it seemed to work on, another's transaction was taken for this one."""
    if operation.status != Status.PROCESSING or answer.transaction_id:
        return
    attempt.next_check_at = None
    attempt.save(update_fields=["next_check_at"])
    transition(operation, Status.REVIEW)
    _audit(Action.OPERATION_ESCALATED, operation, attempt, answer)


def _contradicts(attempt: Attempt, answer: SendResult) -> bool:
    """Whether the answer says executed where the record says not, or the reverse, or names another transaction.

    Accepted, then failed as a transaction of the service, is the ordinary course.
    """
    known = attempt.service_transaction_id
    if answer.transaction_id and answer.transaction_id != known and (known or attempt.closed_at):
        return True
    if attempt.outcome == Outcome.OPEN and not known:
        return False  # nothing is on record but that nobody knows
    if attempt.outcome in {Outcome.SUCCEEDED, Outcome.OPEN}:
        return answer.status in {Status.APPROVED, Status.FAILED}
    return answer.status == Status.SUCCEEDED or (answer.status == Status.PROCESSING and known is None)


def _audit(action: Action, operation: Operation, attempt: Attempt, answer: SendResult) -> None:
    audit.record(
        action,
        actor=None,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        answer=answer.message,
        http_status=answer.http_status,
        named_transaction_id=answer.transaction_id,
        service_transaction_id=attempt.service_transaction_id,
        status=operation.status,
    )
