"""Reads beyond the specification. The service may have them; the dialect's `capabilities` says which it has.

All of them change nothing, may be repeated, and are never needed: whoever calls one asks `is_on` first, or is ready
for CapabilityOffError, and goes on without. Like every read they raise RejectedError and ReadFailedError besides.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote

from payments_gateway._answers import Reply
from payments_gateway._transport import Transport
from payments_gateway.dialect import CAPABILITIES, Capability, Dialect
from payments_gateway.door import Door
from payments_gateway.errors import CapabilityOffError, NotSentError
from payments_gateway.money import UnreadableError
from payments_gateway.operations import Operation
from payments_gateway.schemas.extras import Bank, Minimum, Rate, SupportedCurrency, WalletOption
from payments_gateway.schemas.payments import Payment
from payments_gateway.schemas.transactions import TransactionRecord

T = TypeVar("T")


def _operation(name: Capability) -> Operation:
    point = f"extra_{name}_path"
    return Operation(f"extras.{name}", "GET", getattr(Dialect(), point), Door.V2, path_point=point)


# GET /payment/resolve is not here and must never be: the service moves money when it is asked for, although it is a
# GET, so it is no read, and a read is tried again. The rules of the dialect refuse every path, and `_place` every id,
# that would turn a read into it.
EXTRA_READS: Mapping[Capability, Operation] = MappingProxyType(
    {name: _operation(name) for name in CAPABILITIES}
)
"""The operations that the capabilities stand for; `operations.py` has those of the specification."""

_LONGEST_ID = 128
_NO_ID = re.compile(r"[/\\%\x00-\x20\x7f]|^\.{1,2}$|^$|resolve", re.IGNORECASE)


class Extras:
    """The optional reads, one method for each capability."""

    def __init__(self, transport: Transport, dialect: Dialect) -> None:
        self._transport = transport
        self._dialect = dialect

    def is_on(self, name: Capability) -> bool:
        """Whether the deployment says that the service has this read."""
        return name in self._dialect.capabilities

    def banks(self, *, country: str | None = None) -> list[Bank]:
        """Return the banks that money can be sent to, of one country or of all (GET /bank/supported)."""
        return self._ask("banks", _banks, query={self._dialect.extra_country_query: country})

    def rates(self) -> dict[str, Rate]:
        """Return the rate of each pair of currencies, by the pair's name, such as USDTNGN (GET /currency/rate).

        A rate moves: its `key` names it in a payment, for as long as the service honours it.
        """
        return self._ask("rates", _rates)

    def currencies(self) -> list[SupportedCurrency]:
        """Return the currencies that the service deals in (GET /currency/supported)."""
        return self._ask("currencies", _currencies)

    def minimums(self) -> list[Minimum]:
        """Return the least amount that can be moved in each currency (GET /currency/minimum-allowed)."""
        return self._ask("minimums", _minimums)

    def wallet_config(self) -> list[WalletOption]:
        """Return the crypto currencies of wallets and their networks (GET /wallet/supported/config)."""
        return self._ask("wallet_config", _wallet_config)

    def transaction(self, transaction_id: str) -> TransactionRecord:
        """Return one transaction by its id (GET /transaction/{transactionId}).

        Raises NotSentError for what cannot be an id, ReadFailedError also for an answer about another transaction.
        """
        return self._ask("transaction", partial(_record, self._dialect, transaction_id), transaction_id)

    def payment(self, payment_id: str) -> Payment:
        """Return one off-ramp payment by its id (GET /payment/{paymentId}).

        Raises NotSentError for what cannot be an id, ReadFailedError also for an answer about another payment.
        Never GET /payment/resolve, which moves money: `resolve` is refused as an id.
        """
        return self._ask("payment", partial(_payment, payment_id), payment_id)

    def _ask(
        self,
        name: Capability,
        into: Callable[[Reply], T],
        identity: str | None = None,
        query: Mapping[str, object] | None = None,
    ) -> T:
        """Ask, if the read is switched on. Raises CapabilityOffError otherwise, and nothing was asked."""
        if not self.is_on(name):
            raise CapabilityOffError(
                f"Reading {name} is not switched on for this service. Nothing was asked. "
                "It is, once `capabilities` in the dialect names it."
            )
        path = EXTRA_READS[name].path_in(self._dialect)
        path = path if identity is None else _place(path, identity)
        return self._transport.read("GET", path, query=query, into=into)


def _place(path: str, identity: str) -> str:
    """Put an id where the path has its braces, percent-encoded, so that it stays one segment of it.

    Refused, with NotSentError, is an id that servers on the way may read as more than one segment, or as none (a
    slash, a backslash, a percent sign, dots alone, control characters), and one that would name another operation.
    """
    if len(identity) > _LONGEST_ID or _NO_ID.search(identity):
        raise NotSentError("This cannot be an id of the service. Nothing was asked.")
    try:
        return re.sub(r"\{\w+\}", lambda _: quote(identity, safe=""), path)
    except UnicodeEncodeError as exc:
        raise NotSentError("This cannot be an id of the service. Nothing was asked.") from exc


def _entries(data: object, name: str, value: str) -> Iterator[object]:
    """Yield the entries of a list, or of a map by name, as objects that hold their name and value."""
    match data:
        case list():
            yield from (item if isinstance(item, dict) else {name: item} for item in data)
        case dict():
            for key, item in data.items():
                yield {name: key, **item} if isinstance(item, dict) else {name: key, value: item}
        case _:
            raise UnreadableError("its data have an unknown shape")


EntryT = TypeVar("EntryT", Bank, SupportedCurrency, Minimum, WalletOption)


def _all(kind: type[EntryT], name: str, value: str, reply: Reply) -> list[EntryT]:
    return [kind.model_validate(entry) for entry in _entries(reply.members.get("data"), name, value)]


def _rates(reply: Reply) -> dict[str, Rate]:
    """Read the pairs; what else the service puts beside them (a time stamp, a note) is no pair."""
    pairs = {pair: item for pair, item in reply.data.items() if isinstance(item, dict)}
    return {pair: Rate.model_validate({"pair": pair, **item}) for pair, item in pairs.items()}


_banks = partial(_all, Bank, "Code", "Name")
_currencies = partial(_all, SupportedCurrency, "code", "name")
_minimums = partial(_all, Minimum, "currency", "amount")
_wallet_config = partial(_all, WalletOption, "currency", "networks")


def _record(dialect: Dialect, transaction_id: str, reply: Reply) -> TransactionRecord:
    """Read a record from the answer itself or from its `data`."""
    members = reply.members if "transactionId" in reply.members else reply.data
    record = TransactionRecord.model_validate(members)
    if record.transaction_id != transaction_id:
        raise UnreadableError("it tells of another transaction")
    return record.model_copy(update={"status": dialect.status(record.status)})


def _payment(payment_id: str, reply: Reply) -> Payment:
    """Read a payment from the answer itself or from its `data`."""
    members = reply.members if "_id" in reply.members else reply.data
    payment = Payment.model_validate(members | {"raw": members})
    if payment.id != payment_id:
        raise UnreadableError("it tells of another payment")
    return payment
