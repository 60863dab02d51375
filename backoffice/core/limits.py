"""The amounts above which two people must countersign, as a deployment writes them."""

import re
from collections.abc import Iterable
from decimal import Decimal

from django.core.exceptions import ImproperlyConfigured

from payments_gateway.money import CURRENCIES

DEFAULTS = {"NGN": Decimal(10_000_000), "USD": Decimal(10_000), "USDT": Decimal(10_000)}
_NAME = "COUNTERSIGN_SECOND_APPROVAL_ABOVE"
_LIMIT = re.compile(r"(\w+)=([0-9]+(?:\.[0-9]+)?)", re.ASCII)


def approval_limits(written: Iterable[str]) -> dict[str, Decimal]:
    """The limit of every currency: as written (`NGN=10000000`), or the default one.

    Raises ImproperlyConfigured rather than leave out a limit that somebody meant to set.
    """
    limits: dict[str, Decimal] = {}
    for item in written:
        found = _LIMIT.fullmatch(item.strip())
        if found is None or found[1] not in CURRENCIES or found[1] in limits:
            raise ImproperlyConfigured(
                f"{_NAME} must be like NGN=10000000,USD=10000: each of {', '.join(CURRENCIES)} at most once, "
                "digits and one point only"
            )
        limits[found[1]] = Decimal(found[2])
    return {**DEFAULTS, **limits}
