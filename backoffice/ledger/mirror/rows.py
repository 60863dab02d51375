"""One record of the service as a row: its texts, its values and the digest by which it is known unchanged.

This runs for every record of every page, so it makes each thing once and nothing that an unchanged row does not need.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple

from backoffice.core.fields import storable
from backoffice.ledger.direction import direction, other_end
from payments_gateway import TransactionRecord

WORDS = ("currency", "type", "status", "direction")
TEXTS = (
    *("transaction_id", *WORDS, "date", "from_currency", "sender", "username", "counterparty"),
    *("business_id", "version"),
)
DECIMALS = ("amount", "fee", "previous_balance", "sender_previous_balance", "from_amount")
MOMENTS = ("created_at", "updated_at")
TOLD = (*TEXTS, *DECIMALS, *MOMENTS, "is_from_registered_user")
NULL = r"\N"
_VERSION = b"1"  # a release that derives something in another way changes it, and every row is written anew
_TABS = len(TEXTS) - 1
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_LONGEST_KEY = 500  # characters: of what is indexed, PostgreSQL takes no more than 2,700 bytes
_SHORT = 400  # characters of all texts together, of which no part can be too long
_PLAIN = 18  # characters of a number that needs no rounding, whatever it is

Words = tuple[str, str, str, str]


class UnfitRecordError(Exception):
    """A record that the tables have no room for. The message names it, and says why."""


class Row(NamedTuple):
    """A record to be mirrored. `line` is what COPY reads, in the order of `TOLD`; `words` name its facet."""

    record: TransactionRecord
    words: Words
    line: str
    digest: bytes

    @property
    def amount(self) -> Decimal:
        """As the database will give it back."""
        return kept(self.record.amount).copy_abs()

    @property
    def fee(self) -> Decimal | None:
        """As the database will give it back."""
        return None if self.record.fee is None else kept(self.record.fee)

    @property
    def values(self) -> dict[str, Any]:
        """The columns of `TOLD`, as the database will give them back."""
        told = dict(self.record.__dict__)
        told |= {name: kept(told[name]) for name in DECIMALS if told[name] is not None}
        told["amount"] = told["amount"].copy_abs()
        told["direction"] = self.words[3]
        told["counterparty"] = other_end(self.record, self.words[3])
        return {name: told[name] for name in TOLD}


def rows_of(records: Iterable[TransactionRecord]) -> dict[str, Row]:
    """The row of each record by its id; of one that comes twice, the one told later. Raises UnfitRecordError."""
    return {record.transaction_id: row_of(record) for record in records}


def row_of(record: TransactionRecord) -> Row:
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
        other_end(record, way),
        told["business_id"],
        told["version"],
    )
    try:
        line = f"{_joined(texts)}\t{_values(told)}"
    except ValueError as exc:
        raise UnfitRecordError(f"Transaction {record.transaction_id[:60]} cannot be kept: {exc}") from exc
    return Row(record, words, line, blake2b(_VERSION + line.encode(), digest_size=16).digest())


def kept(number: Decimal) -> Decimal:
    """The number as the database keeps it. Raises ValueError where it has no room."""
    text = str(number)
    return number if len(text) <= _PLAIN and "E" not in text else storable(number)


def _joined(texts: tuple[str, ...]) -> str:
    joined = "\t".join(texts)
    if len(joined) > _SHORT and (len(texts[0]) > _LONGEST_KEY or sum(map(len, texts[1:5])) > _LONGEST_KEY):
        raise ValueError("its id, or its currency, type and status, are too long")
    if "\\" in joined or "\n" in joined or "\r" in joined or joined.count("\t") != _TABS:
        return "\t".join(text.translate(_ESCAPES) for text in texts)
    return joined


def _values(told: Mapping[str, Any]) -> str:
    flag = told["is_from_registered_user"]
    return "\t".join(
        (
            _number(told["amount"]).lstrip("-"),
            _number(told["fee"]),
            _number(told["previous_balance"]),
            _number(told["sender_previous_balance"]),
            _number(told["from_amount"]),
            _moment(told["created_at"]),
            _moment(told["updated_at"]),
            NULL if flag is None else "t" if flag else "f",
        )
    )


def _number(value: Decimal | None) -> str:
    if value is None:
        return NULL
    text = str(value)
    return text if len(text) <= _PLAIN and "E" not in text else f"{storable(value):f}"


def _moment(value: datetime | None) -> str:
    return NULL if value is None else value.isoformat()
