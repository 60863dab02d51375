"""The people of policies: read for the evaluation, with roles and groups, who is on leave, and whether they may approve
now; and the names that people and groups of rules have now. A document keeps those of the time when it was written.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from django.contrib.auth.models import Group
from django.db.models import CharField, Exists, F, FilteredRelation, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Cast, Now

from backoffice.accounts.models import GroupMembership, StaffGroup, User
from backoffice.accounts.restrictions import restriction_times
from backoffice.accounts.roles import roles_with, users_with_permission
from backoffice.core.database.queries import CompiledQuery, JoinedTexts, composed_once, split_texts
from backoffice.policies.delegations import Delegation
from backoffice.policies.document import Levels, Named, People, PolicyDocument, Rule
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
    staff = _staff(
        permission,
        roles_with(permission),
        restriction_times(),
        wanted is None or any(people.role for people in wanted),
        wanted is None or not all(people.is_everyone for people in wanted),
    )
    users = staff.all() if ids is None else staff.rows.filter(pk__in=ids)
    found = {user.pk: user for user in users}
    return Staff([_person(user) for user in found.values()], list(_delegations(found.values())))


@composed_once
def _staff(
    permission: str,
    roles: tuple[str, ...],
    _times: tuple[timedelta, ...],
    has_roles: bool,
    has_groups: bool,
) -> CompiledQuery[User]:
    held = Group.objects.filter(name__in=roles, user=OuterRef("pk"))
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
    if has_roles:
        users = users.annotate(role_names=joined_roles("pk"))
    if has_groups:
        users = users.annotate(group_ids=joined_groups("pk"))
    return CompiledQuery(users)


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


@dataclass(frozen=True)
class CurrentNames:
    """Names by id, of groups that were retired and people who were deactivated too."""

    groups: dict[int, str]
    people: dict[int, str]

    @classmethod
    def of(cls, named: Iterable[People]) -> "CurrentNames":
        """The names that these people and groups have now. A query for groups and one for people, if there are any."""
        found = list(named)
        groups = {one.group.id for one in found if one.group}
        people = {each.id for one in found for each in one.named}
        return cls(
            dict(StaffGroup.objects.filter(pk__in=groups).values_list("pk", "name")) if groups else {},
            dict(User.objects.filter(pk__in=people).values_list("pk", "full_name")) if people else {},
        )

    def in_levels(self, levels: Levels) -> Levels:
        return tuple(level.model_copy(update={"of": self._in_people(level.of)}) for level in levels)

    def in_rule(self, rule: Rule) -> Rule:
        if rule.when.preparer is None:
            return rule.model_copy(update={"levels": self.in_levels(rule.levels)})
        when = rule.when.model_copy(update={"preparer": self._in_people(rule.when.preparer)})
        return rule.model_copy(update={"when": when, "levels": self.in_levels(rule.levels)})

    def _in_people(self, people: People) -> People:
        group = _renamed(people.group, self.groups) if people.group else None
        named = tuple(_renamed(one, self.people) for one in people.named)
        return people.model_copy(update={"group": group, "named": named})


def _renamed(one: Named, names: dict[int, str]) -> Named:
    return one.model_copy(update={"name": names.get(one.id, one.name)})


def people_of(rules: Iterable[Rule]) -> list[People]:
    """Everybody whom these rules name."""
    return [
        of
        for rule in rules
        for of in (rule.when.preparer, *(level.of for level in rule.levels))
        if of is not None
    ]


def with_current_names(document: PolicyDocument) -> PolicyDocument:
    """The same document with the names that its people and groups have now."""
    names = CurrentNames.of(people_of(document.rules))
    return document.model_copy(update={"rules": tuple(names.in_rule(rule) for rule in document.rules)})
