"""Release and send: at most one request per approved operation, whatever is clicked, repeated, delayed or killed.

The order is the safeguard: read a watermark; claim by compare-and-set and destroy the token in one durable commit;
make exactly one request with no transaction open; record what came back in a second commit. A process that dies in
between leaves a `sending` row, which only ever becomes `unknown`, and is closed by what the service's list shows.
"""

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.core import queue, vault
from backoffice.core.gateway import gateway
from backoffice.ledger import selectors as ledger
from backoffice.operations import policy
from backoffice.operations.errors import (
    AlreadyReleasedError,
    ContentChangedError,
    OperationError,
    TokenMissingError,
    WrongStatusError,
)
from backoffice.operations.kinds import KINDS, Receipt, content_of
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.services.deciding import add_approval
from backoffice.operations.services.moves import move, record_refusal, refusals_are_audited
from backoffice.operations.services.recording import Answer, answer_of, fill_in_result, record_answer
from backoffice.operations.states import Status
from payments_gateway import GatewayError, NotSentError

logger = logging.getLogger(__name__)
SEND_TASK = "operations.send"
PATIENCE_AFTERWARDS = 1.0  # seconds for a read that only completes what is recorded
RECORD_AGAIN_AFTER = (0.1, 0.5, 2.0, 5.0, 10.0, 20.0)  # seconds


@refusals_are_audited
@transaction.atomic
def release_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    token: SecretStr | None = None,
) -> Operation:
    """Give the word to send an approved operation; a worker sends it once this is committed.

    The service's token waits encrypted, bound to this content, for at most 90 seconds. Raises NotAllowedError,
    SelfApprovalError, WrongStatusError, ExpiredError, ContentChangedError, SecondFactorStaleError,
    TokenMissingError, AlreadyReleasedError.
    """
    return _release(operation_id, actor, digest, second_factor_at, token)


@refusals_are_audited
@transaction.atomic
def approve_and_release_operation(
    operation_id: UUID,
    *,
    actor: User,
    digest: str,
    second_factor_at: datetime | None,
    token: SecretStr | None = None,
    comment: str = "",
    confirmation: str = "",
) -> Operation:
    """Give the last countersignature and the word to send in one: both happen or neither.

    Raises as `approve_operation` and `release_operation`; WrongStatusError too if further people must countersign.
    """
    operation = add_approval(operation_id, actor, digest, second_factor_at, comment, confirmation)
    if operation.status != Status.APPROVED:
        raise WrongStatusError(
            "Another person must countersign before this can be sent. Choose “Approve” alone."
        )
    return _release(operation_id, actor, digest, second_factor_at, token)


def send_operation(operation_id: UUID) -> None:
    """Send a released operation, at most once, and record what came back.

    May be called any number of times, at once and by several processes. If the service cannot be read before the claim,
    nothing is sent, the release still stands, and the sweeper calls again while it lasts.
    """
    release = (
        Release.objects.select_related("operation")
        .filter(operation=operation_id, operation__status=Status.APPROVED)
        .first()
    )
    if release is None:
        return
    try:
        claim = claim_operation(operation_id, _watermark(release.operation))
    except GatewayError as exc:
        logger.warning(
            "%s is not sent yet: the service cannot be read (%s)", release.operation.reference, exc
        )
        return
    except OperationError as exc:
        _withdraw(release, exc)
        return
    if claim is not None:
        connection.close()  # nothing is held during the call, and a database that fails over meanwhile is found again
        answer = make_request(claim)
        _record(claim.attempt_id, answer)
        _fill_in(claim, answer)


@transaction.atomic
def lapse_release(operation_id: UUID) -> bool:
    """Destroy a token that waited too long; the operation stays approved. False if there was nothing to do."""
    return _lapse(Operation.objects.get_locked(operation_id))


@dataclass(frozen=True)
class Claim:
    """The right to make one request, won by one caller."""

    attempt_id: int
    operation: Operation
    deadline_at: datetime
    token: SecretStr | None


def _watermark(operation: Operation) -> ledger.Watermark:
    """What the service shows right now. Raises GatewayError, and OperationError if the content cannot be read."""
    kind, _ = content_of(operation)
    return ledger.NOTHING_SEEN if kind.is_sent_blindly else ledger.watermark(operation.currency)


def _release(
    operation_id: UUID, actor: User, digest: str, second_factor_at: datetime | None, token: SecretStr | None
) -> Operation:
    operation = Operation.objects.get_locked(operation_id)
    policy.check_may_release(actor, operation, digest=digest, second_factor_at=second_factor_at)
    _lapse(operation)
    if Release.objects.filter(operation=operation).exists():
        raise AlreadyReleasedError
    if KINDS[operation.kind].needs_token and not (token and token.get_secret_value().strip()):
        raise TokenMissingError
    release = Release(operation=operation, released_by=actor, released_at=timezone.now())
    release.expires_at = release.released_at + timedelta(seconds=settings.TOKEN_LIFETIME_SECONDS)
    if token is not None:
        release.sealed_token = vault.seal(token.get_secret_value().strip(), bound_to=release.bound_to)
    release.save(force_insert=True)
    audit.record(Action.OPERATION_RELEASED, actor=actor, target=operation, digest=digest)
    queue.ring(SEND_TASK, operation_id)
    return operation


@transaction.atomic(durable=True)
def claim_operation(operation_id: UUID, watermark: ledger.Watermark) -> Claim | None:
    """Win the right to make one request, or None. Token gone, attempt open, status `sending`: all in one commit.

    Whoever holds the claim and dies leaves `sending`, and in time `unknown`: nobody wins it again. Raises
    OperationError if content, countersignatures or people are not what they must be.
    """
    operation = Operation.objects.get_locked(operation_id)
    release = Release.objects.select_related("released_by", "operation").filter(operation=operation).first()
    if operation.status != Status.APPROVED or release is None or release.expires_at <= timezone.now():
        return None
    policy.check_may_leave(operation, release.released_by)
    token = _open_token(release)
    deleted, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()
    if deleted != 1:
        return None
    attempt = _open_attempt(operation, release.released_by, watermark)
    move(operation, Status.SENDING)
    audit.record(
        Action.OPERATION_CLAIMED,
        actor=None,
        target=operation,
        digest=operation.digest,
        attempt=attempt.number,
        released_by=str(release.released_by),
    )
    return Claim(attempt.pk, operation, attempt.deadline_at, token)


def _open_token(release: Release) -> SecretStr | None:
    if release.sealed_token is None:
        return None
    try:
        return SecretStr(vault.open_sealed(bytes(release.sealed_token), bound_to=release.bound_to))
    except vault.VaultError as exc:
        raise ContentChangedError("The token was not sealed for this content, so nothing was sent.") from exc


def _open_attempt(operation: Operation, releaser: User, watermark: ledger.Watermark) -> Attempt:
    now = timezone.now()
    return Attempt.objects.create(
        operation=operation,
        number=operation.attempts.count() + 1,
        released_by=releaser,
        digest=operation.digest,
        started_at=now,
        deadline_at=now + timedelta(seconds=settings.SEND_DEADLINE_SECONDS),
        watermark_transaction_id=watermark.transaction_id,
        watermark_balance=watermark.balance,
        watermark_service_time=watermark.service_time,
    )


def make_request(claim: Claim) -> Answer:
    """Make the one request that a claim entitles to. No transaction is open here, and nothing here repeats it."""
    kind, payload = content_of(claim.operation)

    def send() -> Receipt:
        if (
            timezone.now() >= claim.deadline_at
        ):  # frozen since the claim: people may have been told otherwise by now
            raise NotSentError("The time for sending had passed before it began. Nothing was sent.")
        return kind.send(gateway(), payload, claim.token)

    return answer_of(send)


def _record(attempt_id: int, answer: Answer) -> None:
    """Write down the answer, which nobody will give a second time; a database that is away is waited for."""
    for pause in RECORD_AGAIN_AFTER:
        try:
            record_answer(attempt_id, answer)
        except (OperationalError, InterfaceError):
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


def _lapse(operation: Operation) -> bool:
    lapsed, _ = Release.objects.filter(operation=operation, expires_at__lte=timezone.now()).delete()
    if lapsed:
        audit.record(Action.OPERATION_RELEASE_LAPSED, actor=None, target=operation)
    return bool(lapsed)


@transaction.atomic
def _withdraw(release: Release, reason: OperationError) -> None:
    """Take back exactly this release, which may not be sent, and say why."""
    Operation.objects.get_locked(release.operation_id)
    withdrawn, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()
    if withdrawn:
        record_refusal(release.operation_id, "send_operation", None, reason)
