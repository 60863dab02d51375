"""The people of each audience of `events`, from the roles and the operation as they are now."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from backoffice.accounts.models import User
from backoffice.accounts.roles import people_not_set_up, users_with_permission
from backoffice.audit.models import Entry, target_uuid
from backoffice.notifications.events import Audience
from backoffice.operations.approval import waiting
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import ACKNOWLEDGE, PROPOSE, VIEW
from backoffice.policies.delegations import Delegation

OPERATION, PERSON = Operation._meta.label_lower, User._meta.label_lower
DELEGATION = Delegation._meta.label_lower


@dataclass(frozen=True)
class Concerned:
    """What an event is about: the ids of who acted and of whom it concerns, and the operation."""

    actor: int | None = None
    subject: int | None = None
    operation: Operation | None = None
    named: frozenset[int] = frozenset()


class People:
    """Who has which rights, read once for many events, and the operations that these concern."""

    def __init__(self, operations: Iterable[UUID] = ()) -> None:
        ids = set(operations)
        found = Operation.objects.filter(pk__in=ids).select_related("preparer")
        found = found.prefetch_related("approvals__delegation", "attempts")
        self.operations = {operation.pk: operation for operation in found}
        self._deciders: dict[UUID, Collection[int]] = {}
        rows = BatchRow.objects.filter(operation__in=ids).select_related("batch")
        self.batches = {row.operation_id: row.batch for row in rows}  # by their rows

    @cached_property
    def responders(self) -> frozenset[int]:
        return _with_permission(ACKNOWLEDGE)

    @cached_property
    def administrators(self) -> frozenset[int]:
        return _with_permission(PROPOSE)

    @cached_property
    def everybody(self) -> frozenset[int]:
        return _with_permission(VIEW)

    @cached_property
    def known(self) -> frozenset[int]:
        """Everybody who has an account: a forged entry may name others."""
        return frozenset(User.objects.order_by().values_list("pk", flat=True))

    @cached_property
    def not_set_up(self) -> frozenset[int]:
        return frozenset(people_not_set_up().order_by().values_list("pk", flat=True))

    def concerned_by(self, entry: Entry) -> Concerned:
        """What an audit entry is about. A person who is not its target is its actor."""
        named = frozenset(entry.detail.get("notified", ()))
        if entry.target_type == OPERATION:
            key = target_uuid(entry.target_id)
            operation = self.operations.get(key) if key else None
            return Concerned(entry.actor_id, entry.actor_id, operation, named)
        if entry.target_type == DELEGATION:
            named = frozenset({entry.detail["person"], entry.detail["stand_in"]})
        subject = int(entry.target_id) if entry.target_type == PERSON else entry.actor_id
        return Concerned(entry.actor_id, subject, named=named)

    def notified(self, audience: Audience, concerned: Concerned) -> Collection[int]:
        """The ids of the people of this audience. Whoever has no authenticator yet is notified of the own account
        only.
        """
        found = _AUDIENCES[audience](self, concerned)
        if audience in _FROM_ENTRY:
            found = [pk for pk in found if pk in self.known]
        return found if audience in _OF_ONESELF else [pk for pk in found if pk not in self.not_set_up]

    def deciders(self, operation: Operation) -> Collection[int]:
        """Who can approve it, or release it, now; nobody if it does not wait for a decision any more."""
        if operation.pk not in self._deciders:
            self._deciders[operation.pk] = waiting.deciders(operation)
        return self._deciders[operation.pk]

    def owners(self, operation: Operation) -> set[int]:
        """Its preparer, and who released its last attempt, if anybody did."""
        last = max(operation.attempts.all(), key=lambda attempt: attempt.number, default=None)
        return {operation.preparer_id} | ({last.released_by_id} if last and last.released_by_id else set())


def operation_ids(entries: Iterable[Entry]) -> set[UUID]:
    """The operations that are the objects of these entries."""
    named = {target_uuid(entry.target_id) for entry in entries if entry.target_type == OPERATION}
    return {pk for pk in named if pk}


def _with_permission(permission: str) -> frozenset[int]:
    return frozenset(users_with_permission(permission).order_by().values_list("pk", flat=True))


def _deciders(people: People, concerned: Concerned) -> Collection[int]:
    operation = concerned.operation
    return people.deciders(operation) if operation else ()


def _owners(people: People, concerned: Concerned) -> Collection[int]:
    operation = concerned.operation
    return people.owners(operation) - {concerned.actor} if operation else ()


def _one(person: int | None) -> Collection[int]:
    return () if person is None else (person,)


_OF_ONESELF = frozenset({Audience.SUBJECT, Audience.ACTOR})
_FROM_ENTRY = frozenset({Audience.SUBJECT, Audience.NAMED})
_AUDIENCES: dict[Audience, Callable[[People, Concerned], Collection[int]]] = {
    Audience.DECIDERS: _deciders,
    Audience.OWNERS: _owners,
    Audience.RESPONDERS: lambda people, _: people.responders,
    Audience.ADMINISTRATORS: lambda people, _: people.administrators,
    Audience.EVERYBODY: lambda people, _: people.everybody,
    Audience.NAMED: lambda _, concerned: concerned.named,
    Audience.ACTOR: lambda _, concerned: _one(concerned.actor),
    Audience.SUBJECT: lambda _, concerned: _one(concerned.subject),
    Audience.OTHER_ADMINISTRATORS: lambda people, concerned: people.administrators - {concerned.subject},
    Audience.OTHER_RESPONDERS: lambda people, concerned: people.responders - {concerned.subject},
}
