"""Reads from the log."""

from datetime import date

from django.contrib.auth.base_user import AbstractBaseUser
from django.db.models import Q, QuerySet

from backoffice.audit.models import Entry
from backoffice.core.period import end_of, start_of


def entries(
    *,
    actor: AbstractBaseUser | None = None,
    group: str = "",
    about: str = "",
    since: date | None = None,
    until: date | None = None,
) -> QuerySet[Entry]:
    """Entries of a person, of a group of actions, about an object, between two days of the current time zone.

    `about` is part of the object's label, or exactly its id or the id of a request. Both days are included.
    """
    found = Entry.objects.all()
    if actor is not None:
        found = found.filter(actor=actor.pk)
    if group:
        found = found.filter(action__startswith=f"{group}.")
    if about:
        found = found.filter(Q(target_label__icontains=about) | Q(target_id=about) | Q(request_id=about))
    if since is not None:
        found = found.filter(at__gte=start_of(since))
    if until is not None:
        found = found.filter(at__lt=end_of(until))
    return found
