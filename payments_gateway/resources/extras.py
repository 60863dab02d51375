"""Optional reads beyond the specification. The profile's `capabilities` lists those that the provider offers.

They change nothing, are retried, and are never required: callers check `is_on` first, or handle
CapabilityOffError. Like every read they also raise RejectedError and ReadFailedError. The schemas of the
responses are defined here as well; their shapes are not specified, so several spellings are accepted.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Annotated, TypeVar
from urllib.parse import quote

from pydantic import AliasChoices, BeforeValidator, Field

from payments_gateway.errors import CapabilityOffError, NotSentError
from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import Amount, Text, WireModel
from payments_gateway.money import UnreadableError
from payments_gateway.operations import ApiOperation, Endpoint
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import CAPABILITIES, Capability
from payments_gateway.resources.payments import Payment
from payments_gateway.resources.transactions import TransactionRecord
from payments_gateway.responses import ParsedResponse
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
    """A currency that the provider supports."""

    code: Annotated[Text, Field(validation_alias=AliasChoices("code", "currency"), min_length=1)]
    name: Text = ""


class Minimum(WireModel):
    """The minimum amount of a currency; None where the response gives no number for it."""

    currency: Annotated[Text, Field(validation_alias=AliasChoices("currency", "code"), min_length=1)]
    amount: Annotated[
        Amount | None, Field(validation_alias=AliasChoices("amount", "minimum", "minimumAllowed"))
    ] = None


def _network_names(value: object) -> list[object]:
    """Accept one network or several, each as a text or as an object that names it."""
    found = value if isinstance(value, list) else [value]
    return [item.get("network", item.get("name")) if isinstance(item, dict) else item for item in found]


class WalletOption(WireModel):
    """A cryptocurrency of the merchant's wallets, and the networks on which it can be sent."""

    currency: Annotated[Text, Field(validation_alias=AliasChoices("currency", "code"), min_length=1)]
    networks: Annotated[
        list[Text],
        BeforeValidator(_network_names),
        Field(validation_alias=AliasChoices("networks", "network")),
    ] = []


T = TypeVar("T")


def _extra_operation(name: Capability) -> ApiOperation:
    point = f"extra_{name}_path"
    return ApiOperation(
        f"extras.{name}", "GET", getattr(ProviderProfile(), point), Endpoint.V2, path_point=point
    )


# GET /payment/resolve must never be added: it moves money although it is a GET, and reads are retried. The profile's
# validation rejects every path, and `_fill_in_id` every id, that would turn a read into it.
EXTRA_OPERATIONS: Mapping[Capability, ApiOperation] = MappingProxyType(
    {name: _extra_operation(name) for name in CAPABILITIES}
)
"""The operations of the capabilities; `operations.py` lists those of the specification."""

_LONGEST_ID = 128
_CAPABILITY_OFF = _(
    "Reading {name} is not enabled for this provider. Nothing was sent. To enable it, add it to `capabilities` in "
    "the provider profile."
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
        path = EXTRA_OPERATIONS[name].path_in(self._profile)
        path = path if identity is None else _fill_in_id(path, identity)
        return self._transport.read("GET", path, query=query, into=into)


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


def _entries_of(data: object, name: str, value: str) -> Iterator[object]:
    """Yield the entries of a list, or of a map by name, as objects that contain their name and value."""
    match data:
        case list():
            yield from (item if isinstance(item, dict) else {name: item} for item in data)
        case dict():
            for key, item in data.items():
                yield {name: key, **item} if isinstance(item, dict) else {name: key, value: item}
        case _:
            raise UnreadableError(_("its data has an unknown structure"))


EntryT = TypeVar("EntryT", Bank, SupportedCurrency, Minimum, WalletOption)


def _parse_entries(kind: type[EntryT], name: str, value: str, response: ParsedResponse) -> list[EntryT]:
    return [kind.model_validate(entry) for entry in _entries_of(response.members.get("data"), name, value)]


def _parse_rates(response: ParsedResponse) -> dict[str, Rate]:
    """Read the currency pairs; other members beside them (a timestamp, a note) are ignored."""
    pairs = {pair: item for pair, item in response.data.items() if isinstance(item, dict)}
    return {pair: Rate.model_validate({"pair": pair, **item}) for pair, item in pairs.items()}


_parse_banks = partial(_parse_entries, Bank, "Code", "Name")
_parse_currencies = partial(_parse_entries, SupportedCurrency, "code", "name")
_parse_minimums = partial(_parse_entries, Minimum, "currency", "amount")
_parse_wallet_config = partial(_parse_entries, WalletOption, "currency", "networks")


def _parse_transaction(
    profile: ProviderProfile, transaction_id: str, response: ParsedResponse
) -> TransactionRecord:
    """Read a record from the response itself or from its `data`."""
    members = response.members if "transactionId" in response.members else response.data
    record = TransactionRecord.model_validate(members)
    if record.transaction_id != transaction_id:
        raise UnreadableError(_("it is about another transaction"))
    return record.model_copy(update={"status": profile.status(record.status)})


def _parse_payment(payment_id: str, response: ParsedResponse) -> Payment:
    """Read a payment from the response itself or from its `data`."""
    members = response.members if "_id" in response.members else response.data
    payment = Payment.model_validate(members | {"raw": members})
    if payment.id != payment_id:
        raise UnreadableError(_("it is about another payment"))
    return payment
