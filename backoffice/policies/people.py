"""People as policies see them: their roles and groups, and whether they may approve now."""

from collections.abc import Collection, Iterable

from django.contrib.auth.models import Permission
from django.db.models import Exists, OuterRef

from backoffice.accounts.groups import groups_of
from backoffice.accounts.models import User
from backoffice.accounts.roles import users_with_permission
from backoffice.policies.document import Levels, People
from backoffice.policies.evaluator import Person


def read_people(
    permission: str, ids: Collection[int] | None = None, *, asked: Iterable[People] | None = None
) -> list[Person]:
    """These people, or all, by name. `permission` is the one to approve.

    Roles and groups are read, with a query each, if one of `asked` needs them, or if nothing is said about it.
    """
    wanted = list(asked) if asked is not None else None
    app, _, codename = permission.partition(".")
    held = Permission.objects.filter(
        content_type__app_label=app, codename=codename, group__user=OuterRef("pk")
    )
    users = User.objects.order_by("full_name", "pk").annotate(
        holds_permission=Exists(held),
        is_entitled=Exists(users_with_permission(permission).filter(pk=OuterRef("pk"))),
    )
    has_roles = wanted is None or any(people.role for people in wanted)
    if has_roles:
        users = users.prefetch_related("groups")
    found = list(users if ids is None else users.filter(pk__in=ids))
    has_groups = wanted is None or any(people.group for people in wanted)
    groups = groups_of([user.pk for user in found]) if has_groups else {}
    return [
        Person(
            id=user.pk,
            name=user.full_name,
            roles=frozenset(group.name for group in user.groups.all()) if has_roles else frozenset(),
            groups=frozenset(groups.get(user.pk, ())),
            is_active=user.is_active,
            may_approve=user.holds_permission,
            is_withheld=user.holds_permission and user.is_active and not user.is_entitled,
        )
        for user in found
    ]


def names_nobody(levels: Levels) -> bool:
    """Whether everyone who may approve belongs to each level, so that roles and groups need not be read."""
    return all(level.of.is_everyone for level in levels)
