"""What came back from the one request, sorted by what it proves, and written down."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone
from pydantic import SecretStr

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.operations.kinds import Receipt
from backoffice.operations.models import Attempt, Operation, Secret
from backoffice.operations.services.moves import move
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError, NotSentError, RejectedError, TokenRefusedError

FIRST_CHECK_AFTER = timedelta(seconds=2)
GRACE_AFTER_DEADLINE = timedelta(seconds=30)


@dataclass(frozen=True)
class Answer:
    """What the request proved: where the operation goes, and how the attempt ended (open: not proven yet)."""

    status: Status
    outcome: Outcome
    action: Action
    message: str
    http_status: int | None = None
    transaction_id: str | None = None
    result: dict[str, str] | None = None
    secret: SecretStr | None = None


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
    return _accepted(receipt)


def _accepted(receipt: Receipt) -> Answer:
    """The service said yes. Unless that proves the end, the operation goes on until a read shows it."""
    done = (Status.SUCCEEDED, Outcome.SUCCEEDED, Action.OPERATION_SUCCEEDED)
    going_on = (Status.PROCESSING, Outcome.OPEN, Action.OPERATION_ACCEPTED)
    status, outcome, action = done if receipt.is_final else going_on
    return Answer(
        status,
        outcome,
        action,
        f"Accepted by the service{f', as {receipt.status}' if receipt.status else ''}",
        transaction_id=receipt.transaction_id,
        result=receipt.result or None,
        secret=receipt.secret,
    )


def _answer(exc: GatewayError, status: Status, outcome: Outcome, action: Action) -> Answer:
    message = str(exc)
    if exc.body_excerpt and status == Status.UNKNOWN:
        message = f"{message} It said: {exc.body_excerpt}"
    return Answer(status, outcome, action, message[:500], http_status=exc.status)


@transaction.atomic
def record_answer(attempt_id: int, answer: Answer) -> None:
    """Write down what came back. An answer that no longer fits the state moves nothing, and is put on record."""
    operation, attempt = _locked(attempt_id)
    if attempt.closed_at is None and operation.status in {Status.SENDING, Status.UNKNOWN}:
        _apply(operation, attempt, answer)
    else:
        _record_late(operation, attempt, answer)


@transaction.atomic
def record_silence(attempt_id: int, *, now: datetime) -> None:
    """Declare the outcome unknown if the operation is still `sending` long after its deadline.

    The process that sent is gone, or frozen: anything may have happened.
    """
    operation, attempt = _locked(attempt_id)
    if operation.status == Status.SENDING and now > attempt.deadline_at + GRACE_AFTER_DEADLINE:
        silence = "No answer was recorded before the deadline"
        _apply(operation, attempt, Answer(Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_UNRESOLVED, silence))


@transaction.atomic
def fill_in_result(attempt_id: int, told: dict[str, str]) -> None:
    """Put what a read told into the gaps of what the answer told. Nothing that is there is changed."""
    attempt = Attempt.objects.select_for_update().get(pk=attempt_id)
    known = attempt.result or {}
    attempt.result = known | {name: text for name, text in told.items() if known.get(name) == ""}
    attempt.save(update_fields=["result"])


def bind_transaction(attempt: Attempt, transaction_id: str) -> bool:
    """Make a transaction of the service this attempt's own; False if it is another's. The unique index decides."""
    try:
        with transaction.atomic():
            Attempt.objects.filter(pk=attempt.pk).update(service_transaction_id=transaction_id)
    except IntegrityError:
        return False
    attempt.service_transaction_id = transaction_id
    return True


def _locked(attempt_id: int) -> tuple[Operation, Attempt]:
    operation = Operation.objects.get_locked(Attempt.objects.get(pk=attempt_id).operation_id)
    return operation, Attempt.objects.select_for_update().get(pk=attempt_id)


def _apply(operation: Operation, attempt: Attempt, answer: Answer) -> None:
    if operation.status == Status.UNKNOWN:
        answer = _as_late(answer)
    if answer.transaction_id and not bind_transaction(attempt, answer.transaction_id):
        answer = _contradicted(answer)
    _write(attempt, answer)
    _keep_secret(operation, attempt, answer)
    if answer.status != operation.status:
        reason = {"reason": answer.message} if answer.status == Status.FAILED else {}
        move(operation, answer.status, **reason)
    _audit(answer.action, operation, attempt, answer)


def _as_late(answer: Answer) -> Answer:
    """An answer after the operation became `unknown`: proof that nothing was executed closes it as failed.

    It does not go back to approved, because people have been told that its outcome is open (states.EDGES).
    """
    if answer.status != Status.APPROVED:
        return answer
    return replace(answer, status=Status.FAILED, action=Action.OPERATION_FAILED)


def _contradicted(answer: Answer) -> Answer:
    """The service names a transaction that closed another operation: one of the two is wrong, so nothing is proven."""
    other = Attempt.objects.select_related("operation").get(service_transaction_id=answer.transaction_id)
    return replace(
        answer,
        status=Status.UNKNOWN,
        outcome=Outcome.OPEN,
        action=Action.OPERATION_CONTRADICTED,
        message=f"The service names transaction {answer.transaction_id}, by which "
        f"{other.operation.reference} was closed. People must look at both.",
    )


def _write(attempt: Attempt, answer: Answer) -> None:
    now = timezone.now()
    is_open = answer.outcome == Outcome.OPEN
    attempt.outcome = answer.outcome
    attempt.answer = answer.message
    attempt.answer_status = answer.http_status
    attempt.result = answer.result
    attempt.closed_at = None if is_open else now
    attempt.next_check_at = now + FIRST_CHECK_AFTER if is_open else None
    attempt.save()


def _keep_secret(operation: Operation, attempt: Attempt, answer: Answer) -> None:
    """Seal what the service shows only once, for the person who had it sent; in the commit that records the answer."""
    if answer.secret is None or Secret.objects.filter(operation=operation).exists():
        return
    secret = Secret(operation=operation, belongs_to=attempt.released_by, kept_at=timezone.now())
    secret.seal(answer.secret.get_secret_value())
    secret.save(force_insert=True)


def _record_late(operation: Operation, attempt: Attempt, answer: Answer) -> None:
    """Keep an answer that came after the end, with its transaction if that is still free, for people to see."""
    if answer.transaction_id and attempt.service_transaction_id is None:
        bind_transaction(attempt, answer.transaction_id)
    if answer.result and attempt.result is None:
        attempt.result = answer.result
        attempt.save(update_fields=["result"])
    _keep_secret(operation, attempt, answer)
    _audit(Action.OPERATION_ANSWERED_LATE, operation, attempt, answer)


def _audit(action: Action, operation: Operation, attempt: Attempt, answer: Answer) -> None:
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
