"""What waits for whom: who can approve it at the level that is open now, or release it.

Most operations can be approved by everyone with the permission, which a query finds. The others are few: those of which
a level requires certain people, those prepared under another version of the policies, those whose approvals no longer
count, and those whose recipient is cooling. One query checks whether there are any; if so, a second one reads what the
policy evaluator needs, which then decides. There seldom are, so the queries without them are compiled once.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import (
    BigIntegerField,
    Case,
    CharField,
    Count,
    Exists,
    F,
    JSONField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Cast, Coalesce, Now

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import restriction_times
from backoffice.accounts.roles import may_now, users_with_permission
from backoffice.core import clock
from backoffice.core.cached_reads import cached_in_process
from backoffice.core.database.queries import (
    Argument,
    CompiledQuery,
    JoinedTexts,
    composed_once,
    split_texts,
)
from backoffice.operations import allow_list
from backoffice.operations.approval.approvers import approvers_of
from backoffice.operations.approval.progress import (
    affected_people,
    counting,
)
from backoffice.operations.approval.requirements import levels_as_prepared, remembered_levels
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.registry import (
    KINDS,
    approval_permission_for,
    kinds_approved_with,
    local_kinds,
)
from backoffice.operations.models.operations import Approval, Operation
from backoffice.operations.permissions import APPROVE, APPROVE_GOVERNANCE, RELEASE, VIEW
from backoffice.operations.selectors import IS_OPEN, visible_operations
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation, in_effect, leaves_of
from backoffice.policies.document import MOST_APPROVALS, Level, Levels, stored_levels
from backoffice.policies.evaluator import Leave, Person, capacity, progress
from backoffice.policies.models import PolicyVersion
from backoffice.policies.people import joined_groups, joined_roles, read_groups, read_people, read_roles

BADGE_SECONDS = 10.0
Row = TypeVar("Row")


@dataclass(frozen=True)
class WaitingOperations:
    """Which of the open operations of others a user can approve, and which release.

    A list has one line for all rows of a batch that can be released: the batch. All else is listed by itself.
    """

    to_approve: Q
    to_release: Q
    of_others: Q

    @property
    def all(self) -> Q:
        return (self.to_approve | self.to_release) & self.of_others

    @property
    def alone(self) -> Q:
        """What has a line of its own."""
        return (self.to_approve | (self.to_release & Q(batch_row__isnull=True))) & self.of_others

    @property
    def rows(self) -> Q:
        """What is listed as its batch."""
        return self.to_release & Q(batch_row__isnull=False) & self.of_others


@dataclass(frozen=True)
class Rights:
    """What a user may do now."""

    approve: bool
    approve_governance: bool
    release: bool

    @classmethod
    def of(cls, user: User) -> "Rights":
        return cls(*(may_now(user, name) for name in (APPROVE, APPROVE_GOVERNANCE, RELEASE)))


@dataclass(frozen=True)
class Evaluated:
    """Of the operations to evaluate: which the user can approve now, and which lack approvals, whoever gives them."""

    able: frozenset[UUID] = frozenset()
    lacking: frozenset[UUID] = frozenset()


def batches_of(rows: QuerySet[Operation]) -> Q:
    """The batches of which these operations are rows."""
    return Q(pk__in=rows.order_by().values("batch_row__batch"))


def operations_waiting_for(user: User) -> QuerySet[Operation]:
    """What this user can approve or release now, each row of a batch included."""
    return visible_operations(user).filter(is_waiting_for(user))


def waiting_count(user: User) -> int:
    """The number of lines in the list of what waits for this user, for the badge.

    What the evaluator decides may be `BADGE_SECONDS` old. One query, and those of `waiting_for` when that is older.
    """
    if not user.has_perm(VIEW):
        return 0
    evaluated = cached_in_process(f"waiting-{user.pk}", lambda: _evaluated(user), BADGE_SECONDS)
    found = WaitingFor(user, evaluated).find(_counts)
    return sum(counts["number"] - counts["as_rows"] + counts["batches"] for counts in found)


def _counts(waiting: WaitingOperations) -> QuerySet[Any, Any]:
    # All in one group, of which there is no row if nothing waits.
    found = Operation.objects.filter(waiting.all).order_by().values(group=Value(1))
    return found.annotate(
        number=Count("pk"),
        as_rows=Count("batch_row__batch", filter=waiting.to_release),
        batches=Count("batch_row__batch", filter=waiting.to_release, distinct=True),
    )


def is_waiting_for(user: User) -> Q:
    """Whether this user can approve it at the level that is open, or release it, now. Queries as `waiting_for`."""
    return waiting_for(user).operations.all


class WaitingFor:
    """What waits for one user: the conditions of it, and queries for it."""

    def __init__(self, user: User, evaluated: Evaluated) -> None:
        self._user, self._rights, self._evaluated = user, Rights.of(user), evaluated

    @cached_property
    def operations(self) -> WaitingOperations:
        """The conditions, to filter operations with."""
        return _waiting(self._rights, self._evaluated, self._user.pk, self._user.pk)

    def find(self, select: Callable[[WaitingOperations], QuerySet[Any, Row]], **values: object) -> list[Row]:
        """The rows of the query that this function makes of the conditions. One query.

        The function is called once for all users with the same rights, so it must depend on nothing else. What changes
        from one call to the next is an `Argument` in it, of which the value is given here.
        """
        is_usual = self._evaluated == Evaluated()
        query = (
            _usual_query(select, self._rights) if is_usual else _query(select, self._rights, self._evaluated)
        )
        return query.all(person=self._user.pk, **values)


@composed_once
def _usual_query(
    select: Callable[[WaitingOperations], QuerySet[Any, Row]], rights: Rights
) -> CompiledQuery[Row]:
    return _query(select, rights, Evaluated())


def _query(
    select: Callable[[WaitingOperations], QuerySet[Any, Row]], rights: Rights, evaluated: Evaluated
) -> CompiledQuery[Row]:
    person, in_content = Argument("person", BigIntegerField()), Argument("person", JSONField())
    return CompiledQuery(select(_waiting(rights, evaluated, person, in_content)))


def waiting_for(user: User) -> WaitingFor:
    """What this user can approve at the level that is open, or release, now. One query; two if the evaluator is needed;
    more if the user is a stand-in now, or if recipients are cooling.
    """
    return WaitingFor(user, _evaluated(user))


def _waiting(
    rights: Rights, evaluated: Evaluated, person: int | Argument, in_content: int | Argument
) -> WaitingOperations:
    """`in_content` is the person, too, as the content of an operation has it."""
    can, releases = Q(pk__in=[]), Q(pk__in=[])
    given = Approval.objects.filter(Q(approver=person) | Q(on_behalf_of=person), operation=OuterRef("pk"))
    governance = kinds_approved_with(APPROVE_GOVERNANCE)
    is_present = ~Q(Exists(in_effect().filter(person=person)))
    # Only changes of people name a person; without that member the comparison would be neither true nor false.
    of_others = Q(payload__person__isnull=True) | ~Q(payload__person=in_content)
    of_others &= Q(payload__stand_in__isnull=True) | ~Q(payload__stand_in=in_content)
    by_everyone = Q(_IS_OF_EVERYONE, _is_of_version_in_effect(), status=Status.PENDING)
    if rights.approve:
        can |= by_everyone & ~Q(kind__in=governance)
    if rights.approve_governance:
        can |= by_everyone & of_others & Q(kind__in=governance)
    can |= Q(pk__in=evaluated.able)
    can &= is_present & Q(~Exists(given))
    if rights.release:
        is_not_released = Q(release__isnull=True) | Q(release__expires_at__lte=Now())
        releases = Q(is_not_released, is_sent(), ~Q(pk__in=evaluated.lacking), status=Status.APPROVED)
    # The last condition for all of them, so that the index of open operations serves it.
    return WaitingOperations(can, releases, ~Q(preparer=person) & IS_OPEN)


_IS_OF_EVERYONE = Q(levels__isnull=True) | Q(
    levels__in=[stored_levels((Level(needed=needed),)) for needed in range(1, MOST_APPROVALS + 1)]
)


def _newest_version() -> Coalesce:
    newest = PolicyVersion.objects.order_by("-number").values("number")[:1]
    return Coalesce(Subquery(newest), 0)


def _is_of_version_in_effect() -> Q:
    # Not in the condition itself: its expression has to be one that a filter can compare.
    return Q(policy_version=_newest_version()) | Q(
        ~Exists(PolicyVersion.objects.all()), policy_version__isnull=True
    )


def _to_evaluate() -> QuerySet[Operation]:
    """The open operations that only the evaluator can decide."""
    return _operations_to_evaluate(restriction_times(), allow_list.demands_extra_approval()).all()


@composed_once
def _operations_to_evaluate(
    _times: tuple[timedelta, ...], _extra_approval: bool | None
) -> QuerySet[Operation]:
    waits = Q(status=Status.PENDING) & ~Q(_IS_OF_EVERYONE, _is_of_version_in_effect())
    lacks = is_sent() & Q(_is_doubtful() | allow_list.may_need_one_more(), status=Status.APPROVED)
    return Operation.objects.filter(IS_OPEN, waits | lacks)


@composed_once
def _any_to_evaluate(times: tuple[timedelta, ...], extra_approval: bool | None) -> CompiledQuery[Any]:
    return CompiledQuery(_operations_to_evaluate(times, extra_approval).order_by().values("pk")[:1])


def _with_approvals(operations: QuerySet[Operation], user: User) -> QuerySet[Operation]:
    """These operations, each once for each approval, with what the evaluator needs of the approval and of the user."""
    counted = Coalesce("approvals__on_behalf_of", "approvals__approver")
    acting = in_effect().filter(stand_in=user).order_by().values("stand_in")
    ids = acting.annotate(ids=JoinedTexts(Cast("pk", CharField())))
    own = Value(user.pk)
    return (
        operations.select_related("preparer")
        .annotate(
            newest=_newest_version(),
            own=own,
            counted=counted,
            given=F("approvals__pk"),
            by=F("approvals__approver"),
            instead_of=F("approvals__on_behalf_of"),
            delegation=F("approvals__delegation"),
            given_at=F("approvals__approved_at"),
            by_entitled=_is_entitled("approvals__approver"),
            other_entitled=_is_entitled("approvals__on_behalf_of"),
            counted_roles=joined_roles("counted"),
            counted_groups=joined_groups("counted"),
            own_roles=joined_roles("own"),
            own_groups=joined_groups("own"),
            acting=Subquery(ids.values("ids"), output_field=CharField()),
        )
        .order_by("pk", "given_at", "given")
    )


def _is_doubtful() -> Q:
    """Whether it was prepared under another version, or has an approval that may not count any more."""
    may_approve = users_with_permission(APPROVE).order_by().values("pk")
    doubtful = Approval.objects.filter(operation=OuterRef("pk")).exclude(
        approver__in=may_approve, on_behalf_of__isnull=True
    )
    return ~Q(_is_of_version_in_effect()) | Q(Exists(doubtful))


def approved_that_may_lack_approvals() -> Q:
    """Approved operations whose levels have to be evaluated; the rest lacks none. Without the rows of batches, which
    are many and decided with their batch.
    """
    may_lack = _is_doubtful() | ~Q(_IS_OF_EVERYONE)
    return is_sent() & Q(may_lack, status=Status.APPROVED, batch_row__isnull=True)


def is_sent() -> Q:
    """Whether it is released and sent; the others are applied by their last approval."""
    return ~Q(kind__in=local_kinds())


def _is_entitled(person: str) -> Case:
    """Whether this person may approve operations of the kind."""
    governance = kinds_approved_with(APPROVE_GOVERNANCE)
    entitled, of_governance = (
        Exists(users_with_permission(permission).filter(pk=OuterRef(person)))
        for permission in (APPROVE, APPROVE_GOVERNANCE)
    )
    return Case(When(kind__in=governance, then=of_governance), default=entitled)


def _evaluated(user: User) -> Evaluated:
    rights = Rights.of(user)
    if not (rights.approve or rights.approve_governance or rights.release):
        return Evaluated()
    if not _any_to_evaluate(restriction_times(), allow_list.demands_extra_approval()).first():
        return Evaluated()
    found: dict[UUID, list[Operation]] = defaultdict(list)
    for row in _with_approvals(_to_evaluate(), user):
        found[row.pk].append(row)
    if not found:
        return Evaluated()
    context = _Context.read(user, [row for rows in found.values() for row in rows])
    levels = _levels([rows[0] for rows in found.values()])
    # Without levels, no approval can release it.
    answers = {pk: context.answer(found[pk], levels[pk]) for pk in levels}
    complete = {pk for pk, (_, is_complete) in answers.items() if is_complete}
    able = {pk for pk, (is_able, _) in answers.items() if is_able}
    return Evaluated(frozenset(able), frozenset(found.keys() - complete))


def _levels(rows: Sequence[Operation]) -> dict[UUID, Levels]:
    older = [row for row in rows if (row.policy_version or 0) != _annotation(row, "newest")]
    differ = {row.pk for row in older}
    levels = levels_as_prepared(row for row in rows if row.pk not in differ)
    levels |= remembered_levels(older, _annotation(rows[0], "newest")) if older else {}
    for pk in (
        allow_list.need_one_more([row for row in rows if row.status == Status.APPROVED]) & levels.keys()
    ):
        levels[pk] = (*levels[pk], Level(needed=1))
    return levels


def _annotation(row: Operation, name: str) -> Any:
    """What `_with_approvals` has added to the operation under this name."""
    return vars(row)[name]


@dataclass(frozen=True)
class _Context:
    """What is the same for all operations: the user, for whom the user acts, and delegations of approvals given."""

    user: User
    people: dict[str, dict[int, Person]]  # by the permission to approve
    leaves: Sequence[Leave]
    delegations: dict[int, Delegation]

    @classmethod
    def read(cls, user: User, rows: Sequence[Operation]) -> "_Context":
        acting = set(map(int, split_texts(_annotation(rows[0], "acting"))))
        used = {_annotation(row, "delegation") for row in rows} - {None}
        found = Delegation.objects.in_bulk(acting | used) if acting | used else {}
        away = {found[pk].person_id for pk in acting}
        people: dict[str, dict[int, Person]] = {}
        for permission in (APPROVE, APPROVE_GOVERNANCE):
            own = Person(
                id=user.pk,
                name=str(user),
                roles=read_roles(_annotation(rows[0], "own_roles")),
                groups=read_groups(_annotation(rows[0], "own_groups")),
                may_approve=may_now(user, permission),
            )
            others = read_people(permission, away) if away else []
            people[permission] = {one.id: one for one in (own, *others)}
        leaves = leaves_of([found[pk] for pk in acting], clock.recent()) if acting else []
        return cls(user, people, leaves, found)

    def answer(self, rows: Sequence[Operation], levels: Levels) -> tuple[bool, bool]:
        """Whether the user can approve this operation now, and whether its levels are complete."""
        operation = rows[0]
        given = [row for row in rows if _annotation(row, "given") is not None]
        counted = [
            Person(
                id=_annotation(row, "counted"),
                name="",
                roles=read_roles(_annotation(row, "counted_roles")),
                groups=read_groups(_annotation(row, "counted_groups")),
                stand_in_id=_annotation(row, "by") if _annotation(row, "instead_of") else None,
            )
            for row in given
            if self._counts(row)
        ]
        found = progress(levels, counted, preparer_id=operation.preparer_id)
        if found.open is None:
            return False, True
        people = self.people[approval_permission_for(operation.kind)]
        answer = capacity(
            people[self.user.pk],
            found.open.level,
            people=people,
            leaves=self.leaves,
            preparer_id=operation.preparer_id,
            approved={_annotation(row, name) for row in given for name in ("by", "instead_of")},
            affected=affected_people(operation),
        )
        return answer.hindrance is None, False

    def _counts(self, row: Operation) -> bool:
        approval = Approval(
            approver_id=_annotation(row, "by"),
            on_behalf_of_id=_annotation(row, "instead_of"),
            delegation=self.delegations.get(_annotation(row, "delegation")),
            approved_at=_annotation(row, "given_at"),
        )
        entitled = {_annotation(row, "by")} if _annotation(row, "by_entitled") else set()
        if _annotation(row, "other_entitled"):
            entitled.add(_annotation(row, "instead_of"))
        return bool(counting([approval], entitled))


def deciders(operation: Operation) -> frozenset[int]:
    """Who can approve it now, or release it; nobody if it does not wait for a decision any more."""
    releasers: frozenset[int] = frozenset()
    if operation.status == Status.APPROVED:
        may_release = users_with_permission(RELEASE).exclude(pk=operation.preparer_id)
        releasers = frozenset(may_release.order_by().values_list("pk", flat=True))
    elif operation.status != Status.PENDING:
        return frozenset()
    try:
        found = approvers_of(operation)
    except OperationError:
        return frozenset()
    is_local = isinstance(KINDS.get(operation.kind), LocalKind)
    if operation.status == Status.APPROVED and (found.progress.is_complete or is_local):
        return frozenset() if is_local else releasers
    return frozenset(person.id for person, _ in found.able)
