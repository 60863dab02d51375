"""Send several approved operations with one confirmation. Each is released, claimed, sent and audited on its own.

A worker creates the releases, because hundreds take longer than a request may. A one-time code that a person enters is
never stored here: the operations that it is for are released at once, and the others wait for the next code.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import DatabaseError, InterfaceError, transaction
from django.db.models import Case, Count, Q, Value, When
from django.db.models.functions import Now
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.accounts.roles import may_now
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import background, clock
from backoffice.core.encryption import SealState
from backoffice.core.gateway import provider_profile
from backoffice.core.leases import acquire_lease
from backoffice.operations import policy
from backoffice.operations.delivery.expected_wait import OPERATIONS_PER_CODE, release_lifetime
from backoffice.operations.delivery.release import OrderTerms, release_operation
from backoffice.operations.errors import (
    AccountRestrictedError,
    AdministratorsMissingError,
    AlreadyReleasedError,
    AlteredRecordError,
    BatchPausedError,
    OperationError,
    OtpMissingError,
    OtpUsedError,
    PaymentsPausedError,
    PermissionMissingError,
    SecondFactorStaleError,
)
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.batches import MAX_ROWS
from backoffice.operations.models.bulk_releases import (
    NOT_SENT,
    BulkRelease,
    BulkReleaseItem,
    BulkReleaseItemQuerySet,
    ItemState,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import RecordFault
from backoffice.operations.permissions import RELEASE
from backoffice.operations.refusals.codes import Refusal

logger = logging.getLogger(__name__)
RELEASE_MANY_TASK = "operations.release_many"
MAX_OPERATIONS = MAX_ROWS  # all operations of a batch
# How long after the second factor an order is carried out: thousands of releases take minutes.
ORDER_VALID = timedelta(minutes=30)
SHOWN_WITHIN = timedelta(days=7)  # how long the overview lists an unfinished bulk release
MOST_SHOWN = 5  # unfinished bulk releases on the overview
_AT_ONCE = 25  # releases, then the worker may send in between
# Each turn checks and counts the whole order, so a large one has more releases in each, not more turns.
_MOST_TURNS = 40
_TRIED_WITH_CODE = 4 * OPERATIONS_PER_CODE  # operations in one request, if most of them are refused
LEASE_DURATION = timedelta(seconds=30)  # longer than these take; another process continues after it

# They concern the whole bulk release and are temporary, so they are not recorded against one operation.
_STOPPING = (
    AccountRestrictedError,
    AdministratorsMissingError,
    OtpUsedError,
    PaymentsPausedError,
    PermissionMissingError,
    SecondFactorStaleError,
)


@transaction.atomic
def start_bulk_release(
    pk: UUID, operations: Sequence[Operation], *, actor: User, second_factor_at: datetime | None
) -> BulkRelease:
    """Order these approved operations, at most MAX_OPERATIONS, to be sent with the content that was shown.

    Idempotent: the form carries the id, so a second submission by the same person finds the first. Raises
    PermissionMissingError, AccountRestrictedError, AdministratorsMissingError and SecondFactorStaleError.
    """
    policy.check_permission(actor, RELEASE)
    now = clock.now()
    bulk_release, is_new = BulkRelease.objects.get_or_create(
        pk=pk,
        defaults={
            "released_by": actor,
            "created_at": now,
            "confirmed_at": now,
            "second_factor_at": second_factor_at or now,
            "is_pending": False,
        },
    )
    if bulk_release.released_by_id != actor.pk:
        raise PermissionMissingError
    if not is_new:
        return bulk_release
    BulkReleaseItem.objects.bulk_create(
        BulkReleaseItem(
            bulk_release=bulk_release, position=position, operation=operation, digest=operation.digest
        )
        for position, operation in enumerate(operations[:MAX_OPERATIONS], start=1)
    )
    _confirm(bulk_release, actor, second_factor_at)
    return bulk_release


@transaction.atomic
def continue_bulk_release(
    bulk_release: BulkRelease, *, actor: User, second_factor_at: datetime | None
) -> None:
    """Order what waits to be sent, such as after a pause or an expired release. Raises as `start_bulk_release`."""
    policy.check_permission(actor, RELEASE)
    _confirm(
        BulkRelease.objects.select_for_update(no_key=True).get(pk=bulk_release.pk), actor, second_factor_at
    )


def _confirm(bulk_release: BulkRelease, actor: User, second_factor_at: datetime | None) -> None:
    """Seal and audit the order, and have a worker carry it out."""
    policy.check_administrators()
    policy.check_second_factor(second_factor_at)
    if bulk_release.released_by_id != actor.pk or second_factor_at is None:
        raise PermissionMissingError
    bulk_release.second_factor_at, bulk_release.confirmed_at = second_factor_at, clock.now()
    bulk_release.is_pending, bulk_release.refusal = True, None
    bulk_release.make_seal()
    bulk_release.save()
    audit.record(
        Action.BULK_RELEASE_CONFIRMED,
        actor=actor,
        target=bulk_release,
        digest=bulk_release.items_digest(),
        operations=bulk_release.items.count(),
    )
    background.enqueue_on_commit(RELEASE_MANY_TASK, bulk_release.pk)


def release_with_code(
    bulk_release: BulkRelease, *, actor: User, second_factor_at: datetime | None, otp: SecretStr
) -> bool:
    """Release what waits for a one-time code, with this one: one operation, or `OPERATIONS_PER_CODE` if the provider
    takes a code several times. False if none was released.

    Raises what concerns every operation (`_STOPPING`) if none was released before.
    """
    most = 1 if provider_profile().otp_single_use else OPERATIONS_PER_CODE
    released = 0
    for item in waiting_for_code(bulk_release)[:_TRIED_WITH_CODE]:
        try:
            released += _release_one(item, actor, second_factor_at, otp=otp) is True
        except _STOPPING:
            if not released:
                raise
            break
        if released == most:
            break
    return released > 0


def release_pending(pk: UUID) -> None:
    """Release what an order covers and needs no one-time code, some at a time. Called by a worker, any number of times;
    one process at a time does it.

    An order without a valid seal, or that the audit log does not show, releases nothing and raises an incident. Why
    one operation was refused is recorded for it, and the others go on; what concerns them all, such as the age of the
    order, is recorded for the order and ends it, and the page offers to continue. After an unforeseen error of an
    operation the others go on too, and it keeps waiting; the order ends once nothing else can be released.
    """
    lease = acquire_lease(f"release:{pk.hex}", LEASE_DURATION)
    if lease is None:
        return
    with lease:
        is_more = _release_next(pk)
    if is_more:
        with transaction.atomic():
            background.enqueue_on_commit(RELEASE_MANY_TASK, pk)


def _release_next(pk: UUID) -> bool:
    """Release the next operations; returns whether others wait."""
    bulk_release = BulkRelease.objects.select_related("released_by").filter(pk=pk, is_pending=True).first()
    if bulk_release is None:
        return False
    at_once = max(_AT_ONCE, bulk_release.items.count() // _MOST_TURNS)
    waiting = list(waiting_without_code(bulk_release)[: at_once + 1])
    refusal: dict[str, str] | None = None
    try:
        _check_authentic(bulk_release)
        policy.check_second_factor(bulk_release.second_factor_at, within=ORDER_VALID)
        lifetime = release_lifetime(bulk_release.items.waiting().counts_to_release())
        terms = OrderTerms(lifetime, ORDER_VALID)
        results = [
            _release_one(item, bulk_release.released_by, bulk_release.second_factor_at, terms=terms)
            for item in waiting[:at_once]
        ]
        if None in results and (set(results) == {None} or len(waiting) <= at_once):
            waiting, refusal = [], OperationError(Refusal.INTERNAL_ERROR).refusal
    except (AlteredRecordError, *_STOPPING) as exc:
        logger.warning("The %s ended early: %s", bulk_release, exc)
        waiting, refusal = [], exc.refusal
    is_more = len(waiting) > at_once
    if not is_more:
        ended = BulkRelease.objects.filter(pk=pk, confirmed_at=bulk_release.confirmed_at)
        ended.update(is_pending=False, refusal=refusal)
    return is_more


def _check_authentic(bulk_release: BulkRelease) -> None:
    """Raises AlteredRecordError, with an incident, unless this person gave exactly this order."""
    entries = Entry.objects.filter(
        action=Action.BULK_RELEASE_CONFIRMED,
        target_type=BulkRelease._meta.label_lower,
        target_id=str(bulk_release.pk),
        actor=bulk_release.released_by_id,
    )
    digest = bulk_release.items_digest()
    is_logged = any(entry.detail_of("digest") == digest for entry in entries)
    if bulk_release.seal_state() == SealState.VALID and is_logged:
        return
    altered = AlteredRecordError(Refusal.SEAL_INVALID, [RecordFault.BULK_RELEASE])
    for item in bulk_release.items.select_related("operation")[:1]:
        incidents.raise_altered(item.operation, altered)
    raise altered


def waiting_for_code(bulk_release: BulkRelease) -> BulkReleaseItemQuerySet:
    """The items that can be released and for which a person has to enter the provider's one-time code, in order."""
    return bulk_release.items.waiting().in_no_paused_batch().filter(operation__kind__in=_kinds_with_code())


def waiting_without_code(bulk_release: BulkRelease) -> BulkReleaseItemQuerySet:
    """The items that can be released by a worker itself, in order."""
    return bulk_release.items.waiting().in_no_paused_batch().exclude(operation__kind__in=_kinds_with_code())


@dataclass(frozen=True)
class OpenBulkRelease:
    """A bulk release with rows of a batch to send, being sent or processing. `waiting` of them still need a release."""

    bulk_release: BulkRelease
    waiting: int


def unfinished_bulk_release(batch: Operation) -> OpenBulkRelease | None:
    """The newest with rows of this batch to send, being sent or processing; None if there is none. Two queries."""
    items = BulkReleaseItem.objects.filter(operation__batch_row__batch=batch)
    newest = items.moving().order_by("-bulk_release__created_at", "position")
    item = newest.select_related("bulk_release__released_by").first()
    if item is None:
        return None
    return OpenBulkRelease(item.bulk_release, items.filter(bulk_release=item.bulk_release).waiting().count())


@dataclass(frozen=True)
class UnsentBulkRelease:
    """A bulk release with operations still to be sent; `sent` of `total` are. Of the others, except those of paused
    batches, `waiting` still need a release, by a worker or by the person who started it, and `moving` are released or
    being sent.
    """

    pk: UUID
    created_at: datetime
    released_by_id: int
    released_by: str
    is_pending: bool
    total: int
    sent: int
    waiting: int
    waiting_without_code: int
    moving: int

    @property
    def is_sending(self) -> bool:
        """Whether it continues without anyone's input."""
        return self.is_pending or self.moving > 0

    @property
    def waits_for_code(self) -> bool:
        """Whether the next thing to do is to enter a one-time code."""
        return not self.is_pending and self.waiting > 0 and self.waiting_without_code == 0

    def waits_for(self, person: User) -> bool:
        """Whether this person, who began it, can continue it."""
        is_own = self.released_by_id == person.pk and may_now(person, RELEASE)
        return is_own and self.waiting > 0 and not self.is_pending


def items_to_send() -> BulkReleaseItemQuerySet:
    """The operations of the bulk releases of the last days that are still to be sent; not those of a paused batch."""
    lately = Q(bulk_release__created_at__gt=Now() - SHOWN_WITHIN)
    return BulkReleaseItem.objects.filter(lately).to_send().in_no_paused_batch()


def unsent_bulk_releases(person: User) -> list[UnsentBulkRelease]:
    """The bulk releases with operations still to be sent, at most MOST_SHOWN: this person's first, then the newest. One
    query.
    """
    unsent = BulkRelease.objects.filter(pk__in=items_to_send().values("bulk_release"))
    is_other = Case(When(released_by=person, then=Value(0)), default=Value(1))
    shown = unsent.order_by(is_other, "-created_at", "pk").values("pk")[:MOST_SHOWN]
    items = BulkReleaseItem.objects.filter(bulk_release__in=shown)
    is_free = Q(operation__batch_row__batch__batch__paused_at__isnull=True)
    is_waiting = is_free & Q(state=ItemState.WAITING)
    is_moving = is_free & Q(state__in=[ItemState.QUEUED, ItemState.SENDING])
    found = (
        items.with_state()
        .order_by("-bulk_release__created_at", "bulk_release")
        .values_list(
            "bulk_release",
            "bulk_release__created_at",
            "bulk_release__released_by",
            "bulk_release__released_by__full_name",
            "bulk_release__is_pending",
        )
        .annotate(
            total=Count("pk"),
            sent=Count("pk", filter=~Q(state__in=[*NOT_SENT, ItemState.SENDING])),
            waiting=Count("pk", filter=is_waiting),
            waiting_without_code=Count("pk", filter=is_waiting & ~Q(operation__kind__in=_kinds_with_code())),
            moving=Count("pk", filter=is_moving),
        )
    )
    return [UnsentBulkRelease(*row) for row in found]


def is_sent_by(found: OpenBulkRelease | None, person: User, to_send: int) -> bool:
    """Whether this bulk release sends all rows of the batch that can be sent, by a worker or by this person."""
    if found is None or found.waiting < to_send:
        return False
    return found.bulk_release.is_pending or found.bulk_release.released_by_id == person.pk


def _kinds_with_code() -> list[str]:
    return [kind.name for kind in KINDS.values() if kind.asks_for_otp]


def _release_one(
    item: BulkReleaseItem,
    actor: User,
    second_factor_at: datetime | None,
    *,
    otp: SecretStr | None = None,
    terms: OrderTerms | None = None,
) -> bool | None:
    """Whether the operation is released now; None after an unforeseen error, which is only logged."""
    try:
        release_operation(
            item.operation_id,
            actor=actor,
            digest=item.digest,
            second_factor_at=second_factor_at,
            otp=otp,
            terms=terms,
        )
    except _STOPPING:
        raise
    except (AlreadyReleasedError, BatchPausedError, OtpMissingError):
        return False  # not recorded: all of them are temporary, and a paused batch is left out until it is resumed
    except OperationError as exc:
        BulkReleaseItem.objects.filter(pk=item.pk).update(refusal=exc.refusal)
        return False
    except DatabaseError:
        logger.exception("The release of operation %s failed in the database", item.operation_id)
        return False
    except InterfaceError:
        raise  # the connection is gone, so no operation is the cause
    except Exception:
        # Any other: the operations behind this one must still be released. The cause may be common to all of them, such
        # as a file of keys that cannot be read, so it is recorded for none: all can be continued once it is mended.
        logger.exception("The release of operation %s failed", item.operation_id)
        return None
    return True
