"""Money inside the simulation: integers in minor units; Decimal and exact text at its edge."""

import re
from decimal import Decimal

from payments_gateway.money import CURRENCIES
from payments_gateway.sandbox.wire.errors import RefusedError

DECIMALS = {code: currency.decimals for code, currency in CURRENCIES.items()}
_PLAIN = re.compile(r"[0-9]{1,12}(\.[0-9]{1,18})?", re.ASCII)


def minor_units(text: str, currency: str) -> int:
    """Read an amount such as "250000.50"; RefusedError 400 unless it is positive and fits the currency."""
    if not _PLAIN.fullmatch(text):
        raise _not_an_amount("must be a plain decimal number of at most 12 digits before the point")
    whole, _, fraction = text.partition(".")
    decimals = DECIMALS[currency]
    if len(fraction) > decimals:
        raise _not_an_amount(f"must have at most {decimals} decimals in {currency}")
    units = int(whole + fraction.ljust(decimals, "0"))
    if units == 0:
        raise _not_an_amount("must be more than zero")
    return units


def amount_number(units: int, currency: str) -> Decimal:
    """The amount as the service writes it into JSON numbers: exact, without needless zeros (250000.5)."""
    return Decimal(units).scaleb(-DECIMALS[currency]).normalize()


def amount_text(units: int, currency: str) -> str:
    """The amount as the service writes it into strings: with all decimals of the currency ("250000.50")."""
    return f"{Decimal(units).scaleb(-DECIMALS[currency]):f}"


def _not_an_amount(phrase: str) -> RefusedError:
    return RefusedError(400, f"amount {phrase}", [("amount", phrase)])
