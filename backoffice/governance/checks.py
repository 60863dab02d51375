"""Checks of the people of an installation, for `manage.py check`."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.db import DatabaseError

from backoffice.accounts.break_glass import are_links_unopened
from backoffice.accounts.models import User
from backoffice.accounts.roles import administrators_not_set_up, enrolled_administrators
from backoffice.governance.bootstrap import people_with_renewable_link


@register(deploy=True)
def check_administrators(**_of_django: Any) -> Iterable[CheckMessage]:
    """An installation with accounts has enough administrators to send. Before the first migration, nothing is found."""
    try:
        active = enrolled_administrators().count()
        has_accounts = User.objects.exists()
        is_short = has_accounts and active < settings.ADMINISTRATORS_TO_SEND
        hint = _way_to_more(active) if is_short else ""
    except DatabaseError:
        return []
    if not is_short:
        return []
    return [
        Warning(
            f"Nothing is sent until {settings.ADMINISTRATORS_TO_SEND} administrators are active; active now: {active}.",
            hint=hint,
            id="governance.W001",
        )
    ]


def _way_to_more(active: int) -> str:
    """What leads to enough administrators: those who exist set up their accounts, or another one is created."""
    waiting = list(administrators_not_set_up())
    if active + len(waiting) < settings.ADMINISTRATORS_TO_SEND:
        return (
            'Create one: manage.py staff create EMAIL --name "NAME" --role Administrator, with '
            '--break-glass "REASON" if the installation is not new.'
        )
    people = f"{', '.join(user.email for user in waiting)}. For a lost or expired link:"
    if are_links_unopened():
        return (
            f"These administrators exist and have not opened their one-time links yet: {people} "
            'manage.py staff reset-password EMAIL --reason "REASON".'
        )
    by_hand = 'manage.py staff reset-password EMAIL --break-glass "REASON"'
    are_renewable = people_with_renewable_link() >= {user.pk for user in waiting}
    way = "Create a new link, on the Team page" if are_renewable else by_hand
    return f"These administrators exist and have not set up their accounts yet: {people} {way}."
