"""Which way money went, and who was at the other end of it, by the service's record."""

from django.conf import settings

from payments_gateway import TransactionRecord

_ALWAYS = {"deposit": "in", "withdrawal": "out", "sent": "out"}


def direction(record: TransactionRecord) -> str:
    """`in` or `out`, seen from the merchant, or empty where nothing tells.

    The service has no member for it, and amounts carry no sign; should one carry a minus, it went out. A conversion
    is two records: what was given in its own currency, and what was received, which names another currency as its
    origin. Of transfers the sender tells.
    """
    if record.amount < 0:
        return "out"
    if record.type in _ALWAYS:
        return _ALWAYS[record.type]
    if record.type == "conversion":
        return "in" if record.from_currency not in {"", record.currency} else "out"
    if not record.sender:
        return ""
    return "out" if record.sender == settings.GATEWAY_API_USER else "in"


def counterparty(record: TransactionRecord) -> str:
    """Who sent what came in, or received what went out, as far as the record names somebody."""
    return other_end(record, direction(record))


def other_end(record: TransactionRecord, way: str) -> str:
    """The counterparty of a record whose direction is known already."""
    return record.sender if way == "in" else record.username
