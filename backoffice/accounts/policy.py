"""Who may change what lets a person in."""

from datetime import datetime, timedelta

from django.utils import timezone

from backoffice.accounts import selectors
from backoffice.accounts.errors import EnrolmentNotAllowedError
from backoffice.accounts.models import User

SECOND_FACTOR_FRESH = timedelta(minutes=5)
"""How long a second factor counts for actions that ask for a fresh one."""


def is_fresh(second_factor_at: datetime | None) -> bool:
    """True if the second factor was given within the last five minutes."""
    return second_factor_at is not None and timezone.now() - second_factor_at <= SECOND_FACTOR_FRESH


def check_may_enrol(user: User, second_factor_at: datetime | None) -> None:
    """The first authenticator needs the password only; another one needs the second factor, given just now.

    Raises EnrolmentNotAllowedError.
    """
    if selectors.authenticator_of(user) is not None and not is_fresh(second_factor_at):
        raise EnrolmentNotAllowedError
