"""Filters saved under a name. Nothing here touches an operation."""

from django.db import IntegrityError, transaction

from backoffice.accounts.models import User
from backoffice.operations.errors import FilterError
from backoffice.operations.models import List, SavedFilter

EACH_AT_MOST = 20


@transaction.atomic
def save_filter(actor: User, *, of: List, name: str, filters: dict[str, str], is_shared: bool) -> SavedFilter:
    """Keep the filters under a name. Raises FilterError if the person has that name, or as many as one may keep."""
    User.objects.get_locked(actor.pk)
    if SavedFilter.objects.filter(person=actor).count() >= EACH_AT_MOST:
        raise FilterError(f"You keep {EACH_AT_MOST} filters already. Delete one before you save another.")
    return _stored(SavedFilter(person=actor, of=of, name=name, filters=filters, is_shared=is_shared))


@transaction.atomic
def rename_filter(pk: int, *, actor: User, name: str, is_shared: bool) -> SavedFilter:
    """Change the name of one's own, and who sees it. Raises FilterError, and SavedFilter.DoesNotExist for another's."""
    saved = SavedFilter.objects.select_for_update().get(pk=pk, person=actor)
    saved.name, saved.is_shared = name, is_shared
    return _stored(saved)


def delete_filter(pk: int, *, actor: User) -> None:
    """Forget one's own; nothing happens if it is gone or another's."""
    SavedFilter.objects.filter(pk=pk, person=actor).delete()


def _stored(saved: SavedFilter) -> SavedFilter:
    try:
        with transaction.atomic():
            saved.save()
    except IntegrityError as exc:
        raise FilterError(f"You have a filter called “{saved.name}” already. Choose another name.") from exc
    return saved
