"""Send: at most one request per approved operation, whatever is clicked, repeated, delayed or killed.

The order is the safeguard: wait for the balance; read a watermark; claim by compare-and-set and destroy the token in
one durable commit; make exactly one request with no transaction open; record what came back in a second commit. A
process that dies in between leaves a `sending` row, which is closed by what the service's list shows, and is never sent
again.
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

from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, fault_points, vault
from backoffice.core.gateway import gateway
from backoffice.ledger import selectors as ledger
from backoffice.operations import policy, turns
from backoffice.operations.blockers import Blocker
from backoffice.operations.errors import ContentChangedError, OperationError, Refusal, SeemsExecutedError
from backoffice.operations.kinds import MoneyKind, Receipt, content_of
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.oversight import IncidentKind
from backoffice.operations.pause import is_paused
from backoffice.operations.services import incidents
from backoffice.operations.services.looking import SKEW, ListMovesError, candidates
from backoffice.operations.services.moves import move
from backoffice.operations.services.recording import (
    Answer,
    answer_of,
    fill_in_result,
    record_answer,
)
from backoffice.operations.services.releasing import record_blocker, withdraw_release
from backoffice.operations.states import Status
from payments_gateway import GatewayError, NotSentError, writing_only_while

logger = logging.getLogger(__name__)
PATIENCE_AFTERWARDS = 1.0  # seconds for a read that only completes what is recorded
RECORD_AGAIN_AFTER = (
    0.1,
    0.5,
    2.0,
    5.0,
    10.0,
    *[20.0] * 30,
)  # seconds; ten minutes, since nobody tells it twice


@dataclass(frozen=True)
class Claim:
    """The right to make one request, won by one caller. It has to begin before `begin_by`."""

    attempt_id: int
    operation: Operation
    begin_by: datetime
    token: SecretStr | None


@dataclass(frozen=True)
class Preflight:
    """What was seen just before the claim: of the service, and of our own attempts at the same balance."""

    watermark: ledger.Watermark
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
    if release is None or is_paused() or not turns.has_come(release, clock.now()):
        return
    try:
        preflight = look_before(release)
        fault_points.reach("send.before_claim")
        claim = claim_operation(operation_id, preflight)
    except ListMovesError:
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
        record_blocker(operation_id, _slowness(release, preflight))
    else:
        fault_points.reach("send.claimed")
        connection.close()  # nothing is held during the call, and a database that fails over meanwhile is found again
        answer = make_request(claim)
        fault_points.reach("send.answered")
        _record(claim.attempt_id, answer)
        fault_points.reach("send.recorded")
        _fill_in(claim, answer)


def claim_operation(operation_id: UUID, preflight: Preflight) -> Claim | None:
    """Win the right to make one request, or None. Token gone, attempt open, status `sending`: all in one commit.

    Whoever holds the claim and dies leaves `sending`: nobody wins it again. None, too, while it is another's turn or
    sending is paused. Raises OperationError if content, countersignatures or people are not what they must be.
    """
    try:
        return _claim(operation_id, preflight)
    except IntegrityError:
        release = Release.objects.filter(operation=operation_id).first()
        if release is None or turns.has_come(release, clock.now()):
            raise
        return None  # another attempt at this balance was opened at the same moment: the unique index let one pass


@transaction.atomic(durable=True)
def _claim(operation_id: UUID, preflight: Preflight) -> Claim | None:
    operation = Operation.objects.get_locked(operation_id)
    release = Release.objects.select_related("released_by", "operation").filter(operation=operation).first()
    if operation.status != Status.APPROVED or release is None or not _may_go(release, preflight):
        return None
    policy.check_may_leave(operation, release.released_by)
    token = _open_token(release)
    deleted, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()
    if deleted != 1:
        return None
    attempt = _open_attempt(operation, release, preflight)
    move(operation, Status.SENDING)
    audit.record(
        Action.OPERATION_CLAIMED,
        actor=None,
        target=operation,
        digest=operation.digest,
        attempt=attempt.number,
        released_by=str(release.released_by),
    )
    begin_by = attempt.started_at + timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    return Claim(attempt.pk, operation, begin_by, token)


def make_request(claim: Claim) -> Answer:
    """Make the one request that a claim entitles to. No transaction is open here, and nothing here repeats it."""
    kind, payload = content_of(claim.operation)

    def send() -> Receipt:
        in_time = _check_may_still_go(claim)
        fault_points.reach("send.leaving")
        with writing_only_while(in_time):
            return kind.send(gateway(), payload, claim.token)

    return answer_of(send)


def look_before(release: Release) -> Preflight:
    """What the service shows right now.

    Raises GatewayError, ListMovesError, and OperationError if the content cannot be read or seems to be executed.
    """
    operation, newest_attempt = release.operation, turns.newest_attempt(release.balance)
    kind, payload = content_of(operation)
    if kind.is_sent_blindly:
        return Preflight(ledger.NOTHING_SEEN, newest_attempt, clock.now())
    first = operation.attempts.order_by("number").first()
    if first is not None and isinstance(kind, MoneyKind):
        _check_not_there(operation, first, kind, payload)
    watermark = ledger.watermark(operation.currency, lately=SKEW)
    alike = [
        record.transaction_id
        for record in watermark.lately
        if isinstance(kind, MoneyKind) and kind.recognises(payload, record)
    ]
    return Preflight(watermark, newest_attempt, clock.now(), tuple(alike))


def _check_not_there(operation: Operation, first: Attempt, kind: MoneyKind[Any], payload: Any) -> None:
    """Before a further attempt: raises SeemsExecutedError if the list shows what an earlier one may have caused."""
    found = candidates(operation, first, partial(kind.recognises, payload))
    if found:
        ids = [record.transaction_id for record in found]
        incidents.report(
            operation,
            kind=IncidentKind.EXECUTED_DESPITE_PROOF,
            evidence={"transactions": ids, "attempt": first.number, "answer": first.answer},
        )
        raise SeemsExecutedError(", ".join(ids))


def _may_go(release: Release, preflight: Preflight) -> bool:
    """Whether the release still stands, it is its turn, and nothing left this balance since a look just before."""
    now = clock.now()
    return (
        release.expires_at > now
        and now - preflight.at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)
        and not is_paused()
        and turns.has_come(release, now)
        and turns.newest_attempt(release.balance) == preflight.newest_attempt
    )


def _slowness(release: Release, preflight: Preflight) -> Blocker | None:
    """What kept a release whose turn it is from being claimed: the look had grown old. None where it is not that."""
    now = clock.now()
    is_fresh = now - preflight.at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    if is_fresh or is_paused() or not turns.has_come(release, now):
        return None
    return Blocker.DATABASE_SLOW


def _check_may_still_go(claim: Claim) -> Callable[[], bool]:
    """The last look at the database. Raises NotSentError if the time is over or sending was paused.

    A process that was frozen since the claim must not send what people have been told otherwise of by now. What comes
    back tells whether it is still time, for the client to ask with the connection ready.
    """
    try:
        in_time, paused = clock.until(claim.begin_by), is_paused()
    except (DatabaseError, InterfaceError) as exc:
        raise NotSentError("The database went away before sending began. Nothing was sent.") from exc
    finally:
        connection.close()
    if paused:
        raise NotSentError("Sending was paused before it began. Nothing was sent.")
    if not in_time():
        raise NotSentError("The time for sending had passed before it began. Nothing was sent.")
    return in_time


def _open_token(release: Release) -> SecretStr | None:
    if release.sealed_token is None:
        return None
    try:
        return SecretStr(vault.open_sealed(bytes(release.sealed_token), bound_to=release.bound_to))
    except vault.VaultError as exc:
        raise ContentChangedError(Refusal.CODE_OF_OTHER_CONTENT) from exc


def _open_attempt(operation: Operation, release: Release, preflight: Preflight) -> Attempt:
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


def _record(attempt_id: int, answer: Answer) -> None:
    """Write down the answer, which nobody will give a second time; a database that is away is waited for.

    What it does not take in any time is raised at once: the sweeper declares the outcome unknown, and it is looked up.
    """
    for pause in RECORD_AGAIN_AFTER:
        try:
            record_answer(attempt_id, answer)
        except (DataError, IntegrityError):
            raise
        except (DatabaseError, InterfaceError):  # away, busy, or read-only after a fail-over
            logger.exception("The answer of attempt %s is not recorded yet: %s", attempt_id, answer.message)
            connection.close()
            time.sleep(pause)
        else:
            return
    record_answer(attempt_id, answer)


def _fill_in(claim: Claim, answer: Answer) -> None:
    """Ask for what the answer left open of its result; what is not told now is told by a later read, or never."""
    if not answer.result or all(answer.result.values()):
        return
    kind, payload = content_of(claim.operation)
    try:
        told = kind.told_besides(gateway(deadline=PATIENCE_AFTERWARDS), payload)
    except GatewayError as exc:
        logger.info("%s: the result is not complete yet (%s)", claim.operation.reference, exc)
        return
    fill_in_result(claim.attempt_id, told)
