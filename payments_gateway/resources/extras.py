"""Optional reads beyond the specification. The profile's `capabilities` lists those that the provider offers.

They change nothing, are retried, and are never required: callers check `is_on` first, or handle
CapabilityOffError. Like every read they also raise RejectedError and ReadFailedError. The schemas of the
responses are defined here as well; their shapes are not specified, so several spellings are accepted.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, TypeGuard, TypeVar
from urllib.parse import quote

from pydantic import AliasChoices, BeforeValidator, Field

from payments_gateway.errors import CapabilityOffError, NotSentError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import Amount, CurrencyCode, Text, WireModel
from payments_gateway.money import UnreadableError
from payments_gateway.operations import ApiOperation, Endpoint
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import CAPABILITIES, Capability
from payments_gateway.resources.payments import Payment
from payments_gateway.resources.transactions import TransactionRecord
from payments_gateway.responses import (
    CONTRADICTION,
    NOT_AN_OBJECT_OR_LIST,
    ParsedResponse,
    list_in,
    no_entries,
    object_in,
    wrong_type,
)
from payments_gateway.transport import Resource


class Bank(WireModel):
    code: Annotated[Text, Field(alias="Code", min_length=1)]
    name: Annotated[Text, Field(alias="Name", min_length=1)]


class Rate(WireModel):
    """The value of one unit of a pair's first currency in the second; `key` is the `rateKey` of a payment."""

    pair: Annotated[Text, Field(min_length=1)]
    rate: Annotated[Amount, Field(gt=0)]
    key: Text = ""


class SupportedCurrency(WireModel):
    """A currency that the provider supports; whether it takes it in and pays it out is None if not reported."""

    code: Annotated[CurrencyCode, Field(validation_alias=AliasChoices("code", "currency"))]
    name: Text = ""
    is_incoming: bool | None = None
    is_outgoing: bool | None = None


class Minimum(WireModel):
    currency: Annotated[CurrencyCode, Field(validation_alias=AliasChoices("currency", "code"))]
    amount: Annotated[Amount, Field(validation_alias=AliasChoices("amount", "minimum", "minimumAllowed"))]


def _network_names(value: object) -> list[object]:
    """Accept one network or several, each as a text or as an object that names it, or a map by network."""
    if _is_map_of_objects(value):
        return list(value)
    found = value if isinstance(value, list) else [value]
    return [item.get("network", item.get("name")) if isinstance(item, dict) else item for item in found]


def _is_map_of_objects(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict) and bool(value) and all(isinstance(item, dict) for item in value.values())


class WalletOption(WireModel):
    """A cryptocurrency of the merchant's wallets, and the networks on which it can be sent."""

    currency: Annotated[CurrencyCode, Field(validation_alias=AliasChoices("currency", "code"))]
    networks: Annotated[
        list[Annotated[Text, Field(min_length=1)]],
        BeforeValidator(_network_names),
        Field(validation_alias=AliasChoices("networks", "network"), min_length=1),
    ]


T = TypeVar("T")


def _extra_operation(name: Capability) -> ApiOperation:
    point = f"extra_{name}_path"
    return ApiOperation(
        f"extras.{name}",
        "GET",
        getattr(ProviderProfile(), point),
        Endpoint.V2,
        path_point=point,
        has_open_credentials="{" not in getattr(ProviderProfile(), point),
    )


# GET /payment/resolve must never be added: it moves money although it is a GET, and reads are retried. The profile's
# validation rejects every path, and `_fill_in_id` every id, that would turn a read into it.
EXTRA_OPERATIONS: Mapping[Capability, ApiOperation] = MappingProxyType(
    {name: _extra_operation(name) for name in CAPABILITIES}
)
"""The operations of the capabilities; `operations.py` lists those of the specification."""

_LONGEST_ID = 128
_CAPABILITY_OFF = _(
    "Reading {name} is not enabled for this provider. Nothing was sent. Ask the operator to add {name} to "
    "“capabilities” in the provider profile."
)
_FORBIDDEN_IN_ID = re.compile(r"[/\\%\x00-\x20\x7f]|^\.{1,2}$|^$|resolve", re.IGNORECASE)


class Extras(Resource):
    """The optional reads, one method for each capability."""

    def is_on(self, name: Capability) -> bool:
        """Whether the profile lists this read among the provider's capabilities."""
        return name in self._profile.capabilities

    def banks(self, *, country: str | None = None) -> list[Bank]:
        """Return the banks that money can be sent to, of one country or of all (GET /bank/supported)."""
        return self._ask("banks", _parse_banks, query={self._profile.extra_country_query: country})

    def rates(self) -> dict[str, Rate]:
        """Return the rate of each currency pair, by the pair's name, such as USDTNGN (GET /currency/rate).

        Rates change; the `key` of one can be used in a payment for as long as the provider honours it.
        """
        return self._ask("rates", _parse_rates)

    def currencies(self) -> list[SupportedCurrency]:
        """Return the currencies that the provider supports (GET /currency/supported)."""
        return self._ask("currencies", _parse_currencies)

    def minimums(self) -> list[Minimum]:
        """Return the minimum amount of each currency (GET /currency/minimum-allowed)."""
        return self._ask("minimums", _parse_minimums)

    def wallet_config(self) -> list[WalletOption]:
        """Return the cryptocurrencies of wallets and their networks (GET /wallet/supported/config)."""
        return self._ask("wallet_config", _parse_wallet_config)

    def transaction(self, transaction_id: str) -> TransactionRecord:
        """Return one transaction by its id (GET /transaction/{transactionId}).

        Raises NotSentError for an invalid id, ReadFailedError also for a response about another transaction.
        """
        return self._ask(
            "transaction", partial(_parse_transaction, self._profile, transaction_id), transaction_id
        )

    def payment(self, payment_id: str) -> Payment:
        """Return one off-ramp payment by its id (GET /payment/{paymentId}).

        Raises NotSentError for an invalid id, ReadFailedError also for a response about another payment.
        Never calls GET /payment/resolve, which moves money: `resolve` is not a valid id.
        """
        return self._ask("payment", partial(_parse_payment, payment_id), payment_id)

    def _ask(
        self,
        name: Capability,
        into: Callable[[ParsedResponse], T],
        identity: str | None = None,
        query: Mapping[str, object] | None = None,
    ) -> T:
        """Send the read if it is a capability. Raises CapabilityOffError otherwise; then nothing is sent."""
        if not self.is_on(name):
            raise CapabilityOffError.of(_CAPABILITY_OFF, name=name)
        operation = EXTRA_OPERATIONS[name]
        path = operation.path_in(self._profile)
        path = path if identity is None else _fill_in_id(path, identity)
        endpoint = operation.endpoint_in(self._profile)
        return self._transport.read("GET", path, query=query, endpoint=endpoint, into=into)


def _fill_in_id(path: str, identity: str) -> str:
    """Insert a percent-encoded id for the braces of the path, as exactly one segment.

    Raises NotSentError for an id that a server on the way may read as several segments or none (slash,
    backslash, percent sign, only dots, control characters), and for one that would name another operation.
    """
    if len(identity) > _LONGEST_ID or _FORBIDDEN_IN_ID.search(identity):
        raise NotSentError.of(_("This is not a valid provider ID. Nothing was sent."))
    try:
        return re.sub(r"\{\w+\}", lambda _braces: quote(identity, safe=""), path)
    except UnicodeEncodeError as exc:
        raise NotSentError.of(_("This is not a valid provider ID. Nothing was sent.")) from exc


def _entries_of(member: str, data: object, name: str, value: str) -> Iterator[object]:
    """Yield the entries of a list, or of a map by name, as objects that contain their name and value."""
    match data:
        case list():
            yield from (item if isinstance(item, dict) else {name: item} for item in data)
        case dict() if data:
            for key, item in data.items():
                yield {name: key, **item} if isinstance(item, dict) else {name: key, value: item}
        case _:
            raise no_entries(member, data)


EntryT = TypeVar("EntryT", Bank, SupportedCurrency, Minimum, WalletOption)


def _parse_entries(kind: type[EntryT], name: str, value: str, response: ParsedResponse) -> list[EntryT]:
    entries = _entries_of("data", response.members.get("data"), name, value)
    return [kind.model_validate(entry) for entry in entries]


def _parse_rates(response: ParsedResponse) -> dict[str, Rate]:
    """Read the currency pairs; other members beside them (a timestamp, a note) are ignored."""
    data = response.data
    pairs = [pair for pair, item in data.items() if isinstance(item, dict) or pair.isupper()]
    if not pairs:
        raise UnreadableError(_("it contains no currency pair"))
    return {pair: Rate.model_validate({"pair": pair, **object_in(data, pair)}) for pair in pairs}


_parse_banks = partial(_parse_entries, Bank, "Code", "Name")
_parse_minimums = partial(_parse_entries, Minimum, "currency", "amount")

_DIRECTIONS = {"incomingCurrencies": "is_incoming", "outgoingCurrencies": "is_outgoing"}


def _parse_currencies(response: ParsedResponse) -> list[SupportedCurrency]:
    """Read a list or map of currencies, or the two lists of those taken in and paid out."""
    data = response.members.get("data")
    if not isinstance(data, dict) or not _DIRECTIONS.keys() & data.keys():
        return _parse_entries(SupportedCurrency, "code", "name", response)
    found: dict[str, SupportedCurrency] = {}
    for member, direction in _DIRECTIONS.items():
        for entry in _entries_of(member, list_in(data, member), "code", "name"):
            each = SupportedCurrency.model_validate(entry)
            known = found.get(each.code) or each.model_copy(update=dict.fromkeys(_DIRECTIONS.values(), False))
            found[each.code] = known.model_copy(update={direction: True})
    return list(found.values())


def _parse_wallet_config(response: ParsedResponse) -> list[WalletOption]:
    """Read a list or map of currencies, or `byCurrency`, beside which `byNetwork` says the same."""
    if response.members.get("state", True) is False:
        raise UnreadableError(_("{member} is false"), member="state")
    data = response.members.get("data")
    if not isinstance(data, dict) or not {"byCurrency", "byNetwork"} & data.keys():
        return _parse_entries(WalletOption, "currency", "networks", response)
    by_currency = data.get("byCurrency")
    if not isinstance(by_currency, (dict, list)):
        raise wrong_type(data, "byCurrency", NOT_AN_OBJECT_OR_LIST)
    if by_currency == [] and data.get("byNetwork"):
        raise UnreadableError(CONTRADICTION, members="byCurrency, byNetwork")
    entries = _entries_of("byCurrency", by_currency, "currency", "networks")
    return [WalletOption.model_validate(_as_option(entry)) for entry in entries]


def _as_option(entry: object) -> object:
    """A currency of `byCurrency`, whose other members are its networks unless one of them lists them."""
    if not isinstance(entry, dict) or {"networks", "network"} & entry.keys():
        return entry
    networks = {name: item for name, item in entry.items() if name not in {"currency", "code"}}
    return {**entry, "networks": networks} if _is_map_of_objects(networks) else entry


def _parse_transaction(
    profile: ProviderProfile, transaction_id: str, response: ParsedResponse
) -> TransactionRecord:
    """Read a record from the response itself or from its `data`."""
    members = response.data if "data" in response.members else response.members
    record = TransactionRecord.model_validate(members)
    if record.transaction_id != transaction_id:
        raise UnreadableError(_("it is about another transaction"))
    return record.model_copy(update={"status": profile.status(record.status)})


def _parse_payment(payment_id: str, response: ParsedResponse) -> Payment:
    """Read a payment from the response itself or from its `data`."""
    members = response.data if "data" in response.members else response.members
    payment = Payment.model_validate(members | {"raw": members})
    if payment.id is None:
        raise wrong_type(members, "_id", _("{member} is not the ID of a payment"))
    if payment.id != payment_id:
        raise UnreadableError(_("it is about another payment"))
    return payment
