"""Classify the response to the one request by what it proves, record it, and schedule the next status check."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from pydantic import SecretStr

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.core.web.formatting import stored_error
from backoffice.operations.delivery.release import enqueue_next, renew_release
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.base import OutdatedError, SendReceipt
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.matching import claim_transaction, was_listed_before
from backoffice.operations.models.evidence import recorded_outcome
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Attempt, Operation
from backoffice.operations.models.reason_codes import (
    IncidentKind,
    Response,
    ResponseCode,
    coded,
    responses_sentence,
)
from backoffice.operations.models.secret import Secret
from backoffice.operations.states import Outcome, Status
from payments_gateway import GatewayError, NotSentError, OtpRejectedError, RejectedError

logger = logging.getLogger(__name__)
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
    response: Response
    http_status: int | None = None
    transaction_id: str | None = None
    result: dict[str, str] | None = None
    secret: SecretStr | None = None


def send_and_classify(request: Callable[[], SendReceipt]) -> SendResult:
    """Make the request and classify how it ended. What proves neither execution nor rejection becomes
    `unknown`.
    """
    try:
        receipt = request()
    except NotSentError as exc:
        return _result_of_error(exc, Status.APPROVED, Outcome.NOT_SENT, Action.OPERATION_RETURNED)
    except OtpRejectedError as exc:
        return _result_of_error(exc, Status.APPROVED, Outcome.OTP_REJECTED, Action.OPERATION_RETURNED)
    except RejectedError as exc:
        return _result_of_error(exc, Status.FAILED, Outcome.REJECTED, Action.OPERATION_FAILED)
    except GatewayError as exc:
        return _result_of_error(exc, Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_OUTCOME_UNKNOWN)
    return _accepted(receipt)


def _accepted(receipt: SendReceipt) -> SendResult:
    """The provider accepted the request: `processing` until a read shows the outcome, unless the receipt is
    final.
    """
    done = (Status.SUCCEEDED, Outcome.SUCCEEDED, Action.OPERATION_SUCCEEDED)
    processing = (Status.PROCESSING, Outcome.OPEN, Action.OPERATION_ACCEPTED)
    status, outcome, action = done if receipt.is_final else processing
    return SendResult(
        status,
        outcome,
        action,
        _accepted_response(receipt),
        transaction_id=receipt.transaction_id
        if len(receipt.transaction_id or "") <= TRANSACTION_ID_LENGTH
        else None,
        result=receipt.result or None,
        secret=receipt.secret,
    )


_ACCEPTED = {
    (False, False): ResponseCode.ACCEPTED,
    (True, False): ResponseCode.ACCEPTED_AS,
    (False, True): ResponseCode.ACCEPTED_WITH_MESSAGE,
    (True, True): ResponseCode.ACCEPTED_AS_WITH_MESSAGE,
}


def _accepted_response(receipt: SendReceipt) -> Response:
    """That the provider accepted it, with its status and message if it reported them."""
    code = _ACCEPTED[bool(receipt.status), bool(receipt.message)]
    reported = {"status": receipt.status, "message": receipt.message}
    return coded(code, **{name: text for name, text in reported.items() if text})


def _result_of_error(exc: GatewayError, status: Status, outcome: Outcome, action: Action) -> SendResult:
    code = ResponseCode.OUTDATED if isinstance(exc, OutdatedError) else ResponseCode.ERROR
    error = coded(code, **stored_error(exc))
    if exc.body_excerpt and status == Status.UNKNOWN:
        error = coded(ResponseCode.UNREADABLE, excerpt=exc.body_excerpt[:500], **stored_error(exc))
    return SendResult(status, outcome, action, error, http_status=exc.status)


def sender_grace() -> timedelta:
    """How long after its deadline, or its time to begin, a sending process may still record the result."""
    return timedelta(seconds=settings.SEND_WITHIN_SECONDS)


def next_check_time(started_at: datetime, now: datetime) -> datetime | None:
    """When to check an attempt next that began at `started_at`; None once the horizon is reached."""
    return next((started_at + pause for pause in CHECK_AFTER if started_at + pause > now), None)


@transaction.atomic
def record_result(sent: Attempt, result: SendResult) -> None:
    """Record the result of the request, or keep it as a late response if the status was decided meanwhile.

    If the database was restored and has no such attempt, the result is only logged; the journal has it.
    """
    if not Attempt.objects.same(sent).exists():
        logger.error(
            "The response to attempt %s of operation %s is not recorded: the database has another attempt, or none. %s",
            *(sent.number, sent.operation_id, responses_sentence([result.response])),
        )
        return
    operation, attempt = _locked(sent.pk)
    if attempt.closed_at is None and operation.status in {Status.SENDING, Status.UNKNOWN}:
        _apply(operation, attempt, result)
    else:
        _record_late(operation, attempt, result)


@transaction.atomic
def record_timeout(attempt_id: int, *, now: datetime) -> None:
    """End an attempt whose process died or is frozen: it is still `sending` long after its time.

    If the request had not begun in time, nothing was sent and nothing can be sent any more: the operation
    returns to approved. After its deadline, a request that began may or may not have been made: the outcome
    is unknown.
    """
    operation, attempt = _locked(attempt_id)
    if operation.status != Status.SENDING:
        return
    if not _lost_commits_since(attempt) and _close_not_begun(attempt, now):
        not_begun = coded(ResponseCode.NOT_BEGUN)
        _apply(
            operation,
            attempt,
            SendResult(Status.APPROVED, Outcome.NOT_SENT, Action.OPERATION_RETURNED, not_begun),
        )
    elif now > attempt.deadline_at + sender_grace():
        no_response = coded(ResponseCode.NOTHING_RECORDED)
        _apply(
            operation,
            attempt,
            SendResult(Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_OUTCOME_UNKNOWN, no_response),
        )


def _lost_commits_since(attempt: Attempt) -> bool:
    """Whether the database may have been restored since: it may lack the commit that the request began."""
    kinds = (IncidentKind.DATABASE_RESTORED, IncidentKind.JOURNAL_LOST)
    return Incident.objects.filter(kind__in=kinds, at__gt=attempt.started_at).exists()


def is_silent(now: datetime) -> Q:
    """Attempts whose sending process should have recorded something by now, if the operation is `sending`."""
    return _not_begun(now) | Q(closed_at__isnull=True, deadline_at__lt=now - sender_grace())


def _not_begun(now: datetime) -> Q:
    return Q(closed_at__isnull=True, begun_at__isnull=True, begin_by__lt=now - sender_grace())


def _close_not_begun(attempt: Attempt, now: datetime) -> bool:
    """Close the attempt as not sent unless its request has begun: a compare-and-set, so that it cannot begin
    any more.
    """
    ours = Attempt.objects.filter(_not_begun(now), pk=attempt.pk)
    return ours.update(outcome=Outcome.NOT_SENT, closed_at=now) == 1


def record_from_journal(
    operation: Operation, attempt: Attempt, *, machine: str, transaction_id: str | None
) -> None:
    """Record the outcome of an attempt that was recreated from a journal as unknown, in the caller's transaction.

    It is closed by matching; no request is made.
    """
    in_journal = coded(ResponseCode.IN_JOURNAL, machine=machine)
    unknown = (Status.UNKNOWN, Outcome.OPEN, Action.OPERATION_OUTCOME_UNKNOWN, in_journal)
    _apply(operation, attempt, SendResult(*unknown, transaction_id=transaction_id))


@transaction.atomic
def complete_result(sent: Attempt, details: dict[str, str]) -> None:
    """Fill empty values of the recorded result from a later read; present ones are not changed."""
    attempt = Attempt.objects.same(sent).select_for_update().first()
    if attempt is None:
        return  # as in `record_result`
    result = attempt.result or {}
    attempt.result = result | {name: text for name, text in details.items() if result.get(name) == ""}
    attempt.save(update_fields=["result"])


def _locked(attempt_id: int) -> tuple[Operation, Attempt]:
    operation = Operation.objects.get_locked(Attempt.objects.get(pk=attempt_id).operation_id)
    return operation, Attempt.objects.select_for_update().get(pk=attempt_id)


def _apply(operation: Operation, attempt: Attempt, result: SendResult) -> None:
    result = _without_older_transaction(attempt, result)
    if operation.status == Status.UNKNOWN:
        result = _as_late_result(result)
    if result.transaction_id and not claim_transaction(
        attempt, result.transaction_id, id_received_at=clock.now()
    ):
        result = _contradicted(operation, result)
    _close_or_schedule(attempt, result)
    _store_secret(operation, attempt, result)
    if result.status != operation.status:
        reason = {"closing_reason": result.response} if result.status == Status.FAILED else {}
        transition(operation, result.status, **reason)
    _audit(result.action, operation, attempt, result)
    _compare_response(operation, result)
    if result.outcome == Outcome.OTP_REJECTED:
        renew_release(operation, attempt)
    enqueue_next(attempt.balance)  # of another amount, if the transaction is still not known


def _compare_response(operation: Operation, result: SendResult) -> None:
    """Raise an incident if the provider's response shows that it created something else than was approved."""
    if not result.result:
        return
    try:
        kind, payload = read_content(operation)
    except ContentUnreadableError:
        return  # altered since it was sent, which has an incident of its own; the response is recorded all the same
    if differences := kind.response_differences(payload, result.result):
        evidence = {"differences": differences}
        incidents.raise_incident(operation, kind=IncidentKind.RECORD_MISMATCH, evidence=evidence)


def release_balance(attempt: Attempt) -> None:
    """Enqueue the next release of this balance once the attempt is closed or its transaction is known."""
    if attempt.closed_at or attempt.provider_transaction_id:
        enqueue_next(attempt.balance)


def _as_late_result(result: SendResult) -> SendResult:
    """Proof of no execution that arrives after the operation became `unknown` closes it as failed.

    It does not return to approved, since people have already seen that the outcome is unknown
    (`states.EDGES`).
    """
    if result.status != Status.APPROVED:
        return result
    return replace(result, status=Status.FAILED, action=Action.OPERATION_FAILED)


def _without_older_transaction(attempt: Attempt, result: SendResult) -> SendResult:
    """A response that names a transaction from before the request proves nothing: the list shows what became of it.

    One that belongs to another attempt is left to `claim_transaction`: it is reported as a contradiction.
    """
    named = result.transaction_id
    if not named or not was_listed_before(attempt, named):
        return result
    if Attempt.objects.filter(provider_transaction_id=named).exclude(pk=attempt.pk).exists():
        return result
    return replace(
        result,
        status=Status.UNKNOWN,
        outcome=Outcome.OPEN,
        action=Action.OPERATION_CONTRADICTED,
        response=coded(ResponseCode.ID_LISTED_BEFORE, transaction=named),
        transaction_id=None,
    )


def _contradicted(operation: Operation, result: SendResult) -> SendResult:
    """The response contained another attempt's transaction id: raise an incident; nothing is proven."""
    other = Attempt.objects.select_related("operation").get(provider_transaction_id=result.transaction_id)
    incidents.raise_incident(
        other.operation,
        kind=IncidentKind.ID_RECEIVED_FOR_ANOTHER,
        evidence={"transaction": result.transaction_id, "other": operation.reference},
    )
    return replace(
        result,
        status=Status.UNKNOWN,
        outcome=Outcome.OPEN,
        action=Action.OPERATION_CONTRADICTED,
        response=coded(
            ResponseCode.ID_OF_ANOTHER,
            transaction=result.transaction_id or "",
            operation=other.operation.reference,
        ),
    )


def _close_or_schedule(attempt: Attempt, result: SendResult) -> None:
    now = clock.now()
    is_open = result.outcome == Outcome.OPEN
    is_unclear = result.status == Status.UNKNOWN
    attempt.outcome, attempt.is_under_way = result.outcome, False
    attempt.responses = [result.response]
    attempt.response_status = result.http_status
    attempt.result = result.result
    attempt.closed_at = None if is_open else now
    attempt.next_check_at = None
    if is_open:
        attempt.next_check_at = now if is_unclear else next_check_time(attempt.started_at, now) or now
    attempt.save()


def _store_secret(operation: Operation, attempt: Attempt, result: SendResult) -> None:
    """Encrypt a secret that the provider shows only once, for the user who released the operation.

    Runs in the transaction that records the response.
    """
    viewer = attempt.released_by
    if result.secret is None or viewer is None or Secret.objects.filter(operation=operation).exists():
        return
    secret = Secret(operation=operation, viewer=viewer, encrypted_at=clock.now())
    secret.encrypt(result.secret.get_secret_value())
    secret.save(force_insert=True)


def _record_late(operation: Operation, attempt: Attempt, result: SendResult) -> None:
    """Keep a response that arrives late, and raise an incident if it contradicts the record.

    A recorded outcome is not changed. While there is none, a received transaction id replaces a matched one,
    and a rejection leads to review.
    """
    result = _without_older_transaction(attempt, result)
    on_record = recorded_outcome(attempt.number, attempt.outcome, attempt.provider_transaction_id)
    is_contradiction = _contradicts(attempt, result)
    if result.transaction_id and not (attempt.closed_at and attempt.provider_transaction_id):
        claim_transaction(
            attempt,
            result.transaction_id,
            id_received_at=clock.now(),
            instead_of=attempt.provider_transaction_id,
        )
    attempt.result = attempt.result or result.result
    attempt.responses = [*attempt.responses, result.response]
    attempt.response_status = result.http_status or attempt.response_status
    attempt.save(update_fields=["result", "responses", "response_status"])
    _store_secret(operation, attempt, result)
    _audit(Action.OPERATION_LATE_RESPONSE_RECORDED, operation, attempt, result)
    if is_contradiction:
        incidents.raise_incident(
            operation,
            kind=IncidentKind.LATE_RESPONSE,
            evidence={
                "responses": [result.response],
                "received_id": result.transaction_id,
                "on_record": on_record,
            },
        )
        _escalate(operation, attempt, result)


def _escalate(operation: Operation, attempt: Attempt, result: SendResult) -> None:
    """Send an operation to review if the provider rejected it although a transaction was matched to it.

    That transaction must belong to something else.
    """
    if operation.status != Status.PROCESSING or result.transaction_id:
        return
    attempt.next_check_at = None
    attempt.save(update_fields=["next_check_at"])
    transition(operation, Status.REVIEW)
    _audit(Action.OPERATION_ESCALATED, operation, attempt, result)


def _contradicts(attempt: Attempt, result: SendResult) -> bool:
    """Whether the response contradicts the record: executed or not, or another transaction id.

    Accepted first and failed later as a transaction is the ordinary course, not a contradiction.
    """
    known = attempt.provider_transaction_id
    if result.transaction_id and result.transaction_id != known and (known or attempt.closed_at):
        return True
    if attempt.outcome == Outcome.OPEN and not known:
        # the record claims neither execution nor failure yet
        return False
    if attempt.outcome in {Outcome.SUCCEEDED, Outcome.OPEN}:
        return result.status in {Status.APPROVED, Status.FAILED}
    return result.status == Status.SUCCEEDED or (result.status == Status.PROCESSING and known is None)


def _audit(action: Action, operation: Operation, attempt: Attempt, result: SendResult) -> None:
    audit.record(
        action,
        actor=None,
        target=operation,
        attempt=attempt.number,
        outcome=attempt.outcome,
        response=result.response,
        http_status=result.http_status,
        response_transaction_id=result.transaction_id,
        provider_transaction_id=attempt.provider_transaction_id,
        status=operation.status,
    )
