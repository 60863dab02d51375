"""Checkpoints: the signed head of the audit log, kept outside the database and compared with the log.

Whoever has the whole database can rewrite the log with its head, but can neither sign a head nor change what is
stored elsewhere. A checkpoint is one line of JSON: `version`, `position` and `hash` of the newest entry, `at`, the
id of the `key`, and the Ed25519 `signature` of the canonical form of the other members (see `canonical`).
"""

import base64
import binascii
import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.checks import CheckMessage, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, transaction
from django.db.models import OuterRef, QuerySet, Subquery, TextChoices
from django.utils.translation import pgettext_lazy

from backoffice.audit.actions import Action
from backoffice.audit.canonical import AuditError, canonical_json, canonical_time, storable_text
from backoffice.audit.destinations import DestinationError, destination_at, problem_sentence
from backoffice.audit.log import record
from backoffice.audit.models import CheckpointDestination, Entry, LastVerification
from backoffice.audit.verification import (
    ChainFault,
    ChainVerification,
    FaultCode,
    fault_sentence,
    verify_chain,
)
from backoffice.core import background, clock
from backoffice.core.database.queries import batched
from backoffice.core.encryption import parse_keys
from backoffice.core.leases import acquire_lease
from backoffice.core.web.formatting import in_words

logger = logging.getLogger(__name__)

VERSION = "v1"
INTERVAL = timedelta(minutes=1)
LEASE_DURATION = timedelta(minutes=3)  # how long a round may take before another process begins the next
OVERDUE_AFTER = timedelta(hours=1)
VERIFICATION_INTERVAL = timedelta(days=1)
VERIFICATION_LEASE = timedelta(hours=1)
_COMPARED_AT_ONCE = 500
_KEYS_SETTING = "COUNTERSIGN_AUDIT_CHECKPOINT_KEYS"


class UnreadableCheckpointError(Exception):
    """The line is no checkpoint, or its key is not configured."""


class CheckpointKeyError(UnreadableCheckpointError):
    """The line is a checkpoint of a key that is not configured, so it cannot be verified."""

    def __init__(self, position: int, key: str) -> None:
        super().__init__(position, key)
        self.position, self.key = position, storable_text(key)[:100]


@dataclass(frozen=True)
class Checkpoint:
    """Position and hash of the newest entry at a time, signed."""

    position: int
    hash: str
    at: str
    key: str
    signature: str = ""

    @property
    def signed(self) -> bytes:
        """The bytes that the signature covers."""
        return canonical_json({name: value for name, value in self._members().items() if name != "signature"})

    @property
    def line(self) -> bytes:
        """The checkpoint as one line of JSON, without the line feed."""
        return canonical_json(self._members())

    def _members(self) -> dict[str, object]:
        return {"version": VERSION, **asdict(self)}

    @property
    def is_authentic(self) -> bool:
        """Whether it was signed with the configured key that it names."""
        return self._is_signed_by(_signing_keys()[self.key].public_key())

    def is_authentic_by(self, public_keys: Mapping[str, str]) -> bool:
        """Whether it was signed with the key that it names: one of these, in base64 by id."""
        try:
            raw = base64.b64decode(public_keys[self.key], validate=True)
            return self._is_signed_by(Ed25519PublicKey.from_public_bytes(raw))
        except ValueError:
            return False

    def _is_signed_by(self, public_key: Ed25519PublicKey) -> bool:
        try:
            public_key.verify(base64.b64decode(self.signature, validate=True), self.signed)
        except (InvalidSignature, binascii.Error, ValueError):
            return False
        return True


def sign(position: int, hash_: str, at: datetime) -> Checkpoint:
    """The checkpoint of this head, signed with the newest key. Raises ImproperlyConfigured without a key."""
    key_id, key = next(iter(_signing_keys().items()))
    unsigned = Checkpoint(position, hash_, canonical_time(at), key_id)
    return replace(unsigned, signature=base64.b64encode(key.sign(unsigned.signed)).decode())


def sign_content(content: bytes) -> tuple[str, str]:
    """The id of the newest key, and its Ed25519 signature of these bytes in base64. Raises ImproperlyConfigured."""
    key_id, key = next(iter(_signing_keys().items()))
    return key_id, base64.b64encode(key.sign(content)).decode()


def parse_checkpoint(line: bytes, key_ids: Collection[str] | None = None) -> Checkpoint:
    """The checkpoint in this line, which may have the header of a syslog message before it.

    Its signature is not verified. `key_ids` are those of the keys that are known; None: the configured ones. Raises
    UnreadableCheckpointError, CheckpointKeyError, and ImproperlyConfigured if no key is configured.
    """
    start = line.find(b"{")
    try:
        members = json.loads(line[max(start, 0) :])
        found = Checkpoint(
            *(members["position"], members["hash"], members["at"], members["key"], members["signature"])
        )
    except (ValueError, LookupError, TypeError, RecursionError) as exc:
        raise UnreadableCheckpointError from exc
    texts = (found.hash, found.at, found.key, found.signature)
    if not all(isinstance(text, str) for text in texts) or members.get("version") != VERSION:
        raise UnreadableCheckpointError
    if type(found.position) is not int or not 0 < found.position < 2**63:
        raise UnreadableCheckpointError
    if found.key not in (_signing_keys() if key_ids is None else key_ids):
        raise CheckpointKeyError(found.position, found.key)
    return found


# Keys and configuration


def public_keys() -> dict[str, str]:
    """The public key of each configured signing key, in base64, by its id, newest first."""
    if not settings.AUDIT_CHECKPOINT_KEYS:
        return {}
    return {
        key_id: base64.b64encode(key.public_key().public_bytes_raw()).decode()
        for key_id, key in _signing_keys().items()
    }


def _signing_keys() -> dict[str, Ed25519PrivateKey]:
    return _parsed_keys(tuple(settings.AUDIT_CHECKPOINT_KEYS))


@cache
def _parsed_keys(configured: tuple[str, ...]) -> dict[str, Ed25519PrivateKey]:
    keys = parse_keys(configured, setting=_KEYS_SETTING)
    return {key_id: Ed25519PrivateKey.from_private_bytes(raw) for key_id, raw in keys.items()}


def check_configuration() -> None:
    """Raises ImproperlyConfigured if an address or a key cannot be used, or if there are addresses and no key."""
    addresses = settings.AUDIT_CHECKPOINT_DESTINATIONS
    for address in addresses:
        destination_at(address)
    if len(set(addresses)) != len(addresses):
        raise ImproperlyConfigured("COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS: an address is listed twice")
    if addresses or settings.AUDIT_CHECKPOINT_KEYS:
        _signing_keys()


@register(deploy=True)
def head_is_kept_elsewhere(**_of_django: Any) -> Iterable[CheckMessage]:
    """Django check: the head of the log is stored outside the database. Otherwise a rewritten log goes unnoticed."""
    if settings.AUDIT_CHECKPOINT_DESTINATIONS:
        return []
    return [
        Warning(
            "COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS is not set: anyone who can write to the database can rewrite "
            "the audit log unnoticed.",
            hint="Name at least one place outside the database, such as an append-only file on another volume.",
            id="audit.W001",
        )
    ]


@register(deploy=True)
def files_are_on_another_volume(**_of_django: Any) -> Iterable[CheckMessage]:
    """Django check: no file of checkpoints is in the data folder, with which it would be lost or restored."""
    if settings.ENVIRONMENT == "sandbox":
        return
    for address in settings.AUDIT_CHECKPOINT_DESTINATIONS:
        parts = urlsplit(address)
        if parts.scheme == "file" and Path(parts.path).resolve().is_relative_to(settings.DATA_DIR.resolve()):
            yield Warning(
                f"The checkpoints at {address} are in the data folder: both may be lost or rewritten together.",
                hint="Name a file on another volume in COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS, and move this one "
                "there: docs/operator/deploy.md, Folders.",
                id="audit.W002",
            )


# Comparison with the log


@dataclass
class Comparison:
    """The checkpoints of one destination, compared with the log."""

    address: str
    is_readable: bool = True  # False for a destination that cannot be read back
    compared: int = 0
    unreadable: int = 0  # lines that are no checkpoint or name a key that is not configured
    newest: int = 0  # the position of the newest checkpoint
    unknown_key: tuple[int, str] = (0, "")  # of the newest one whose key is not configured: position and key
    fault: ChainFault | None = None
    problem: Mapping[str, Any] = field(default_factory=dict)

    @property
    def problem_sentence(self) -> str:
        return problem_sentence(self.problem)


def compare_with_log(lines: Iterable[bytes], address: str) -> Comparison:
    """Compare each checkpoint with the entry at its position; the first contradiction is the fault.

    The log only grows, so what was read before this call must be in it. Raises ImproperlyConfigured if no key is
    configured, and what reading the lines raises.
    """
    found = Comparison(address)
    for batch in batched(lines, _COMPARED_AT_ONCE):
        checkpoints = list(_readable_checkpoints(batch, found))
        found.unreadable += len([line for line in batch if line.strip()]) - len(checkpoints)
        found.compared += len(checkpoints)
        found.newest = max([found.newest, *(one.position for one in checkpoints if one.is_authentic)])
        found.fault = found.fault or _first_fault(checkpoints, address)
    return found


def _readable_checkpoints(lines: Iterable[bytes], found: Comparison) -> Iterator[Checkpoint]:
    for line in lines:
        try:
            yield parse_checkpoint(line)
        except CheckpointKeyError as exc:
            found.unknown_key = max(found.unknown_key, (exc.position, exc.key))
        except UnreadableCheckpointError:
            continue


def _first_fault(checkpoints: list[Checkpoint], address: str) -> ChainFault | None:
    positions = [checkpoint.position for checkpoint in checkpoints]
    stored = dict(Entry.objects.filter(position__in=positions).values_list("position", "hash"))
    for checkpoint in checkpoints:
        if not checkpoint.is_authentic:
            return ChainFault(checkpoint.position, FaultCode.CHECKPOINT_FORGED, destination=address)
        if stored.get(checkpoint.position) != checkpoint.hash:
            return _contradiction(checkpoint.position, address)
    return None


def _contradiction(position: int, address: str) -> ChainFault:
    newest = Entry.objects.order_by("-position").values_list("position", flat=True).first() or 0
    if newest < position:
        return ChainFault(position, FaultCode.BEFORE_CHECKPOINT, other=newest, destination=address)
    return ChainFault(position, FaultCode.OTHER_AT_CHECKPOINT, destination=address)


# Delivery


def deliver_checkpoints_due() -> int:
    """Deliver the head of the log to each destination that lacks it, at most once a minute; returns how many got it.

    May be called at any time by several processes. A destination whose newest checkpoints contradict the log, or
    cannot be read, gets no further one: a rewritten log must not be confirmed by a new signature.
    """
    if not settings.AUDIT_CHECKPOINT_DESTINATIONS:
        return 0
    began = clock.now()
    lease = acquire_lease("checkpoints", LEASE_DURATION)
    if lease is None:
        return 0
    try:
        return sum(map(_deliver, settings.AUDIT_CHECKPOINT_DESTINATIONS))
    except background.StopRequestedError:
        return 0
    finally:
        lease.release(free_at=began + INTERVAL)


def _deliver(address: str) -> bool:
    row = _row_of(address)
    try:
        changes = _delivered(row)
    except DestinationError as exc:
        if exc.detail != row.problem:
            sentence, cause = problem_sentence(exc.detail), exc.__cause__ or exc
            logger.warning("No checkpoint was delivered to %s: %s (%r)", address, sentence, cause)
        changes = {"problem": exc.detail, "failed_at": clock.now()}
    if fault := changes.get("fault"):
        logger.error("The audit log contradicts a checkpoint: %s", fault_sentence(fault))
    CheckpointDestination.objects.filter(pk=address).update(**changes)
    return "delivered_at" in changes


def _delivered(row: CheckpointDestination) -> dict[str, Any]:
    """Compare the newest checkpoints there with the log, then add the head if it moved; returns what to store.

    Raises DestinationError.
    """
    destination, now = destination_at(row.address), clock.now()
    lines = destination.newest_lines()
    found = Comparison(row.address) if lines is None else compare_with_log(lines, row.address)
    fault = found.fault or (_recorded_fault(row) if lines is None else _lost(row, found))
    compared: dict[str, Any] = {} if lines is None else {"compared_at": now}
    if fault:
        return {**compared, "fault": fault.detail}
    head = Entry.objects.order_by("-position").values_list("position", "hash").first()
    if head is None or head[0] <= row.position:
        return {**compared, "problem": {}}
    position, hash_ = head
    if position > found.newest:  # otherwise it was delivered before, and only the response was lost
        destination.append(sign(position, hash_, now).line)
    return {**compared, "problem": {}, "position": position, "hash": hash_, "delivered_at": clock.now()}


def _recorded_fault(row: CheckpointDestination) -> ChainFault | None:
    """Whether the log contradicts what was delivered, for a destination that cannot be read back."""
    if not row.position or Entry.objects.filter(position=row.position, hash=row.hash).exists():
        return None
    return _contradiction(row.position, row.address)


def _lost(row: CheckpointDestination, found: Comparison) -> ChainFault | None:
    if found.newest >= row.position:
        return None
    position, key = found.unknown_key
    if position >= row.position:
        return ChainFault(position, FaultCode.CHECKPOINT_KEY_UNKNOWN, destination=row.address, key=key)
    return ChainFault(row.position, FaultCode.CHECKPOINT_LOST, destination=row.address)


def _row_of(address: str) -> CheckpointDestination:
    return CheckpointDestination.objects.get_or_create(address=address, defaults={"since": clock.now()})[0]


def _rows_of(*addresses: str) -> QuerySet[CheckpointDestination]:
    """The stored rows, each with the time of the first entry that its destination lacks."""
    following = Entry.objects.filter(position=OuterRef("position") + 1)
    rows = CheckpointDestination.objects.filter(address__in=addresses)
    return rows.annotate(next_entry_at=Subquery(following.values("at")[:1]))


# Alarms, and what the page shows


class DeliveryStatus(TextChoices):
    """The state of the delivery to a destination."""

    CONTRADICTED = "contradicted", pgettext_lazy("checkpoint destination", "Contradicts the log")
    OVERDUE = "overdue", pgettext_lazy("checkpoint destination", "Overdue")
    FAILING = "failing", pgettext_lazy("checkpoint destination", "Failing")
    WAITING = "waiting", pgettext_lazy("checkpoint destination", "Not delivered yet")
    DELIVERED = "delivered", pgettext_lazy("checkpoint destination", "Delivered")


@dataclass(frozen=True)
class DestinationState:
    """A configured destination, and the state of the delivery to it."""

    row: CheckpointDestination
    status: DeliveryStatus

    @property
    def problem(self) -> str:
        """Why it last failed; empty after a success."""
        return in_words(problem_sentence, self.row.problem)

    @property
    def fault(self) -> str:
        """The checkpoint there that contradicts the log; empty if there is none."""
        return in_words(fault_sentence, self.row.fault) if self.row.fault else ""


def destination_states(now: datetime) -> list[DestinationState]:
    """Every configured destination, in the order of the configuration. One query."""
    addresses = settings.AUDIT_CHECKPOINT_DESTINATIONS
    rows = {row.address: row for row in _rows_of(*addresses)}
    used = [rows.get(address) or CheckpointDestination(address=address, since=now) for address in addresses]
    return [DestinationState(row, _status(row, now)) for row in used]


def _status(row: CheckpointDestination, now: datetime) -> DeliveryStatus:
    if row.fault:
        return DeliveryStatus.CONTRADICTED
    if _is_overdue(row, now):
        return DeliveryStatus.OVERDUE
    if row.problem:
        return DeliveryStatus.FAILING
    return DeliveryStatus.DELIVERED if row.delivered_at else DeliveryStatus.WAITING


def contradictions() -> list[str]:
    """The checkpoints that contradict the log, in words."""
    rows = _rows_of(*settings.AUDIT_CHECKPOINT_DESTINATIONS)
    return [fault_sentence(row.fault) for row in rows if row.fault]


def contradicting_destinations() -> dict[str, int]:
    """The destinations with a checkpoint of an entry that the log does not have, and the position of that entry.

    The log was cut off or rewritten, or the database was restored to an earlier moment.
    """
    addresses = settings.AUDIT_CHECKPOINT_DESTINATIONS
    rows = CheckpointDestination.objects.filter(address__in=addresses) if addresses else ()
    codes = {FaultCode.BEFORE_CHECKPOINT, FaultCode.OTHER_AT_CHECKPOINT}
    return {row.address: row.fault["position"] for row in rows if row.fault and row.fault["code"] in codes}


def overdue_destinations(now: datetime) -> list[CheckpointDestination]:
    """The configured destinations that lack an entry which is older than an hour."""
    rows = _rows_of(*settings.AUDIT_CHECKPOINT_DESTINATIONS)
    return [row for row in rows if _is_overdue(row, now)]


def _is_overdue(row: CheckpointDestination, now: datetime) -> bool:
    late = now - OVERDUE_AFTER
    next_entry_at: datetime | None = vars(row).get("next_entry_at")
    return next_entry_at is not None and max(next_entry_at, row.delivered_at or row.since) < late


# Verification of the whole log


@dataclass(frozen=True)
class LogVerification:
    """The result for the chain, and for the checkpoints at each destination."""

    chain: ChainVerification
    comparisons: list[Comparison]

    @property
    def faults(self) -> list[ChainFault]:
        found = [self.chain.fault, *(comparison.fault for comparison in self.comparisons)]
        return [fault for fault in found if fault]

    @property
    def is_intact(self) -> bool:
        """Whether the chain is consistent and agrees with every checkpoint that could be read."""
        return not self.faults

    def __str__(self) -> str:
        return "; ".join(map(str, self.faults)) or str(self.chain)

    @property
    def compared(self) -> int:
        return sum(comparison.compared for comparison in self.comparisons)


def verify_everything() -> LogVerification:
    """Verify the whole chain, compare it with every checkpoint that can be read back, and store the result."""
    # The checkpoints are read first: the log only grows, so all of them must be in it.
    comparisons = [_compare_all(address) for address in settings.AUDIT_CHECKPOINT_DESTINATIONS]
    chain = verify_chain()
    LastVerification.objects.update_or_create(
        pk=1,
        defaults={
            "at": clock.now(),
            "verified": chain.verified,
            "newest_hash": chain.newest_hash,
            "fault": chain.fault.detail if chain.fault else {},
        },
    )
    return LogVerification(chain, comparisons)


def verify_log(*, actor: AbstractBaseUser | None) -> LogVerification:
    """Verify everything, and record who requested it and the result.

    The result is returned even if the damage prevents the entry; then it is written to the process log.
    """
    found = verify_everything()
    try:
        with transaction.atomic():
            record(
                Action.LOG_VERIFIED,
                actor=actor,
                target="the audit log",
                whole=found.is_intact,
                verified=found.chain.verified,
                newest_hash=found.chain.newest_hash,
                checkpoints=found.compared,
                fault=found.faults[0].detail if found.faults else {},
            )
    except (AuditError, DatabaseError):
        logger.exception(
            "The result of the audit log verification could not be recorded in the log: %s", found
        )
    return found


def _compare_all(address: str) -> Comparison:
    """Compare every checkpoint that can be read back, and store the fault, or that there is none."""
    row = _row_of(address)
    try:
        lines = destination_at(address).all_lines()
        found = Comparison(address, is_readable=False) if lines is None else compare_with_log(lines, address)
    except DestinationError as exc:
        return Comparison(address, problem=exc.detail)
    found.fault = found.fault or (_lost(row, found) if found.is_readable else _recorded_fault(row))
    changes: dict[str, Any] = {"compared_at": clock.now()} if found.is_readable else {}
    CheckpointDestination.objects.filter(pk=address).update(
        fault=found.fault.detail if found.fault else {}, **changes
    )
    return found


def verify_log_due() -> int:
    """Verify the whole log if that was not done by this job for a day; 1 if this call did it."""
    began = clock.now()
    lease = acquire_lease("audit-verification", VERIFICATION_LEASE)
    if lease is None:
        return 0
    try:
        verify_log(actor=None)
    except background.StopRequestedError:
        lease.release()
        return 0
    lease.release(free_at=began + VERIFICATION_INTERVAL)
    return 1
