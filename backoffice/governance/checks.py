"""Checks of the people of an installation, for `manage.py check`."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.db import DatabaseError

from backoffice.accounts.models import User
from backoffice.accounts.roles import active_administrators


@register(deploy=True)
def check_administrators(**_of_django: Any) -> Iterable[CheckMessage]:
    """An installation with accounts has enough administrators to send. Before the first migration, nothing is found."""
    try:
        active = active_administrators().count()
        has_accounts = User.objects.exists()
    except DatabaseError:
        return []
    if not has_accounts or active >= settings.ADMINISTRATORS_TO_SEND:
        return []
    return [
        Warning(
            f"Nothing is sent until {settings.ADMINISTRATORS_TO_SEND} administrators are active; active now: {active}.",
            hint='Create one: manage.py staff create EMAIL --name "NAME" --role Administrator, with '
            '--break-glass "REASON" if the installation is not new.',
            id="governance.W001",
        )
    ]
