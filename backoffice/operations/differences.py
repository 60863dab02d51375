"""What keeps our record and the provider's from being the same: codes with parameters. A page makes the sentence."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from django.db.models import TextChoices

from backoffice.core.display import format_amount
from backoffice.core.fields import SUMS

Difference: TypeAlias = "dict[str, Any]"
"""A `DifferenceCode` under `code`, and its parameters beside it, as JSON keeps them."""


class MatchField(TextChoices):
    """A field in which a transaction of the provider's list is compared with what we sent."""

    TYPE = "type", "Type"
    CURRENCY = "currency", "Currency"
    AMOUNT = "amount", "Amount"
    FROM_CURRENCY = "from_currency", "Given in"
    RECEIVER = "receiver", "Receiver"
    ADDRESS = "address", "Address"
    BENEFICIARY = "beneficiary", "Beneficiary"
    PREVIOUS_BALANCE = "previous_balance", "Balance before it"
    TIME = "time", "Time"


class DifferenceCode(TextChoices):
    """What differs, or why it is not known yet. Each is followed by its parameters."""

    CURRENCY = "currency"  # here, there
    AMOUNT = "amount"  # here, there, currency
    FEE = "fee"  # here, there, currency
    FIELD = "field"  # field (a MatchField), here, there
    END = "end"  # here (fulfilled or failed), there (the provider's status)
    NO_LONGER_LISTED = "no_longer_listed"  # since
    NOT_READ_FAR_ENOUGH = "not_read_far_enough"
    MAY_BE_UNKNOWN_OPERATION = "may_be_unknown_operation"  # operations
    DIRECTION_NOT_PROVIDED = "direction_not_provided"
    STATUS = "status"  # there


def difference(code: DifferenceCode, **parameters: str | list[str]) -> Difference:
    """A difference as it is kept."""
    return {"code": code.value, **parameters}


def sentence(found: Difference) -> str:
    """The difference in words; the bare code where a later release kept one that this one does not know."""
    words = _WORDS.get(found["code"])
    return words(found) if words else str(found["code"])


def sentences(found: list[Difference]) -> str:
    """All of them, one after the other."""
    return "; ".join(map(sentence, found))


def _in_field(found: Difference) -> str:
    name = str(MatchField(found["field"]).label).lower()
    return f"{name} {found['here']} here, {found['there']} there"


def _no_longer_listed(found: Difference) -> str:
    since = datetime.fromisoformat(found["since"])
    return f"the service listed it, and lists it no more since {since:%Y-%m-%d %H:%M} UTC"


def _more_or_less(found: Difference) -> str:
    more = SUMS.subtract(Decimal(found["there"]), Decimal(found["here"]))
    return f"{format_amount(abs(more), found['currency'])} {'more' if more > 0 else 'less'}"


_WORDS: dict[str, Callable[[Difference], str]] = {
    DifferenceCode.CURRENCY: lambda it: f"currency {it['here']} here, {it['there'] or 'none'} there",
    DifferenceCode.AMOUNT: lambda it: f"amount {_more_or_less(it)} there",
    DifferenceCode.FEE: lambda it: f"fee {_more_or_less(it)} there",
    DifferenceCode.FIELD: _in_field,
    DifferenceCode.END: lambda it: f"{it['here']} here, {it['there'] or 'nothing'} there",
    DifferenceCode.NO_LONGER_LISTED: _no_longer_listed,
    DifferenceCode.NOT_READ_FAR_ENOUGH: lambda _: "the service's list has not been read far enough since",
    DifferenceCode.MAY_BE_UNKNOWN_OPERATION: lambda it: (
        f"it may be {', '.join(it['operations'])}, which is not known yet"
    ),
    DifferenceCode.DIRECTION_NOT_PROVIDED: lambda _: "the service does not tell which way it went",
    DifferenceCode.STATUS: lambda it: f"{it['there'] or 'no status'} there",
}
