"""Send a released operation: at most one request, whatever is clicked, repeated, delayed or killed.

The order is the safeguard: wait for the balance; read a watermark; claim by compare-and-set and delete the one-time
code in one durable commit; make exactly one request with no transaction open; record what came back in a second
commit. A process that dies in between leaves a `sending` row, which is closed by what the provider's list shows, and
is never sent again.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, connection, transaction
from pydantic import SecretStr

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, encryption, fault_points
from backoffice.core.gateway import gateway
from backoffice.ledger.transactions import provider_list
from backoffice.operations import policy
from backoffice.operations.delivery import balance_queue
from backoffice.operations.delivery.record import (
    SendResult,
    complete_result,
    record_result,
    send_and_classify,
)
from backoffice.operations.delivery.release import record_blocker, withdraw_release
from backoffice.operations.errors import ContentChangedError, OperationError, PossiblyExecutedError, Refusal
from backoffice.operations.kinds.base import MoneyKind, SendReceipt
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.matching import CLOCK_SKEW, UnstableListError, find_candidates
from backoffice.operations.models.monitoring import is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, IncidentKind
from backoffice.operations.states import Status
from payments_gateway import GatewayError, NotSentError, write_only_while

logger = logging.getLogger(__name__)
DETAILS_DEADLINE = 1.0  # seconds for a read that only completes what is recorded
RECORD_RETRY_DELAYS = (
    0.1,
    0.5,
    2.0,
    5.0,
    10.0,
    *[20.0] * 30,
)  # seconds; ten minutes, since nobody tells it twice


@dataclass(frozen=True)
class SendClaim:
    """The right to make one request, won by one caller. It has to begin before `begin_by`."""

    attempt_id: int
    operation: Operation
    begin_by: datetime
    token: SecretStr | None


@dataclass(frozen=True)
class PreflightRead:
    """What was seen just before the claim: of the service, and of our own attempts at the same balance."""

    watermark: provider_list.Watermark
    newest_attempt: int | None
    at: datetime
    lookalikes: tuple[
        str, ...
    ] = ()  # ids of what the service shows already, and what this could be taken for


def send_operation(operation_id: UUID) -> None:
    """Send a released operation when its turn has come, at most once, and record what came back.

    May be called any number of times, at once and by several processes. While it is not its turn, sending is paused, or
    the service cannot be read, nothing is sent, the release still stands, and the sweeper calls again while it lasts.
    """
    release = (
        Release.objects.select_related("operation")
        .filter(operation=operation_id, operation__status=Status.APPROVED)
        .first()
    )
    if release is None or is_paused() or not balance_queue.is_next(release, clock.now()):
        return
    try:
        preflight = preflight_read(release)
        fault_points.reach("send.before_claim")
        claim = claim_operation(operation_id, preflight)
    except UnstableListError:
        logger.warning("%s is not sent yet: the service's list keeps changing", release.operation.reference)
        record_blocker(operation_id, Blocker.LIST_CHANGING)
        return
    except GatewayError as exc:
        logger.warning(
            "%s is not sent yet: the service cannot be read (%s)", release.operation.reference, exc
        )
        record_blocker(operation_id, Blocker.PROVIDER_UNREADABLE, error=str(exc))
        return
    except OperationError as exc:
        withdraw_release(release, exc)
        return
    if claim is None:
        record_blocker(operation_id, _stale_preflight(release, preflight))
    else:
        fault_points.reach("send.claimed")
        connection.close()  # nothing is held during the call, and a database that fails over meanwhile is found again
        answer = make_request(claim)
        fault_points.reach("send.answered")
        _record_with_retries(claim.attempt_id, answer)
        fault_points.reach("send.recorded")
        _fetch_missing_details(claim, answer)


def claim_operation(operation_id: UUID, preflight: PreflightRead) -> SendClaim | None:
    """Win the right to make one request, or None. Token gone, attempt open, status `sending`: all in one commit.

    Whoever holds the claim and dies leaves `sending`: nobody wins it again. None, too, while it is another's turn or
    sending is paused. Raises OperationError if content, countersignatures or people are not what they must be.
    """
    try:
        return _claim(operation_id, preflight)
    except IntegrityError:
        release = Release.objects.filter(operation=operation_id).first()
        if release is None or balance_queue.is_next(release, clock.now()):
            raise
        return None  # another attempt at this balance was opened at the same moment: the unique index let one pass


@transaction.atomic(durable=True)
def _claim(operation_id: UUID, preflight: PreflightRead) -> SendClaim | None:
    operation = Operation.objects.get_locked(operation_id)
    release = Release.objects.select_related("released_by", "operation").filter(operation=operation).first()
    if operation.status != Status.APPROVED or release is None or not _may_be_claimed(release, preflight):
        return None
    policy.check_may_send(operation, release.released_by)
    token = _unseal_otp(release)
    deleted, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()
    if deleted != 1:
        return None
    attempt = _open_attempt(operation, release, preflight)
    transition(operation, Status.SENDING)
    audit.record(
        Action.OPERATION_CLAIMED,
        actor=None,
        target=operation,
        digest=operation.digest,
        attempt=attempt.number,
        released_by=str(release.released_by),
    )
    begin_by = attempt.started_at + timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    return SendClaim(attempt.pk, operation, begin_by, token)


def make_request(claim: SendClaim) -> SendResult:
    """Make the one request that a claim entitles to. No transaction is open here, and nothing here repeats it."""
    kind, payload = read_content(claim.operation)

    def send() -> SendReceipt:
        in_time = _check_may_still_send(claim)
        fault_points.reach("send.leaving")
        with write_only_while(in_time):
            return kind.send(gateway(), payload, claim.token)

    return send_and_classify(send)


def preflight_read(release: Release) -> PreflightRead:
    """What the service shows right now.

    Raises GatewayError, ListMovesError, and OperationError if the content cannot be read or seems to be executed.
    """
    operation, newest_attempt = release.operation, balance_queue.newest_attempt_id(release.balance)
    kind, payload = read_content(operation)
    if kind.is_sent_blindly:
        return PreflightRead(provider_list.EMPTY_WATERMARK, newest_attempt, clock.now())
    first = operation.attempts.order_by("number").first()
    if first is not None and isinstance(kind, MoneyKind):
        _check_not_executed(operation, first, kind, payload)
    watermark = provider_list.read_watermark(operation.currency, lately=CLOCK_SKEW)
    alike = [
        record.transaction_id
        for record in watermark.lately
        if isinstance(kind, MoneyKind) and kind.recognises(payload, record)
    ]
    return PreflightRead(watermark, newest_attempt, clock.now(), tuple(alike))


def _check_not_executed(operation: Operation, first: Attempt, kind: MoneyKind[Any], payload: Any) -> None:
    """Before a further attempt: raises SeemsExecutedError if the list shows what an earlier one may have caused."""
    found = find_candidates(operation, first, partial(kind.recognises, payload))
    if found:
        ids = [record.transaction_id for record in found]
        incidents.raise_incident(
            operation,
            kind=IncidentKind.EXECUTED_DESPITE_PROOF,
            evidence={"transactions": ids, "attempt": first.number, "answer": first.answer},
        )
        raise PossiblyExecutedError(", ".join(ids))


def _may_be_claimed(release: Release, preflight: PreflightRead) -> bool:
    """Whether the release still stands, it is its turn, and nothing left this balance since a look just before."""
    now = clock.now()
    return (
        release.expires_at > now
        and now - preflight.at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)
        and not is_paused()
        and balance_queue.is_next(release, now)
        and balance_queue.newest_attempt_id(release.balance) == preflight.newest_attempt
    )


def _stale_preflight(release: Release, preflight: PreflightRead) -> Blocker | None:
    """What kept a release whose turn it is from being claimed: the look had grown old. None where it is not that."""
    now = clock.now()
    is_fresh = now - preflight.at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    if is_fresh or is_paused() or not balance_queue.is_next(release, now):
        return None
    return Blocker.DATABASE_SLOW


def _check_may_still_send(claim: SendClaim) -> Callable[[], bool]:
    """The last look at the database. Raises NotSentError if the time is over or sending was paused.

    A process that was frozen since the claim must not send what people have been told otherwise of by now. What comes
    back tells whether it is still time, for the client to ask with the connection ready.
    """
    try:
        in_time, paused = clock.deadline_checker(claim.begin_by), is_paused()
    except (DatabaseError, InterfaceError) as exc:
        raise NotSentError("The database went away before sending began. Nothing was sent.") from exc
    finally:
        connection.close()
    if paused:
        raise NotSentError("Sending was paused before it began. Nothing was sent.")
    if not in_time():
        raise NotSentError("The time for sending had passed before it began. Nothing was sent.")
    return in_time


def _unseal_otp(release: Release) -> SecretStr | None:
    if release.sealed_token is None:
        return None
    try:
        return SecretStr(encryption.decrypt(bytes(release.sealed_token), bound_to=release.bound_to))
    except encryption.DecryptionError as exc:
        raise ContentChangedError(Refusal.CODE_OF_OTHER_CONTENT) from exc


def _open_attempt(operation: Operation, release: Release, preflight: PreflightRead) -> Attempt:
    now, watermark = clock.now(), preflight.watermark
    longest = settings.SEND_WITHIN_SECONDS + settings.SEND_DEADLINE_SECONDS
    return Attempt.objects.create(
        operation=operation,
        number=operation.attempts.count() + 1,
        released_by=release.released_by,
        digest=operation.digest,
        balance=release.balance,
        started_at=now,
        deadline_at=now + timedelta(seconds=longest),
        watermark_transaction_id=watermark.transaction_id,
        watermark_balance=watermark.balance,
        watermark_service_time=watermark.service_time,
        watermark_shown=list(preflight.lookalikes),
    )


def _record_with_retries(attempt_id: int, answer: SendResult) -> None:
    """Write down the answer, which nobody will give a second time; a database that is away is waited for.

    What it does not take in any time is raised at once: the sweeper declares the outcome unknown, and it is looked up.
    """
    for pause in RECORD_RETRY_DELAYS:
        try:
            record_result(attempt_id, answer)
        except (DataError, IntegrityError):
            raise
        except (DatabaseError, InterfaceError):  # away, busy, or read-only after a fail-over
            logger.exception("The answer of attempt %s is not recorded yet: %s", attempt_id, answer.message)
            connection.close()
            time.sleep(pause)
        else:
            return
    record_result(attempt_id, answer)


def _fetch_missing_details(claim: SendClaim, answer: SendResult) -> None:
    """Ask for what the answer left open of its result; what is not told now is told by a later read, or never."""
    if not answer.result or all(answer.result.values()):
        return
    kind, payload = read_content(claim.operation)
    try:
        told = kind.told_besides(gateway(deadline=DETAILS_DEADLINE), payload)
    except GatewayError as exc:
        logger.info("%s: the result is not complete yet (%s)", claim.operation.reference, exc)
        return
    complete_result(claim.attempt_id, told)
