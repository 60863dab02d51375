"""Amounts inside the sandbox are integers in minor units; parse them from and format them as Decimal and text."""

import re
from decimal import Decimal

from payments_gateway.money import CURRENCIES
from payments_gateway.sandbox.errors import refused_member

DECIMALS = {code: currency.decimals for code, currency in CURRENCIES.items()} | {"USDC": 6, "BTC": 8}
"""By currency: those of GET /balance, and those that only wallets hold (`counterparties.WALLETS`)."""
_PLAIN = re.compile(r"[0-9]{1,12}(\.[0-9]{1,18})?", re.ASCII)
_FINEST = 18


def minor_units(text: str, currency: str, member: str = "amount") -> int:
    """Parse an amount such as "250000.50". RefusedError 400 unless it is positive and fits the currency."""
    if not _PLAIN.fullmatch(text):
        raise refused_member(member, "must be a plain decimal number of at most 12 digits before the point")
    whole, _, fraction = text.partition(".")
    decimals = DECIMALS[currency]
    if len(fraction) > decimals:
        raise refused_member(member, f"must have at most {decimals} decimals in {currency}")
    units = int(whole + fraction.ljust(decimals, "0"))
    if units == 0:
        raise refused_member(member, "must be more than zero")
    return units


def minor_units_of(number: Decimal, currency: str, member: str = "amount") -> int:
    """Convert an amount such as 250000.5 from a JSON number. RefusedError 400 as in `minor_units`."""
    if not 0 < number < 10**12:
        raise refused_member(member, "must be more than zero, with at most 12 digits before the point")
    if number.adjusted() < -_FINEST:
        raise refused_member(member, f"must have at most {DECIMALS[currency]} decimals in {currency}")
    return minor_units(_without_needless_zeros(number), currency, member)


def amount_number(units: int, currency: str) -> Decimal:
    """The amount as a JSON number: exact, without trailing zeros (250000.5)."""
    return Decimal(units).scaleb(-DECIMALS[currency]).normalize()


def amount_text(units: int, currency: str) -> str:
    """The amount as text in JSON: with all decimals of the currency ("250000.50")."""
    return f"{Decimal(units).scaleb(-DECIMALS[currency]):f}"


def _without_needless_zeros(number: Decimal) -> str:
    # Not Decimal.normalize, which rounds numbers of more than 28 digits.
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
