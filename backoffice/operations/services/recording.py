"""What came back from the one request, sorted by what it proves, and written down."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from pydantic import SecretStr

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations.evidence import recorded_end
from backoffice.operations.kinds import Receipt
from backoffice.operations.models import ID_LENGTH, Attempt, Operation, Secret
from backoffice.operations.oversight import IncidentKind
from backoffice.operations.services import incidents
from backoffice.operations.services.moves import move
from backoffice.operations.services.releasing import call_next
from backoffice.operations.services.watching import first_watch
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError, NotSentError, RejectedError, TokenRefusedError

# When the service's list is looked at, counted from the beginning of the attempt. The last one is the horizon.
LOOK_AFTER = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 60, 300, 900, 3600, 6 * 3600, 24 * 3600))


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
        transaction_id=receipt.transaction_id if len(receipt.transaction_id or "") <= ID_LENGTH else None,
        result=receipt.result or None,
        secret=receipt.secret,
    )


def _answer(exc: GatewayError, status: Status, outcome: Outcome, action: Action) -> Answer:
    message = str(exc)
    if exc.body_excerpt and status == Status.UNKNOWN:
        message = f"{message} It said: {exc.body_excerpt}"
    return Answer(status, outcome, action, message[:500], http_status=exc.status)


def grace() -> timedelta:
    """How long after its deadline a sender is still waited for: it has an answer to write down, at most."""
    return timedelta(seconds=settings.SEND_WITHIN_SECONDS)


def next_look_at(started_at: datetime, now: datetime) -> datetime | None:
    """When to look next at an attempt that began then; None when the horizon is reached."""
    return next((started_at + pause for pause in LOOK_AFTER if started_at + pause > now), None)


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
    if operation.status == Status.SENDING and now > attempt.deadline_at + grace():
        silence = "No answer was recorded before the deadline"
        _apply(operation, attempt, Answer(Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_UNRESOLVED, silence))


@transaction.atomic
def fill_in_result(attempt_id: int, told: dict[str, str]) -> None:
    """Put what a read told into the gaps of what the answer told. Nothing that is there is changed."""
    attempt = Attempt.objects.select_for_update().get(pk=attempt_id)
    known = attempt.result or {}
    attempt.result = known | {name: text for name, text in told.items() if known.get(name) == ""}
    attempt.save(update_fields=["result"])


def bind_transaction(
    attempt: Attempt, transaction_id: str, *, named_at: datetime | None = None, instead_of: str | None = None
) -> bool:
    """Make a transaction of the service this attempt's own. The unique index and a compare-and-set decide.

    `named_at` is when the service named it in an answer; without it, it is taken for ours by what the list shows, or
    by what people signed: they may choose it `instead_of` one that was taken. False if it is another attempt's, or
    this one has another by now.
    """
    free = Q(service_transaction_id__isnull=True) | Q(service_transaction_id__in=[transaction_id, instead_of])
    return _bind(attempt, Attempt.objects.filter(free, pk=attempt.pk), transaction_id, named_at)


def _bind(attempt: Attempt, where: QuerySet[Attempt], transaction_id: str, named_at: datetime | None) -> bool:
    try:
        with transaction.atomic():
            bound = where.update(service_transaction_id=transaction_id, named_at=named_at or F("named_at"))
    except IntegrityError:
        if not Attempt.objects.filter(service_transaction_id=transaction_id).exclude(pk=attempt.pk).exists():
            raise
        return False
    if bound:
        attempt.service_transaction_id = transaction_id
        attempt.named_at = named_at or attempt.named_at
    return bool(bound)


def _locked(attempt_id: int) -> tuple[Operation, Attempt]:
    operation = Operation.objects.get_locked(Attempt.objects.get(pk=attempt_id).operation_id)
    return operation, Attempt.objects.select_for_update().get(pk=attempt_id)


def _apply(operation: Operation, attempt: Attempt, answer: Answer) -> None:
    if operation.status == Status.UNKNOWN:
        answer = _as_late(answer)
    if answer.transaction_id and not bind_transaction(attempt, answer.transaction_id, named_at=clock.now()):
        answer = _contradicted(operation, answer)
    _write(attempt, answer)
    _keep_secret(operation, attempt, answer)
    if answer.status != operation.status:
        reason = {"reason": answer.message} if answer.status == Status.FAILED else {}
        move(operation, answer.status, **reason)
    _audit(answer.action, operation, attempt, answer)
    settled(attempt)


def settled(attempt: Attempt) -> None:
    """Let the next one leave the balance if this attempt is not in doubt any more."""
    if attempt.closed_at or attempt.service_transaction_id:
        call_next(attempt.balance)


def _as_late(answer: Answer) -> Answer:
    """An answer after the operation became `unknown`: proof that nothing was executed closes it as failed.

    It does not go back to approved, because people have been told that its outcome is open (states.EDGES).
    """
    if answer.status != Status.APPROVED:
        return answer
    return replace(answer, status=Status.FAILED, action=Action.OPERATION_FAILED)


def _contradicted(operation: Operation, answer: Answer) -> Answer:
    """The service names a transaction that closed another operation: one of the two is wrong, so nothing is proven."""
    other = Attempt.objects.select_related("operation").get(service_transaction_id=answer.transaction_id)
    incidents.report(
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


def _write(attempt: Attempt, answer: Answer) -> None:
    now = clock.now()
    is_open = answer.outcome == Outcome.OPEN
    is_unclear = answer.status == Status.UNKNOWN
    attempt.outcome = answer.outcome
    attempt.answer = answer.message
    attempt.answer_status = answer.http_status
    attempt.result = answer.result
    attempt.closed_at, attempt.watch_next_at = (None, None) if is_open else (now, first_watch(now))
    attempt.next_check_at = None
    if is_open:
        attempt.next_check_at = now if is_unclear else next_look_at(attempt.started_at, now) or now
    attempt.save()


def _keep_secret(operation: Operation, attempt: Attempt, answer: Answer) -> None:
    """Seal what the service shows only once, for the person who had it sent; in the commit that records the answer."""
    if answer.secret is None or Secret.objects.filter(operation=operation).exists():
        return
    secret = Secret(operation=operation, belongs_to=attempt.released_by, kept_at=clock.now())
    secret.seal(answer.secret.get_secret_value())
    secret.save(force_insert=True)


def _record_late(operation: Operation, attempt: Attempt, answer: Answer) -> None:
    """Keep an answer that came when others had looked already, and put before people what it contradicts.

    An end stays. While there is none, the transaction that the service names counts for more than the one that was
    taken for it, and a refusal leads to review.
    """
    on_record = recorded_end(attempt.number, attempt.outcome, attempt.service_transaction_id)
    is_news = _contradicts(attempt, answer)
    if answer.transaction_id and not (attempt.closed_at and attempt.service_transaction_id):
        _bind(attempt, Attempt.objects.filter(pk=attempt.pk), answer.transaction_id, clock.now())
    attempt.result = attempt.result or answer.result
    attempt.answer = f"{attempt.answer} Later: {answer.message}"[:500] if attempt.answer else answer.message
    attempt.answer_status = answer.http_status or attempt.answer_status
    attempt.save(update_fields=["result", "answer", "answer_status"])
    _keep_secret(operation, attempt, answer)
    _audit(Action.OPERATION_ANSWERED_LATE, operation, attempt, answer)
    if is_news:
        incidents.report(
            operation,
            kind=IncidentKind.LATE_ANSWER,
            evidence={"answer": answer.message, "named": answer.transaction_id, "on_record": on_record},
        )
        _ask_people(operation, attempt, answer)


def _ask_people(operation: Operation, attempt: Attempt, answer: Answer) -> None:
    """Where the service refused what it seemed to work on, another's transaction was taken for this one."""
    if operation.status != Status.PROCESSING or answer.transaction_id:
        return
    attempt.next_check_at = None
    attempt.save(update_fields=["next_check_at"])
    move(operation, Status.REVIEW)
    _audit(Action.OPERATION_ESCALATED, operation, attempt, answer)


def _contradicts(attempt: Attempt, answer: Answer) -> bool:
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
