"""Which way money went, and who was at the other end of it, by the service's record."""

from django.conf import settings

from payments_gateway import TransactionRecord

_ALWAYS = {"deposit": "in", "withdrawal": "out", "sent": "out"}
_BETWEEN_USERS = {"transfer", "internalTransfer"}


def direction(record: TransactionRecord) -> str:
    """`in` or `out`, seen from the merchant, or empty where nothing tells.

    The service has no member for it, and amounts carry no sign; should one carry a minus, it went out. A conversion
    is two records: what was given in its own currency, and what was received, which names another currency as its
    origin. Of transfers between users both ends must be named: in what came in, the receiver is the merchant. Of a
    type that the specification does not know, at most that it went out is told: what came in raises no alarm.
    """
    if record.amount < 0:
        return "out"
    if record.type in _ALWAYS:
        return _ALWAYS[record.type]
    if record.type == "conversion":
        return "in" if record.from_currency not in {"", record.currency} else "out"
    if _is_us(record.sender):
        return "out"
    is_told = record.type in _BETWEEN_USERS and record.sender.strip() and _is_us(record.username)
    return "in" if is_told else ""


def counterparty(record: TransactionRecord) -> str:
    """Who sent what came in, or received what went out, as far as the record names somebody."""
    return other_end(record, direction(record))


def other_end(record: TransactionRecord, way: str) -> str:
    """The counterparty of a record whose direction is known already."""
    is_senders = way == "in" or (not way and _is_us(record.username))
    return record.sender if is_senders else record.username


def _is_us(name: str) -> bool:
    return name.strip().casefold() == settings.GATEWAY_API_USER.strip().casefold()
