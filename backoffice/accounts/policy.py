"""Who may change what lets a person in."""

from datetime import datetime, timedelta

from backoffice.accounts.errors import EnrolmentNotAllowedError
from backoffice.core import clock

SECOND_FACTOR_FRESH = timedelta(minutes=5)
"""How long a second factor counts for actions that ask for a fresh one."""


def is_fresh(second_factor_at: datetime | None, *, now: datetime | None = None) -> bool:
    """True if the second factor was given within the last five minutes, by the database's clock.

    One from the future is not fresh: it would stay so for as long as the clock was ahead.
    """
    if second_factor_at is None:
        return False
    return timedelta(0) <= (now or clock.now()) - second_factor_at <= SECOND_FACTOR_FRESH


def check_may_enrol(second_factor_at: datetime | None, *, has_authenticator: bool) -> None:
    """The first authenticator needs the password only; another one needs the second factor, given just now.

    Raises EnrolmentNotAllowedError.
    """
    if has_authenticator and not is_fresh(second_factor_at):
        raise EnrolmentNotAllowedError
