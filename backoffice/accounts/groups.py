"""Groups of staff that approval policies name: who is in which, in the database now, and how they are changed."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from backoffice.accounts.models import GroupMembership, StaffGroup, User
from backoffice.core import clock


def active_groups() -> QuerySet[StaffGroup]:
    """The groups that are not retired, by name."""
    return StaffGroup.objects.filter(retired_at__isnull=True)


def groups_of(user_ids: Iterable[int]) -> dict[int, dict[int, str]]:
    """By person: the names by id of the person's groups now. One query; people without a group are left out."""
    found: dict[int, dict[int, str]] = defaultdict(dict)
    rows = GroupMembership.objects.filter(user__in=list(user_ids), group__retired_at__isnull=True)
    for user_id, group_id, name in rows.order_by("group__name").values_list("user", "group", "group__name"):
        found[user_id][group_id] = name
    return dict(found)


def people_in(group_ids: Iterable[int]) -> QuerySet[User]:
    """The active people who are in at least one of these groups now, each once."""
    memberships = GroupMembership.objects.filter(group__in=list(group_ids), group__retired_at__isnull=True)
    return User.objects.filter(is_active=True, pk__in=memberships.values("user"))


@transaction.atomic
def create_group(name: str) -> StaffGroup:
    """A new group without members. Within a change that has its own audit entry."""
    return StaffGroup.objects.create(name=name, created_at=clock.now())


@transaction.atomic
def rename_group(group_id: int, *, name: str) -> StaffGroup:
    """Within a change that has its own audit entry. Policies refer to the group by its id, which stays."""
    group = active_groups().select_for_update(no_key=True).get(pk=group_id)
    group.name = name
    group.save(update_fields=["name"])
    return group


@transaction.atomic
def retire_group(group_id: int) -> tuple[StaffGroup, list[int]]:
    """End the group and its memberships; returns whose they were. Within a change that has its own audit entry."""
    group = active_groups().select_for_update(no_key=True).get(pk=group_id)
    members = sorted(group.memberships.values_list("user", flat=True))
    group.memberships.all().delete()
    group.retired_at = clock.now()
    group.save(update_fields=["retired_at"])
    return group, members


@transaction.atomic
def set_groups(user: User, group_ids: Collection[int], *, operation: UUID) -> None:
    """Put the person into exactly these groups; a membership that remains keeps its date and operation.

    Within a change that has its own audit entry.
    """
    memberships = GroupMembership.objects.filter(user=user)
    memberships.exclude(group__in=group_ids).delete()
    new = set(group_ids) - set(memberships.values_list("group", flat=True))
    now = clock.now()
    GroupMembership.objects.bulk_create(
        GroupMembership(user=user, group=group, since=now, operation=operation)
        for group in active_groups().filter(pk__in=new)
    )
