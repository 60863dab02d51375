"""Classify the answer to the one request by what it proves, record it, and schedule the next status check."""

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
from backoffice.operations.matching import claim_transaction, claim_transaction_where
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Attempt, Operation, Secret
from backoffice.operations.models.reason_codes import IncidentKind, recorded_end
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError, NotSentError, OtpRefusedError, RejectedError

# When the provider's list is read, counted from the start of the attempt. After the last one (the horizon) an
# unknown outcome goes to review.
CHECK_AFTER = tuple(
    timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900, 3600, 6 * 3600, 24 * 3600)
)


@dataclass(frozen=True)
class SendResult:
    """What the request proved: the operation's next status and the attempt's outcome (open: not proven)."""

    status: Status
    outcome: Outcome
    action: Action
    message: str
    http_status: int | None = None
    transaction_id: str | None = None
    result: dict[str, str] | None = None
    secret: SecretStr | None = None


def send_and_classify(request: Callable[[], SendReceipt]) -> SendResult:
    """Make the request and classify how it ended. What proves neither execution nor refusal becomes
    `unknown`.
    """
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
    """The provider accepted the request: `processing` until a read shows the end, unless the receipt is
    final.
    """
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
    """How long after its deadline a sending process may still record an answer."""
    return timedelta(seconds=settings.SEND_WITHIN_SECONDS)


def next_check_time(started_at: datetime, now: datetime) -> datetime | None:
    """When to check an attempt next that began at `started_at`; None once the horizon is reached."""
    return next((started_at + pause for pause in CHECK_AFTER if started_at + pause > now), None)


@transaction.atomic
def record_result(attempt_id: int, answer: SendResult) -> None:
    """Record the result of the request, or keep it as a late answer if the status was decided meanwhile."""
    operation, attempt = _locked(attempt_id)
    if attempt.closed_at is None and operation.status in {Status.SENDING, Status.UNKNOWN}:
        _apply(operation, attempt, answer)
    else:
        _record_late(operation, attempt, answer)


@transaction.atomic
def record_timeout(attempt_id: int, *, now: datetime) -> None:
    """Declare the outcome unknown if the operation is still `sending` long after its deadline.

    The sending process died or is frozen, so the request may or may not have been made.
    """
    operation, attempt = _locked(attempt_id)
    if operation.status == Status.SENDING and now > attempt.deadline_at + sender_grace():
        silence = "No answer was recorded before the deadline"
        _apply(
            operation, attempt, SendResult(Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_UNRESOLVED, silence)
        )


@transaction.atomic
def complete_result(attempt_id: int, told: dict[str, str]) -> None:
    """Fill empty values of the recorded result from a later read; present ones are not changed."""
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
    """Enqueue the next release of this balance once the attempt is closed or its transaction is known."""
    if attempt.closed_at or attempt.service_transaction_id:
        enqueue_next(attempt.balance)


def _as_late_result(answer: SendResult) -> SendResult:
    """Proof of no execution that arrives after the operation became `unknown` closes it as failed.

    It does not return to approved, since people have already seen that the outcome is unknown
    (`states.EDGES`).
    """
    if answer.status != Status.APPROVED:
        return answer
    return replace(answer, status=Status.FAILED, action=Action.OPERATION_FAILED)


def _contradicted(operation: Operation, answer: SendResult) -> SendResult:
    """The provider named another attempt's transaction: raise an incident; nothing is proven."""
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
    attempt.closed_at = None if is_open else now
    attempt.next_check_at = None
    if is_open:
        attempt.next_check_at = now if is_unclear else next_check_time(attempt.started_at, now) or now
    attempt.save()


def _keep_secret(operation: Operation, attempt: Attempt, answer: SendResult) -> None:
    """Encrypt a secret that the provider shows only once, for the user who released the operation.

    Runs in the transaction that records the answer.
    """
    if answer.secret is None or Secret.objects.filter(operation=operation).exists():
        return
    secret = Secret(operation=operation, belongs_to=attempt.released_by, kept_at=clock.now())
    secret.seal(answer.secret.get_secret_value())
    secret.save(force_insert=True)


def _record_late(operation: Operation, attempt: Attempt, answer: SendResult) -> None:
    """Keep an answer that arrives late, and raise an incident if it contradicts the record.

    An end on record is not changed. While there is none, the transaction that the provider names replaces the
    one that was matched, and a refusal leads to review.
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
    """Send an operation to review if the provider refused it although a transaction was matched to it.

    That transaction must belong to something else.
    """
    if operation.status != Status.PROCESSING or answer.transaction_id:
        return
    attempt.next_check_at = None
    attempt.save(update_fields=["next_check_at"])
    transition(operation, Status.REVIEW)
    _audit(Action.OPERATION_ESCALATED, operation, attempt, answer)


def _contradicts(attempt: Attempt, answer: SendResult) -> bool:
    """Whether the answer contradicts the record: executed or not, or another transaction id.

    Accepted first and failed later as a transaction is the ordinary course, not a contradiction.
    """
    known = attempt.service_transaction_id
    if answer.transaction_id and answer.transaction_id != known and (known or attempt.closed_at):
        return True
    if attempt.outcome == Outcome.OPEN and not known:
        # the record claims neither execution nor failure yet
        return False
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
