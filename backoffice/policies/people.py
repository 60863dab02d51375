"""People as policies see them: their roles and groups, and whether they may approve now."""

from collections.abc import Collection

from backoffice.accounts.groups import groups_of
from backoffice.accounts.models import User
from backoffice.accounts.roles import PERMISSIONS, users_with_permission
from backoffice.policies.document import Levels
from backoffice.policies.evaluator import Person


def read_people(permission: str, ids: Collection[int] | None = None) -> list[Person]:
    """These people, or all, by name. `permission` is the one to approve; three queries."""
    users = User.objects.order_by("full_name", "pk").prefetch_related("groups")
    found = list(users if ids is None else users.filter(pk__in=ids))
    groups = groups_of([user.pk for user in found])
    entitled = set(users_with_permission(permission).values_list("pk", flat=True))
    return [
        _person(user, permission, groups.get(user.pk, ()), is_entitled=user.pk in entitled) for user in found
    ]


def _person(user: User, permission: str, groups: Collection[int], *, is_entitled: bool) -> Person:
    roles = frozenset(group.name for group in user.groups.all())
    has_role = any(permission in permissions for role, permissions in PERMISSIONS.items() if role in roles)
    return Person(
        id=user.pk,
        name=user.full_name,
        roles=roles,
        groups=frozenset(groups),
        is_active=user.is_active,
        may_approve=has_role,
        is_withheld=has_role and user.is_active and not is_entitled,
    )


def names_nobody(levels: Levels) -> bool:
    """Whether everyone who may approve belongs to each level, so that roles and groups need not be read."""
    return all(level.of.is_everyone for level in levels)
