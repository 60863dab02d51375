"""Convert provider records to mirror rows, with direction, counterparty and a digest to detect changes.

Runs for every record of every page, so each value is computed once, and nothing that an unchanged row does
not need.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from hashlib import blake2b
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop as _

from backoffice.core.fields import rounded_for_storage
from payments_gateway import TransactionRecord

_DIRECTION_OF_TYPE = {"deposit": "in", "withdrawal": "out", "sent": "out"}
_BETWEEN_USERS = {"transfer", "internalTransfer"}


def direction(record: TransactionRecord) -> str:
    """`in` or `out`, from the merchant's side, or empty where the record does not show it.

    The provider has no field for it, and amounts are unsigned; a negative amount counts as `out`. A
    conversion is two records: the sold side in its own currency, and the bought side, whose `from_currency`
    is another currency. A transfer between users counts as `in` only if both names are present and the
    recipient is the merchant. A type that the specification does not list can be `out` but never `in`:
    incoming transactions raise no alarm, so an unknown type must not count as one.
    """
    if record.amount < 0:
        return "out"
    if record.type in _DIRECTION_OF_TYPE:
        return _DIRECTION_OF_TYPE[record.type]
    if record.type == "conversion":
        return "in" if record.from_currency not in {"", record.currency} else "out"
    if _is_us(record.sender):
        return "out"
    is_shown = record.type in _BETWEEN_USERS and record.sender.strip() and _is_us(record.username)
    return "in" if is_shown else ""


def counterparty(record: TransactionRecord) -> str:
    """The sender of an incoming transaction, the recipient of an outgoing one; may be empty."""
    return counterparty_by_direction(record, direction(record))


def counterparty_by_direction(record: TransactionRecord, direction_code: str) -> str:
    """The counterparty of a record whose direction is already computed."""
    is_sender = direction_code == "in" or (not direction_code and _is_us(record.username))
    return record.sender if is_sender else record.username


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
_VERSION = b"1"  # change it when a derived value is computed differently: every row is then rewritten
_TABS = len(TEXT_COLUMNS) - 1
_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})
_LONGEST_KEY = 500  # characters: PostgreSQL cannot index more than about 2,700 bytes
_SHORT_TEXTS = 400  # characters of all texts together, below which no single one can be too long
_PLAIN_DIGITS = 18  # characters: a number this short never needs rounding

FacetKey = tuple[str, str, str, str]


class UnstorableRecordError(Exception):
    """A record that does not fit the table's columns. The message names the record and the reason."""

    template = _("Transaction {transaction} cannot be stored: {why}.")

    def __init__(self, transaction_id: str, why: str) -> None:
        self.parameters = {"transaction": transaction_id[:60], "why": why}
        super().__init__(self.template.format(**self.parameters))


class MirrorRow(NamedTuple):
    """A record to store.

    `line` is its COPY line, in the order of `RECORD_COLUMNS`; `facet_key` is the key of its facet.
    """

    record: TransactionRecord
    facet_key: FacetKey
    line: str
    digest: bytes

    @property
    def amount(self) -> Decimal:
        """The unsigned amount, rounded as the database stores it."""
        return as_stored(self.record.amount).copy_abs()

    @property
    def fee(self) -> Decimal | None:
        """The fee, rounded as the database stores it."""
        return None if self.record.fee is None else as_stored(self.record.fee)

    @property
    def values(self) -> dict[str, Any]:
        """The values of `RECORD_COLUMNS`, rounded as the database stores them."""
        columns = dict(self.record.__dict__)
        columns |= {name: as_stored(columns[name]) for name in DECIMAL_COLUMNS if columns[name] is not None}
        columns["amount"] = columns["amount"].copy_abs()
        columns["direction"] = self.facet_key[3]
        columns["counterparty"] = counterparty_by_direction(self.record, self.facet_key[3])
        return {name: columns[name] for name in RECORD_COLUMNS}


def rows_of(records: Iterable[TransactionRecord]) -> dict[str, MirrorRow]:
    """The row of each record by transaction id; the last one wins for a repeated id.

    Raises UnstorableRecordError.
    """
    return {record.transaction_id: row_of(record) for record in records}


def row_of(record: TransactionRecord) -> MirrorRow:
    """The row of one record. Raises UnstorableRecordError."""
    reported = record.__dict__
    direction_code = direction(record)
    facet_key = (reported["currency"], reported["type"], reported["status"], direction_code)
    texts = (
        reported["transaction_id"],
        *facet_key,
        reported["date"],
        reported["from_currency"],
        reported["sender"],
        reported["username"],
        counterparty_by_direction(record, direction_code),
        reported["business_id"],
        reported["version"],
    )
    try:
        line = f"{_joined_texts(texts)}\t{_joined_values(reported)}"
    except ValueError as exc:
        raise UnstorableRecordError(record.transaction_id, str(exc)) from exc
    return MirrorRow(record, facet_key, line, blake2b(_VERSION + line.encode(), digest_size=16).digest())


def as_stored(number: Decimal) -> Decimal:
    """The number rounded as the database stores it. Raises ValueError if it is too large."""
    text = str(number)
    return number if len(text) <= _PLAIN_DIGITS and "E" not in text else rounded_for_storage(number)


def _joined_texts(texts: tuple[str, ...]) -> str:
    joined = "\t".join(texts)
    if len(joined) > _SHORT_TEXTS and (
        len(texts[0]) > _LONGEST_KEY or sum(map(len, texts[1:5])) > _LONGEST_KEY
    ):
        raise ValueError(_("its ID, currency, type or status is too long"))
    if "\\" in joined or "\n" in joined or "\r" in joined or joined.count("\t") != _TABS:
        return "\t".join(text.translate(_ESCAPES) for text in texts)
    return joined


def _joined_values(reported: Mapping[str, Any]) -> str:
    flag = reported["is_from_registered_user"]
    return "\t".join(
        (
            _number_text(reported["amount"]).lstrip("-"),
            _number_text(reported["fee"]),
            _number_text(reported["previous_balance"]),
            _number_text(reported["sender_previous_balance"]),
            _number_text(reported["from_amount"]),
            _time_text(reported["created_at"]),
            _time_text(reported["updated_at"]),
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
