"""How the values of settings are read where a plain type does not do, and the defaults that are for development."""

import re
from collections.abc import Iterable
from decimal import Decimal
from importlib.util import find_spec

from django.core.exceptions import ImproperlyConfigured

from payments_gateway.money import CURRENCIES

# Public, so they are refused outside the sandbox.
DEVELOPMENT_SECRET = "development-only-" + "0" * 48
DEVELOPMENT_ENCRYPTION_KEY = "A" * 43 + "="
SANDBOX_API_KEY = "sandbox-key-of-the-simulation"

DEFAULT_APPROVAL_LIMITS = {"NGN": Decimal(10_000_000), "USD": Decimal(10_000), "USDT": Decimal(10_000)}
_APPROVAL_LIMITS_SETTING = "COUNTERSIGN_SECOND_APPROVAL_ABOVE"
_APPROVAL_LIMIT = re.compile(r"(\w+)=([0-9]+(?:\.[0-9]+)?)", re.ASCII)


_KINDS_THAT_PAY = ("withdrawal", "transfer", "wallet_transfer", "payment")


def allow_listed_kinds(written: Iterable[str]) -> frozenset[str]:
    """These kinds. Raises ImproperlyConfigured for any other name, so that no kind that was meant is left open."""
    names = frozenset(filter(None, (item.strip() for item in written)))
    if not names <= set(_KINDS_THAT_PAY):
        raise ImproperlyConfigured(f"COUNTERSIGN_ALLOW_LIST: any of {', '.join(_KINDS_THAT_PAY)}")
    return names


def is_installed(package: str) -> bool:
    """Whether an optional package can be imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def approval_limits(written: Iterable[str]) -> dict[str, Decimal]:
    """The limit of every currency: as configured (`NGN=10000000`), or the default.

    Raises ImproperlyConfigured for anything else, so that no limit that was meant to be set is ignored.
    """
    return {**DEFAULT_APPROVAL_LIMITS, **amounts_by_currency(_APPROVAL_LIMITS_SETTING, written)}


def amounts_by_currency(setting: str, written: Iterable[str]) -> dict[str, Decimal]:
    """The amounts that this setting names, such as `NGN=50000,USD=100`.

    Raises ImproperlyConfigured for anything else.
    """
    limits: dict[str, Decimal] = {}
    for item in written:
        found = _APPROVAL_LIMIT.fullmatch(item.strip())
        if found is None or found[1] not in CURRENCIES or found[1] in limits:
            raise ImproperlyConfigured(
                f"{setting} must be like NGN=10000000,USD=10000: "
                f"each of {', '.join(CURRENCIES)} at most once, "
                "digits and one point only"
            )
        limits[found[1]] = Decimal(found[2])
    return limits
