"""Read people for the evaluation of policies: roles and groups, who is on leave, and whether they may approve now."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.contrib.auth.models import Group
from django.db.models import CharField, Exists, F, FilteredRelation, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Now

from backoffice.accounts.models import GroupMembership, User
from backoffice.accounts.roles import roles_with, users_with_permission
from backoffice.core.database.queries import JoinedTexts, split_texts
from backoffice.policies.delegations import Delegation
from backoffice.policies.document import Levels, People
from backoffice.policies.evaluator import Person

_COLUMNS = tuple(field.attname for field in Delegation._meta.concrete_fields)


@dataclass(frozen=True)
class Staff:
    """People by name, and the delegations of those of them who are on leave."""

    people: Sequence[Person]
    delegations: Sequence[Delegation]

    @cached_property
    def by_id(self) -> dict[int, Person]:
        return {person.id: person for person in self.people}


def read_people(
    permission: str, ids: Collection[int] | None = None, *, asked: Iterable[People] | None = None
) -> Sequence[Person]:
    """These people, or all, by name. See `read_staff`."""
    return read_staff(permission, ids, asked=asked).people


def read_staff(
    permission: str, ids: Collection[int] | None = None, *, asked: Iterable[People] | None = None
) -> Staff:
    """These people, or all, with who of them is on leave. One query.

    `permission` is the one to approve. Roles and groups are read only if one of `asked` names them, or if it is None.
    """
    wanted = list(asked) if asked is not None else None
    held = Group.objects.filter(name__in=roles_with(permission), user=OuterRef("pk"))
    users = User.objects.order_by("full_name", "pk").annotate(
        holds_permission=Exists(held),
        is_entitled=Exists(users_with_permission(permission).filter(pk=OuterRef("pk"))),
        leave=FilteredRelation(
            "delegations",
            condition=Q(
                delegations__starts_at__lte=Now(),
                delegations__ends_at__gt=Now(),
                delegations__ended_at__isnull=True,
            ),
        ),
        **{f"leave_{name}": F(f"leave__{name}") for name in _COLUMNS},
    )
    if wanted is None or any(people.role for people in wanted):
        users = users.annotate(role_names=joined_roles("pk"))
    if wanted is None or not all(people.is_everyone for people in wanted):
        users = users.annotate(group_ids=joined_groups("pk"))
    found = {user.pk: user for user in (users if ids is None else users.filter(pk__in=ids))}
    return Staff([_person(user) for user in found.values()], list(_delegations(found.values())))


def _person(user: User) -> Person:
    found = vars(user)
    return Person(
        id=user.pk,
        name=user.full_name,
        roles=read_roles(found.get("role_names")),
        groups=read_groups(found.get("group_ids")),
        is_active=user.is_active,
        may_approve=found["holds_permission"],
        is_withheld=found["holds_permission"] and user.is_active and not found["is_entitled"],
        is_on_leave=found["leave_id"] is not None,
    )


def _delegations(users: Iterable[User]) -> Iterable[Delegation]:
    for user in users:
        found = vars(user)
        if found["leave_id"] is not None:
            yield Delegation(**{name: found[f"leave_{name}"] for name in _COLUMNS})


def joined_roles(person: str) -> Subquery:
    """The names of the roles of the person to whose id `person` refers, for `read_roles`."""
    roles: QuerySet[Group] = Group.objects.filter(user=OuterRef(person))
    names = roles.order_by().values("user").annotate(names=JoinedTexts("name"))
    return Subquery(names.values("names"), output_field=CharField())


def joined_groups(person: str) -> Subquery:
    """The ids of the groups of that person that are not retired, for `read_groups`."""
    memberships = GroupMembership.objects.filter(user=OuterRef(person), group__retired_at__isnull=True)
    ids = memberships.order_by().values("user").annotate(ids=JoinedTexts(Cast("group", CharField())))
    return Subquery(ids.values("ids"), output_field=CharField())


def read_roles(joined: str | None) -> frozenset[str]:
    return split_texts(joined)


def read_groups(joined: str | None) -> frozenset[int]:
    return frozenset(map(int, split_texts(joined)))


def names_nobody(levels: Levels) -> bool:
    """Whether everyone who may approve belongs to each level, so that roles and groups need not be read."""
    return all(level.of.is_everyone for level in levels)
