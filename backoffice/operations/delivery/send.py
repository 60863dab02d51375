"""Send a released operation: at most one request, whatever is clicked twice, redelivered, delayed or killed.

The order is the safeguard: wait for the turn at the balance; read a watermark; claim by compare-and-set and delete the
one-time code in one durable commit; connect; commit that the request begins, and write it to the journal; make
exactly one request with no transaction open; record the response. A process that dies before the request begins
has sent nothing, and the operation returns to approved. One that dies later leaves a `sending` row, which is
closed by what the provider's list shows, and is never sent again.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError, connection, transaction
from django.utils.translation import gettext_noop
from pydantic import SecretStr

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock, encryption, fault_points
from backoffice.core.gateway import gateway
from backoffice.core.web.formatting import stored_error
from backoffice.core.web.request_context import about_operation
from backoffice.ledger import provider_list
from backoffice.operations import policy
from backoffice.operations.delivery import balance_queue, holder_names, journal, look_alikes, restore_check
from backoffice.operations.delivery import otp as one_time_codes
from backoffice.operations.delivery.record import (
    SendResult,
    complete_result,
    record_result,
    send_and_classify,
)
from backoffice.operations.delivery.release import record_blocker, withdraw_release
from backoffice.operations.errors import (
    AlteredRecordError,
    ContentChangedError,
    DatabaseRestoredError,
    ListTooLongError,
    OperationError,
)
from backoffice.operations.kinds.base import MoneyKind, SendReceipt
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.lifecycle.pause import is_pause_altered, pause_if_altered
from backoffice.operations.lifecycle.transitions import transition
from backoffice.operations.models.monitoring import is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker, RecordFault, responses_sentence
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from payments_gateway import (
    GatewayError,
    NotSentError,
    OtpRejectedError,
    OutcomeUnknownError,
    write_only_while,
)

logger = logging.getLogger(__name__)
PAUSED = gettext_noop("Payments were paused before sending began. Nothing was sent.")
CODE_USED = gettext_noop(
    "The provider responded with HTTP {status}: it had received this one-time code before. The code was made for this "
    "request alone, so a proxy may have sent the request twice, and it may have been executed."
)
DATABASE_GONE = gettext_noop("The database connection was lost before sending began. Nothing was sent.")
# How long the provider's list may be read before sending. Reading takes that long only if the mirror is far behind, so
# that transactions of days have to be read.
PREFLIGHT_SECONDS = 45.0
DETAILS_DEADLINE = 1.0  # seconds; for a read that only completes the recorded result
# Seconds; ten minutes in total, since the provider sends the response only once.
RECORD_RETRY_DELAYS = (
    0.1,
    0.5,
    2.0,
    5.0,
    10.0,
    *[20.0] * 30,
)


@dataclass(frozen=True)
class SendClaim:
    """The right to make one request, won by one caller. The request has to begin before `begin_by`."""

    attempt: Attempt
    operation: Operation
    begin_by: datetime
    otp: SecretStr | None
    otp_step: one_time_codes.ReservedStep | None = (
        None  # of a managed code, which is made right before the request
    )


@dataclass(frozen=True)
class PreflightRead:
    """What was read just before the claim: the provider's list, and the newest attempt at the balance."""

    watermark: provider_list.Watermark
    newest_attempt: int | None
    read_at: datetime
    # Ids of transactions already in the list that match the content of this operation.
    seen_ids: tuple[str, ...] = ()
    # Why the bank's name of the holder could not be read; empty if it is the approved one, or none is needed.
    name_not_checked: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadAhead:
    """A reading of the provider for the next operation, and the attempt before it.

    `is_beside` says that it began before the request of that attempt had ended: its transaction, and what it debits,
    may be missing from it.
    """

    attempt: Attempt
    reading: provider_list.NewestReading
    is_beside: bool

    def serves(self, operation: Operation, balance: str | None) -> bool:
        """Whether it is recent and shows all that could be mistaken for the transaction of this operation."""
        is_recent = clock.now() - self.reading.began_at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)
        is_of_balance = self.reading.currency == operation.currency == balance
        return is_recent and is_of_balance and not (self.is_beside and self.attempt.holds(operation.amount))


@dataclass
class SendingRun:
    """What a process keeps from one operation of a balance to the next."""

    memory: provider_list.ListMemory = field(default_factory=provider_list.ListMemory)
    is_in_turn: bool = False
    """Whether the operation is known to be next at its balance. The claim checks it again."""
    following: balance_queue.QueuedRelease | None = None
    """The operation that is expected to follow, so that the provider is read for it in advance."""
    ahead: ReadAhead | None = None

    def read_beside(self, attempt: Attempt) -> None:
        """Begin to read for the next operation while this attempt's request is made, if another amount follows.

        Their transactions cannot be mistaken for each other (`Attempt.holds`), and no other request began at this
        balance since the claim. The balance is not read: this request changes it meanwhile.
        """
        if self.following and not attempt.holds(self.following.amount):
            self._begin(attempt, is_beside=True)

    def read_ahead(self, attempt: Attempt) -> None:
        """Begin to read for the next operation, unless that has begun. The request of this attempt has ended, and no
        other one began since.
        """
        if self.following and self.ahead is None:
            self._begin(attempt, is_beside=False)

    def _begin(self, attempt: Attempt, *, is_beside: bool) -> None:
        """Does not raise if the database or the provider is unavailable: sending and recording do not depend on it."""
        if not attempt.balance:
            return
        try:
            reading = provider_list.begin_reading(attempt.balance, self.memory, with_balance=not is_beside)
            self.ahead = ReadAhead(attempt, reading, is_beside)
        except (DatabaseError, InterfaceError, GatewayError) as exc:
            logger.warning("The provider is not read ahead (%s)", type(exc).__name__)
            connection.close()

    def reading(
        self, operation: Operation, balance: str | None
    ) -> tuple[int | None, provider_list.NewestReading]:
        """The id of the newest attempt at this balance, and a recent reading that shows the transactions of all earlier
        requests that could be mistaken for this operation.
        """
        ahead, self.ahead = self.ahead, None
        if ahead is not None and ahead.serves(operation, balance):
            return ahead.attempt.pk, ahead.reading
        newest_attempt = balance_queue.newest_attempt_id(balance)
        return newest_attempt, provider_list.begin_reading(operation.currency)


def send_operation(operation_id: UUID, run: SendingRun | None = None) -> bool:
    """Send a released operation when its turn has come, at most once, and record the response. False if it was not
    claimed.

    Idempotent: may be called any number of times, by several processes at once. While another operation is
    ahead, payments are paused, or the provider cannot be read, nothing is sent and the release is kept; the
    sweeper calls again until it expires. `run` holds what was read for the operation before.
    """
    run = run or SendingRun()
    release = (
        Release.objects.select_related("operation")
        .filter(operation=operation_id, operation__status=Status.APPROVED)
        .first()
    )
    if (
        release is None
        or is_paused()
        or pause_if_altered()
        or not (run.is_in_turn or balance_queue.is_next(release, clock.recent()))
        or _waits_for_code(release)
    ):
        return False
    with about_operation(release.operation.reference):
        claim = _read_and_claim(release, run)
        if claim is not None:
            _send_claimed(claim, run)
    return claim is not None


def _read_and_claim(release: Release, run: SendingRun) -> SendClaim | None:
    """The claim, or None with the reason on record: a blocker of the release, or why it ended."""
    operation_id = release.pk
    try:
        restore_check.check_before_send(operation_id)
        preflight = preflight_read(release, run)
        fault_points.reach("send.before_claim")
        claim = claim_operation(operation_id, preflight)
        if claim is None:
            record_blocker(operation_id, _stale_preflight(release, preflight))
    except provider_list.UnstableListError:
        logger.warning(
            "%s was not sent: the provider's list kept changing. It is retried.", release.operation.reference
        )
        record_blocker(operation_id, Blocker.LIST_CHANGING)
    except GatewayError as exc:
        logger.warning(
            "%s was not sent: the provider cannot be read (%s). It is retried.",
            release.operation.reference,
            exc,
        )
        record_blocker(operation_id, Blocker.PROVIDER_UNREADABLE, **stored_error(exc, limit=250))
    except (journal.JournalError, one_time_codes.CodeNotReadyError) as exc:
        logger.warning("%s was not sent: %s It is retried.", release.operation.reference, exc)
        record_blocker(operation_id, exc.blocker, **exc.parameters)
    except (holder_names.FoundHolderError, look_alikes.FoundLookAlikesError) as exc:
        _stop_for_people(release, exc)
    except OperationError as exc:
        withdraw_release(release, exc)
    else:
        return claim
    return None


def _stop_for_people(
    release: Release, found: holder_names.FoundHolderError | look_alikes.FoundLookAlikesError
) -> None:
    """End the release until a person has compared what was found, and states that it may be sent."""
    if isinstance(found, holder_names.FoundHolderError):
        holder_names.stop_release(release, found)
    else:
        look_alikes.stop_release(release, found)


def _waits_for_code(release: Release) -> bool:
    """Whether a managed code is needed and none can be made now. The provider is not read meanwhile."""
    kind = KINDS.get(release.operation.kind)
    try:
        if kind is not None:
            one_time_codes.check_ready(kind)
    except one_time_codes.CodeNotReadyError as exc:
        record_blocker(release.pk, exc.blocker)
        return True
    return False


def _send_claimed(claim: SendClaim, run: SendingRun) -> None:
    """Make the request, and record the response in the journal and in the database."""
    fault_points.reach("send.claimed")
    run.read_beside(claim.attempt)
    result = make_request(claim)
    journal.write_answered(claim.attempt, result.outcome, result.transaction_id)
    run.read_ahead(claim.attempt)
    fault_points.reach("send.response_received")
    _record_with_retries(claim.attempt, result)
    fault_points.reach("send.recorded")
    _fetch_missing_details(claim, result)


def claim_operation(operation_id: UUID, preflight: PreflightRead) -> SendClaim | None:
    """Win the right to make one request, or None.

    One commit deletes the code, opens the attempt and sets the status to `sending`. If the holder of a claim
    dies, the operation stays `sending` and cannot be claimed again. Also None while another operation is
    ahead or payments are paused. Raises OperationError if the content, the approvals or the users'
    permissions are no longer valid, and CodeNotReadyError while no managed code can be made.
    """
    try:
        return _claim(operation_id, preflight)
    except IntegrityError:
        release = Release.objects.filter(operation=operation_id).first()
        if release is None or balance_queue.is_next(release, clock.now()):
            raise
        # another attempt at this balance was opened at the same moment: the unique indexes allow one
        return None


@transaction.atomic(durable=True)
def _claim(operation_id: UUID, preflight: PreflightRead) -> SendClaim | None:
    operation = Operation.objects.get_locked(operation_id)
    release = Release.objects.select_related("released_by", "operation").filter(operation=operation).first()
    now = clock.now()
    if operation.status != Status.APPROVED or release is None or not _may_be_claimed(release, preflight, now):
        return None
    recorded = audit.position()
    policy.check_may_send(operation, release, now)
    otp = _decrypt_otp(release)
    deleted, _ = Release.objects.filter(pk=release.pk, released_at=release.released_at).delete()
    if deleted != 1:
        return None
    attempt = _open_attempt(operation, release, preflight, now)
    transition(operation, Status.SENDING)
    claimed = audit.record(
        Action.OPERATION_CLAIMED,
        actor=None,
        target=operation,
        digest=operation.digest,
        attempt=attempt.number,
        released_by=str(release.released_by),
        **({"name_not_checked": preflight.name_not_checked} if preflight.name_not_checked else {}),
    )
    if claimed.position > recorded + 1:  # other entries were recorded since the check
        policy.check_may_still_send(operation, release)
    begin_by = _begin_by(release, attempt.started_at)
    # After the audit entry, as in every approval: two transactions that need both locks take them in one order.
    step = one_time_codes.reserve_step(read_content(operation)[0])
    return SendClaim(attempt, operation, begin_by, otp, step)


def make_request(claim: SendClaim) -> SendResult:
    """Make the one request of a claim. No transaction is open during the call, and it is never repeated."""
    kind, payload = read_content(claim.operation)

    def send() -> SendReceipt:
        start = RequestStart(claim.attempt, _check_may_still_send(claim))
        otp = one_time_codes.make_code(claim.otp_step) if claim.otp_step else claim.otp
        fault_points.reach("send.before_request")
        try:
            with write_only_while(start.may_write):
                return kind.send(gateway(), payload, otp)
        except NotSentError as exc:
            if start.refusal is None:
                raise
            raise start.refusal from exc
        except OtpRejectedError as exc:
            # A person may have used a typed code elsewhere. A managed code is made for this request alone.
            if claim.otp_step is None or not exc.is_used:
                raise
            raise OutcomeUnknownError.of(CODE_USED, exc.status, exc.body_excerpt) from exc

    return send_and_classify(send)


class RequestStart:
    """The beginning of one request: committed, and in the journal, when its connection is ready, before the first
    byte is written.

    A process that dies before this commit has provably sent nothing. One that is frozen before it and whose
    operation was returned to approved meanwhile cannot commit it, and so writes nothing.
    """

    def __init__(self, attempt: Attempt, in_time: Callable[[], bool]) -> None:
        self.refusal: NotSentError | None = None  # why the request must not begin
        self._attempt = attempt
        self._in_time = in_time
        self._is_committed = False

    def may_write(self) -> bool:
        """Whether bytes may be written now: the beginning is committed, and the time has not passed since."""
        if not self._is_committed and self.refusal is None and self._in_time():
            fault_points.reach("send.connected")
            self._commit()
        return self._is_committed and self._in_time()

    def _commit(self) -> None:
        """Commit the beginning, or set `refusal`. No database connection is held afterwards, so that a failover of the
        database during the call does no harm.
        """
        try:
            _replace_broken_connection()  # connecting to the provider may have taken seconds
            has_begun = begin_request(self._attempt)
            if has_begun:
                # Once more: it may have been sent elsewhere before a restore, and another process may have found that.
                database = restore_check.check_before_first_byte(self._attempt.operation_id)
                if is_paused():
                    self.refusal = NotSentError.of(PAUSED)
                    return
                journal.write_claimed(self._attempt, database)
            self._is_committed = has_begun
        except DatabaseRestoredError:
            self.refusal = NotSentError.of(
                gettext_noop("The database was restored before sending began. Nothing was sent.")
            )
        except (journal.JournalError, OSError) as exc:
            logger.error("Attempt %s is not sent: %s", self._attempt.pk, exc)  # noqa: TRY400
            self.refusal = NotSentError.of(
                gettext_noop("The journal of sent requests could not be written or read. Nothing was sent.")
            )
        except (DatabaseError, InterfaceError):
            logger.warning("Attempt %s: the database failed just before the request", self._attempt.pk)
            self.refusal = NotSentError.of(DATABASE_GONE)
        finally:
            connection.close()
        if self._is_committed:
            fault_points.reach("send.begun")
        elif self.refusal is None:
            self.refusal = NotSentError.of(gettext_noop("Sending did not begin in time. Nothing was sent."))


def _replace_broken_connection() -> None:
    if connection.connection is not None and not connection.is_usable():
        connection.close()


@transaction.atomic(durable=True)
def begin_request(attempt: Attempt) -> bool:
    """Record that the request begins; False if the attempt was closed meanwhile, or its time has passed.

    A compare-and-set on columns of the attempt only, so that it is evaluated against the row's current state.
    """
    now = clock.now()
    may_begin = Attempt.objects.same(attempt).filter(
        begun_at__isnull=True, closed_at__isnull=True, begin_by__gt=now
    )
    attempt.begun_at = now  # also if the commit seems to fail: it may have succeeded
    return may_begin.update(begun_at=now) == 1


def preflight_read(release: Release, run: SendingRun | None = None) -> PreflightRead:
    """Read the provider's list just before sending.

    Raises GatewayError, UnstableListError, and OperationError if the content is unreadable or seems to be
    executed already, from here or elsewhere, if reading takes longer than `PREFLIGHT_SECONDS`, or if the bank names
    another holder of the account than was approved.
    """
    operation, run = release.operation, run or SendingRun()
    kind, payload = read_content(operation)
    if kind.skips_preflight:
        newest_attempt = balance_queue.newest_attempt_id(release.balance)
        return PreflightRead(provider_list.EMPTY_WATERMARK, newest_attempt, clock.now())
    if not isinstance(kind, MoneyKind):
        newest_attempt, newest = run.reading(operation, release.balance)
        watermark = provider_list.read_watermark(newest, recent_period=Attempt.CLOCK_SKEW)
        return PreflightRead(watermark, newest_attempt, clock.now())
    name_not_checked = holder_names.check_unchanged(release, payload)
    fault_points.reach("send.name_resolved")
    first = operation.attempts.order_by("number").first()
    check_time = _time_limit(PREFLIGHT_SECONDS)
    if first is not None:
        look_alikes.check_not_executed(release, first, partial(kind.is_match, payload), check_time)
        run = SendingRun()  # its reading may have begun before that check
    newest_attempt, newest = run.reading(operation, release.balance)
    watermark = provider_list.read_watermark(
        newest,
        recent_period=Attempt.CLOCK_SKEW,
        recent_from=look_alikes.read_list_from(operation),
        before_request=check_time,
        memory=run.memory,
    )
    look_alikes.check_none_new(release, kind, payload, watermark)
    seen = [record.transaction_id for record in watermark.recent if kind.is_match(payload, record)]
    return PreflightRead(watermark, newest_attempt, clock.now(), tuple(seen), name_not_checked)


def _time_limit(seconds: float) -> Callable[[], None]:
    """A function that raises ListTooLongError once this time has passed."""
    until = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() >= until:
            raise ListTooLongError

    return check


def _may_be_claimed(release: Release, preflight: PreflightRead, now: datetime) -> bool:
    """Whether the release is valid and next in its queue, and no attempt was opened since a recent read."""
    return (
        release.expires_at > now
        and now - preflight.read_at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)
        and not is_paused()
        and not is_pause_altered()
        and balance_queue.is_next(release, now)
        and balance_queue.newest_attempt_id(release.balance) == preflight.newest_attempt
    )


def _stale_preflight(release: Release, preflight: PreflightRead) -> Blocker | None:
    """The blocker if only an outdated read kept the release from being claimed; None otherwise."""
    now = clock.now()
    is_fresh = now - preflight.read_at < timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    if is_fresh or is_paused() or not balance_queue.is_next(release, now):
        return None
    return Blocker.DATABASE_SLOW


def _check_may_still_send(claim: SendClaim) -> Callable[[], bool]:
    """The last check of the database before sending. Raises NotSentError if it is too late or paused.

    It stops a process that was frozen since the claim and whose operation has been handled otherwise
    meanwhile. The callable it returns answers whether it is still in time; the client calls it once its
    connection is ready.
    """
    try:
        in_time, paused = clock.deadline_checker(claim.begin_by), is_paused()
    except (DatabaseError, InterfaceError) as exc:
        connection.close()
        raise NotSentError.of(DATABASE_GONE) from exc
    if paused:
        raise NotSentError.of(PAUSED)
    if not in_time():
        raise NotSentError.of(
            gettext_noop("The time limit had passed before sending began. Nothing was sent.")
        )
    return in_time


def _decrypt_otp(release: Release) -> SecretStr | None:
    if release.encrypted_otp is None:
        return None
    try:
        return SecretStr(encryption.decrypt(bytes(release.encrypted_otp), bound_to=release.bound_to))
    except encryption.DecryptionError as exc:
        raise ContentChangedError(Refusal.OTP_OF_OTHER_CONTENT) from exc


def _open_attempt(operation: Operation, release: Release, preflight: PreflightRead, now: datetime) -> Attempt:
    number = operation.attempts.count() + 1
    if number != (release.attempt_number or number):
        raise AlteredRecordError(Refusal.LOG_MISMATCH, [RecordFault.LOGGED_RELEASE])
    watermark = preflight.watermark
    not_ours = dict.fromkeys([*preflight.seen_ids, *release.look_alikes])
    longest = settings.SEND_WITHIN_SECONDS + settings.SEND_DEADLINE_SECONDS
    return Attempt.objects.create(
        operation=operation,
        number=number,
        released_by=release.released_by,
        digest=operation.digest,
        balance=release.balance,
        amount=operation.amount if release.balance else None,
        is_under_way=True,
        started_at=now,
        begin_by=_begin_by(release, now),
        deadline_at=now + timedelta(seconds=longest),
        watermark_transaction_id=watermark.transaction_id,
        watermark_balance=watermark.balance,
        watermark_provider_time=watermark.provider_time,
        watermark_seen_ids=list(not_ours),
        name_not_checked=preflight.name_not_checked or None,
    )


def _begin_by(release: Release, now: datetime) -> datetime:
    """Until when the request may begin: not after the end of the one-time code that the release carries."""
    latest = now + timedelta(seconds=settings.SEND_WITHIN_SECONDS)
    return latest if release.encrypted_otp is None else min(latest, release.expires_at)


def _record_with_retries(attempt: Attempt, result: SendResult) -> None:
    """Record the response, and retry while the database is unavailable, since the provider sends it only once.

    Errors that waiting does not cure are raised at once; the sweeper then declares the outcome unknown and
    checks it.
    """
    for pause in RECORD_RETRY_DELAYS:
        try:
            record_result(attempt, result)
        except (DataError, IntegrityError):
            raise
        except (DatabaseError, InterfaceError):  # unavailable, busy, or read-only after a failover
            summary = responses_sentence([result.response])
            logger.exception(
                "The response to attempt %s is not recorded yet; retrying, do not stop this process: %s",
                attempt.pk,
                summary,
            )
            connection.close()
            time.sleep(pause)
        else:
            return
    record_result(attempt, result)


def _fetch_missing_details(claim: SendClaim, result: SendResult) -> None:
    """Read what the response left out of the result. If that fails, the values stay empty for now."""
    if not result.result or all(result.result.values()):
        return
    kind, payload = read_content(claim.operation)
    try:
        details = kind.fetch_details(gateway(deadline=DETAILS_DEADLINE), payload)
    except GatewayError as exc:
        logger.info("%s: details of the result could not be read yet (%s)", claim.operation.reference, exc)
        return
    complete_result(claim.attempt, details)
