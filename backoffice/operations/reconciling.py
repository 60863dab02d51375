"""What reconciliation means: our operations held against the mirror of the service's transactions. Pure; reads nothing.

An operation that moves money is one record in the service's list, known by its id, which the attempt has from the
service's answer, from our reading of the list, or from two people. Its record counts whatever its status: what failed
was taken and comes back as a deposit. Of each such attempt:

* *matched*: the record says the same currency, amount, fee (where one was on record when it closed), end, and receiver
  where it tells one;
* *different*: it says something else, and `differences` says what and by how much. Two people who settled it signed
  the record as it stood, so nothing but money and the end is held against theirs;
* *missing there*: it is not in the mirror though a reading of the list that goes back a day, or for older ones the
  whole list, began an hour after the attempt had closed, and has ended; or it was there, and readings of the whole list
  found it gone;
* *too early to tell*: it is not in the mirror, or under way there and not here, and no such reading has ended yet.

What has no id is not looked for: of an open one nobody knows, and one that failed without an id was not executed.

Of each record that did not come in, is no attempt's, and is not from before our time (the first operation here):

* *too early to tell*: it may be that of an open attempt whose transaction the service has not named, though another
  may have been taken for it (same balance, amount and time; in that case while ours may come);
* *unknown to us*: nobody prepared it here. That is an alarm, whatever its status says, since somebody ordered it. A
  record that does not tell which way money went counts among these: better a question too many.

What came in needs nobody here: deposits, transfers of others, what a conversion received (a record of its own), and
what comes back of a failed withdrawal. None of them is judged; they are shown as having come from outside.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from backoffice.core.fields import normal_text
from backoffice.ledger.mirrored import Mirror, Transaction
from backoffice.operations.differences import Difference, DifferenceCode, MatchField, difference
from backoffice.operations.errors import UnreadableContentError
from backoffice.operations.kinds import MoneyKind, content_of
from backoffice.operations.models import Attempt
from backoffice.operations.reconciled import ReconciliationResult
from backoffice.operations.states import Outcome
from payments_gateway import TransactionRecord

GRACE = timedelta(hours=1)
ONE_DAY = timedelta(days=1)
INCOMING = "in"
_HELD_ALREADY = frozenset({MatchField.TYPE, MatchField.CURRENCY, MatchField.AMOUNT})
_OPPOSITE = {"fulfilled": "failed", "failed": "fulfilled"}


@dataclass(frozen=True)
class Judgement:
    """A verdict, and all that is kept with it."""

    verdict: ReconciliationResult
    occurred_at: datetime
    currency: str
    amount: Decimal
    fee: Decimal | None
    differences: list[Difference] = field(default_factory=list)

    @property
    def day(self) -> date:
        """The day of UTC on which it counts."""
        return self.occurred_at.astimezone(UTC).date()


def judged_attempt(attempt: Attempt, listed: Transaction | None, mirror: Mirror) -> Judgement | None:
    """What became of this attempt at the service, by the record of its id; None where there is none to look for.

    The mirror's state must be from before the record was looked for, lest it promises what was not there yet.
    """
    if not _moved_money(attempt):
        return None
    if listed is None:
        return _absent(attempt, mirror)
    differences = list(_differences(attempt, listed))
    verdict = ReconciliationResult.MISMATCHED if differences else ReconciliationResult.MATCHED
    if not differences and _has_no_end(attempt, listed):
        verdict = (
            ReconciliationResult.MISMATCHED
            if _is_read_since(attempt, mirror)
            else ReconciliationResult.PENDING
        )
        differences = [difference(DifferenceCode.END, here=_end_of(attempt), there=listed.status)]
    if listed.missing_since:
        verdict = ReconciliationResult.MISSING_AT_PROVIDER
        since = listed.missing_since.astimezone(UTC).isoformat(timespec="seconds")
        differences = [difference(DifferenceCode.NO_LONGER_LISTED, since=since)]
    return Judgement(verdict, listed.occurred_at, listed.currency, listed.amount, listed.fee, differences)


def judged_movement(
    listed: Transaction, begins_at: datetime | None, in_doubt: Iterable[Attempt]
) -> Judgement | None:
    """What a record is that no attempt of ours has; None where that is nothing to explain.

    `in_doubt` are the open attempts whose transaction the service has not named. They must be from after the record
    was read, and that no attempt has it from after those: so one that finds its own meanwhile is in one of the two.
    """
    if listed.direction == INCOMING or begins_at is None or listed.occurred_at < begins_at:
        return None
    verdict, differences = ReconciliationResult.UNRECOGNISED, list(_of_a_movement(listed))
    if meant := [attempt.operation.reference for attempt in in_doubt if _may_be(attempt, listed)]:
        verdict = ReconciliationResult.PENDING
        differences = [difference(DifferenceCode.MAY_BE_UNKNOWN_OPERATION, operations=meant)]
    return Judgement(verdict, listed.occurred_at, listed.currency, listed.amount, listed.fee, differences)


def _of_a_movement(listed: Transaction) -> Iterator[Difference]:
    """What is not usual of it. Its status stands here also because people are told again when it is another."""
    if not listed.direction:
        yield difference(DifferenceCode.DIRECTION_NOT_PROVIDED)
    if listed.status != "fulfilled":
        yield difference(DifferenceCode.STATUS, there=listed.status)


def _moved_money(attempt: Attempt) -> bool:
    """Whether it has a transaction, or must have had one."""
    is_done = attempt.balance is not None and attempt.outcome == Outcome.SUCCEEDED
    return attempt.service_transaction_id is not None or is_done


def _absent(attempt: Attempt, mirror: Mirror) -> Judgement:
    operation, is_sure = attempt.operation, _is_read_since(attempt, mirror)
    verdict = ReconciliationResult.MISSING_AT_PROVIDER if is_sure else ReconciliationResult.PENDING
    differences = [] if is_sure else [difference(DifferenceCode.NOT_READ_FAR_ENOUGH)]
    amount = operation.amount or Decimal(0)
    return Judgement(verdict, attempt.started_at, operation.currency, amount, attempt.fee, differences)


def _is_read_since(attempt: Attempt, mirror: Mirror) -> bool:
    """Whether the list was read, as far back as the attempt's transaction can stand, long after the attempt closed."""
    if attempt.closed_at is None or mirror.loaded_at is None or mirror.day_at is None:
        return False
    if mirror.day_at < attempt.closed_at + GRACE:
        return False
    if attempt.sought_from >= mirror.day_at - ONE_DAY:
        return True
    return mirror.whole_begun_at is not None and mirror.whole_begun_at >= attempt.closed_at + GRACE


def _has_no_end(attempt: Attempt, listed: Transaction) -> bool:
    """Whether it ended here, and the record has a word that is no end: perhaps from before, until it was read again."""
    is_settled_by_people = attempt.resolution_id is not None  # they signed what the word means
    return attempt.closed_at is not None and not is_settled_by_people and listed.status not in _OPPOSITE


def _end_of(attempt: Attempt) -> str:
    return "fulfilled" if attempt.outcome == Outcome.SUCCEEDED else "failed"


def _differences(attempt: Attempt, listed: Transaction) -> Iterator[Difference]:
    operation = attempt.operation
    if listed.currency != operation.currency:
        yield difference(DifferenceCode.CURRENCY, here=operation.currency, there=listed.currency)
    elif operation.amount is not None and listed.amount != operation.amount:
        yield _numbers(DifferenceCode.AMOUNT, operation.amount, listed.amount, listed.currency)
    if attempt.fee is not None and (listed.fee or Decimal(0)) != attempt.fee:
        yield _numbers(DifferenceCode.FEE, attempt.fee, listed.fee or Decimal(0), listed.currency)
    end = _end_of(attempt)
    if attempt.closed_at is not None and listed.status == _OPPOSITE[end]:
        yield difference(DifferenceCode.END, here=end, there=listed.status)
    if not attempt.resolution_id:
        yield from _receivers(attempt, listed)


def _receivers(attempt: Attempt, listed: Transaction) -> Iterator[Difference]:
    """Where the record tells of somebody else than was signed; the other traits are held against each other above."""
    try:
        kind, payload = content_of(attempt.operation)
    except UnreadableContentError:
        return
    if not isinstance(kind, MoneyKind):
        return
    told = {name: getattr(listed, name) for name in TransactionRecord.model_fields if hasattr(listed, name)}
    for trait in kind.traits(payload, TransactionRecord.model_construct(**told)):
        if trait.fits is False and trait.field not in _HELD_ALREADY:
            name = trait.field.value
            yield difference(DifferenceCode.FIELD, field=name, here=trait.ours, there=trait.theirs)


def _numbers(code: DifferenceCode, here: Decimal, there: Decimal, currency: str) -> Difference:
    return difference(code, here=normal_text(here), there=normal_text(there), currency=currency)


def _may_be(attempt: Attempt, listed: Transaction) -> bool:
    return (
        attempt.balance == listed.currency
        and attempt.operation.amount == listed.amount
        and attempt.sought_from <= listed.occurred_at <= attempt.sought_until
        and attempt.is_new_since(listed.transaction_id)
        and attempt.started_at <= listed.first_seen_at
    )
