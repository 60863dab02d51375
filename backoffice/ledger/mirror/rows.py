"""One provider record as a mirror row: direction, counterparty, column values, and the digest that tells it is
unchanged.

Runs for every record of every page, so each value is computed once and nothing that an unchanged row does not need.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple

from django.conf import settings

from backoffice.core.fields import rounded_for_storage
from payments_gateway import TransactionRecord

_DIRECTION_OF_TYPE = {"deposit": "in", "withdrawal": "out", "sent": "out"}
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
    if record.type in _DIRECTION_OF_TYPE:
        return _DIRECTION_OF_TYPE[record.type]
    if record.type == "conversion":
        return "in" if record.from_currency not in {"", record.currency} else "out"
    if _is_us(record.sender):
        return "out"
    is_told = record.type in _BETWEEN_USERS and record.sender.strip() and _is_us(record.username)
    return "in" if is_told else ""


def counterparty(record: TransactionRecord) -> str:
    """Who sent what came in, or received what went out, as far as the record names somebody."""
    return counterparty_by_direction(record, direction(record))


def counterparty_by_direction(record: TransactionRecord, way: str) -> str:
    """The counterparty of a record whose direction is known already."""
    is_senders = way == "in" or (not way and _is_us(record.username))
    return record.sender if is_senders else record.username


def _is_us(name: str) -> bool:
    return name.strip().casefold() == settings.GATEWAY_API_USER.strip().casefold()


FACET_COLUMNS = ("currency", "type", "status", "direction")
TEXT_COLUMNS = (
    *("transaction_id", *FACET_COLUMNS, "date", "from_currency", "sender", "username", "counterparty"),
    *("business_id", "version"),
)
DECIMAL_COLUMNS = ("amount", "fee", "previous_balance", "sender_previous_balance", "from_amount")
TIME_COLUMNS = ("created_at", "updated_at")
RECORD_COLUMNS = (*TEXT_COLUMNS, *DECIMAL_COLUMNS, *TIME_COLUMNS, "is_from_registered_user")
COPY_NULL = r"\N"
_VERSION = b"1"  # a release that derives something in another way changes it, and every row is written anew
_TABS = len(TEXT_COLUMNS) - 1
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_LONGEST_KEY = 500  # characters: of what is indexed, PostgreSQL takes no more than 2,700 bytes
_SHORT_TEXTS = 400  # characters of all texts together, of which no part can be too long
_PLAIN_DIGITS = 18  # characters of a number that needs no rounding, whatever it is

FacetKey = tuple[str, str, str, str]


class UnstorableRecordError(Exception):
    """A record that the tables have no room for. The message names it, and says why."""


class MirrorRow(NamedTuple):
    """A record to be mirrored. `line` is what COPY reads, in the order of `TOLD`; `words` name its facet."""

    record: TransactionRecord
    words: FacetKey
    line: str
    digest: bytes

    @property
    def amount(self) -> Decimal:
        """As the database will give it back."""
        return as_stored(self.record.amount).copy_abs()

    @property
    def fee(self) -> Decimal | None:
        """As the database will give it back."""
        return None if self.record.fee is None else as_stored(self.record.fee)

    @property
    def values(self) -> dict[str, Any]:
        """The columns of `TOLD`, as the database will give them back."""
        told = dict(self.record.__dict__)
        told |= {name: as_stored(told[name]) for name in DECIMAL_COLUMNS if told[name] is not None}
        told["amount"] = told["amount"].copy_abs()
        told["direction"] = self.words[3]
        told["counterparty"] = counterparty_by_direction(self.record, self.words[3])
        return {name: told[name] for name in RECORD_COLUMNS}


def rows_of(records: Iterable[TransactionRecord]) -> dict[str, MirrorRow]:
    """The row of each record by its id; of one that comes twice, the one told later. Raises UnfitRecordError."""
    return {record.transaction_id: row_of(record) for record in records}


def row_of(record: TransactionRecord) -> MirrorRow:
    """The row of one record. Raises UnfitRecordError."""
    told = record.__dict__
    way = direction(record)
    words = (told["currency"], told["type"], told["status"], way)
    texts = (
        told["transaction_id"],
        *words,
        told["date"],
        told["from_currency"],
        told["sender"],
        told["username"],
        counterparty_by_direction(record, way),
        told["business_id"],
        told["version"],
    )
    try:
        line = f"{_joined_texts(texts)}\t{_joined_values(told)}"
    except ValueError as exc:
        raise UnstorableRecordError(
            f"Transaction {record.transaction_id[:60]} cannot be kept: {exc}"
        ) from exc
    return MirrorRow(record, words, line, blake2b(_VERSION + line.encode(), digest_size=16).digest())


def as_stored(number: Decimal) -> Decimal:
    """The number as the database keeps it. Raises ValueError where it has no room."""
    text = str(number)
    return number if len(text) <= _PLAIN_DIGITS and "E" not in text else rounded_for_storage(number)


def _joined_texts(texts: tuple[str, ...]) -> str:
    joined = "\t".join(texts)
    if len(joined) > _SHORT_TEXTS and (
        len(texts[0]) > _LONGEST_KEY or sum(map(len, texts[1:5])) > _LONGEST_KEY
    ):
        raise ValueError("its id, or its currency, type and status, are too long")
    if "\\" in joined or "\n" in joined or "\r" in joined or joined.count("\t") != _TABS:
        return "\t".join(text.translate(_ESCAPES) for text in texts)
    return joined


def _joined_values(told: Mapping[str, Any]) -> str:
    flag = told["is_from_registered_user"]
    return "\t".join(
        (
            _number_text(told["amount"]).lstrip("-"),
            _number_text(told["fee"]),
            _number_text(told["previous_balance"]),
            _number_text(told["sender_previous_balance"]),
            _number_text(told["from_amount"]),
            _time_text(told["created_at"]),
            _time_text(told["updated_at"]),
            COPY_NULL if flag is None else "t" if flag else "f",
        )
    )


def _number_text(value: Decimal | None) -> str:
    if value is None:
        return COPY_NULL
    text = str(value)
    return text if len(text) <= _PLAIN_DIGITS and "E" not in text else f"{rounded_for_storage(value):f}"


def _time_text(value: datetime | None) -> str:
    return COPY_NULL if value is None else value.isoformat()
