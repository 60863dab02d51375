"""Bank accounts: open and list the merchant's own (v4), and resolve the holder of any account (POST /bank/resolve)."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated

from pydantic import AliasChoices, Field

from payments_gateway.errors import gettext_noop as _
from payments_gateway.fields import (
    CurrencyCode,
    LenientText,
    OptionalAmount,
    RequestModel,
    RequiredText,
    Text,
    Timestamp,
    WireModel,
)
from payments_gateway.money import UnreadableError
from payments_gateway.operations import Endpoint
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.responses import (
    CONTRADICTION,
    ENTRY_NOT_AN_OBJECT,
    NOT_TEXT,
    ParsedResponse,
    dotted,
    first_list,
    is_of_type,
    member_named,
    missing,
    no_entries,
    object_in,
    rename_members,
    text_at,
)
from payments_gateway.transport import Resource

#: Bank code of the Central Bank of Nigeria -> usual name of the bank.
BANKS: Mapping[str, str] = {
    "044": "Access Bank",
    "023": "Citibank Nigeria",
    "050": "Ecobank Nigeria",
    "070": "Fidelity Bank",
    "011": "First Bank of Nigeria",
    "214": "First City Monument Bank",
    "103": "Globus Bank",
    "058": "GTBank",
    "301": "Jaiz Bank",
    "082": "Keystone Bank",
    "303": "Lotus Bank",
    "107": "Optimus Bank",
    "104": "Parallex Bank",
    "076": "Polaris Bank",
    "105": "PremiumTrust Bank",
    "101": "Providus Bank",
    "106": "Signature Bank",
    "221": "Stanbic IBTC Bank",
    "068": "Standard Chartered Bank",
    "232": "Sterling Bank",
    "100": "SunTrust Bank",
    "302": "TAJBank",
    "102": "Titan Trust Bank",
    "032": "Union Bank of Nigeria",
    "033": "United Bank for Africa",
    "215": "Unity Bank",
    "035": "Wema Bank",
    "057": "Zenith Bank",
}


class AccountRequest(RequestModel):
    """A bank account to open for the merchant, who must have completed the provider's KYC."""

    account_name: Annotated[RequiredText, Field(alias="accountName")]
    currency: RequiredText
    preferred_account_name: Annotated[RequiredText | None, Field(alias="preferredAccountName")] = None

    def wire(self) -> dict[str, object]:
        """Return the body of PUT {base_url_v4}/account, without members that are not set."""
        return self.model_dump(by_alias=True, exclude_none=True)


class CreatedAccount(WireModel):
    """A bank account that the provider has opened. The only documented status is ACTIVE.

    `provider_message` is the message of the response, in one line.
    """

    account_name: LenientText = ""
    account_number: LenientText = ""
    bank_code: LenientText = ""
    bank_name: LenientText = ""
    currency: LenientText = ""
    status: LenientText = ""
    provider_message: str = ""


class Asset(WireModel):
    """The balance of an account in one currency, and the account number or address that receives it.

    The balances are None if not reported.
    """

    currency: CurrencyCode
    address: Annotated[Text, Field(alias="id")]
    type: LenientText = ""
    balance: OptionalAmount = None
    pending_debit: Annotated[OptionalAmount, Field(alias="pendingDebit")] = None


class Account(WireModel):
    """An account of the merchant in the v4 API, with its balance in each currency.

    The name is empty if the provider lists accounts by currency, without names.
    """

    account_name: Annotated[Text, Field(alias="accountName")] = ""
    assets: tuple[Asset, ...] = ()


class AccountHolder(WireModel):
    """The holder of a bank account, and what else the bank reported."""

    account_name: Annotated[Text, Field(alias="accountname", min_length=1)]
    account_number: Annotated[
        Text,
        Field(validation_alias=AliasChoices("account_number", "accountnumber", "accountNumber")),
    ] = ""
    bank_code: Text = ""
    bank_name: Text = ""
    phone_number: Annotated[LenientText, Field(alias="phonenumber", repr=False)] = ""
    currency: LenientText = ""
    country: LenientText = ""
    response_code: Annotated[LenientText, Field(alias="responsecode")] = ""
    response_message: Annotated[LenientText, Field(alias="responsemessage")] = ""
    unique_reference: Annotated[LenientText, Field(alias="uniquereference")] = ""
    internal_reference: Annotated[LenientText, Field(alias="internalreference")] = ""
    is_visible: LenientText = ""
    is_trashed: LenientText = ""
    deleted_at: Timestamp = None
    created_at: Timestamp = None
    updated_at: Timestamp = None


class Accounts(Resource):
    """The operations under {base_url_v4}/account, which take two credential headers instead of three."""

    def create(self, request: AccountRequest) -> list[CreatedAccount]:
        """Open a bank account for the merchant (PUT {base_url_v4}/account).

        The merchant must have completed the provider's KYC. Returns the opened accounts, usually one; empty
        when the response names none. Takes no one-time code.

        Not repeatable: a second call may open a second account. Raises RejectedError when the provider
        rejected the request (KycRequiredError without KYC), NotSentError when nothing was sent,
        OutcomeUnknownError otherwise. Specification: Endpoints, PUT {base_url_v4}/account; Created bank
        account; Errors.
        """
        return self._transport.send_once(
            "PUT", "/account", request.wire(), endpoint=Endpoint.V4, into=_parse_created_accounts
        )

    def list(
        self, *, account_name: str | None = None, page: int | None = None, per_page: int | None = None
    ) -> list[Account]:
        """Return one page of the merchant's accounts with their assets (GET {base_url_v4}/account).

        Pages count from 1; for omitted arguments the provider's defaults apply. A map by currency is read as one
        account without a name for each currency. Changes nothing and is retried. Raises RejectedError,
        ReadFailedError, also for an account with neither name nor assets. Specification: Endpoints, end of PUT
        {base_url_v4}/account (request and response are not shown).
        """
        profile = self._profile
        query = {
            profile.account_name_query: account_name,
            profile.account_page_query: None if page is None else page - 1 + profile.first_page,
            profile.account_per_page_query: per_page,
        }
        return self._transport.read(
            "GET", "/account", query=query, endpoint=Endpoint.V4, into=partial(_parse_accounts, profile)
        )


def _parse_created_accounts(response: ParsedResponse) -> list[CreatedAccount]:
    data = response.members.get("data")
    if not isinstance(data, (list, dict)):
        raise UnreadableError(_("it contains no accounts"))
    accounts = data if isinstance(data, list) else [data]
    created = [CreatedAccount.model_validate(account) for account in accounts if account != {}]
    return [account.model_copy(update={"provider_message": response.message}) for account in created]


def _parse_accounts(profile: ProviderProfile, response: ParsedResponse) -> list[Account]:
    """Read the accounts from a list, or from a map by currency; an empty map needs `accounts_by_currency`."""
    data = response.members.get("data")
    listed = {path[0] for path in profile.account_list_paths if path}
    if isinstance(data, dict) and not listed & data.keys() and (data or profile.accounts_by_currency):
        found = [_parse_account(profile, object_in(data, currency), currency) for currency in data]
        return [account for account in found if account.assets]
    return [_parse_account(profile, account) for account in first_list(data, profile.account_list_paths)]


def _parse_account(profile: ProviderProfile, account: object, currency: str = "") -> Account:
    """Read one account. Raises UnreadableError without assets: it would appear to have no account number."""
    if not isinstance(account, dict):
        raise UnreadableError(ENTRY_NOT_AN_OBJECT, member="accounts")
    name = member_named(account, profile.account_assets_members)
    assets = tuple(_parse_assets(profile, name, account[name], currency))
    if not (assets or currency or str(account.get("accountName") or "").strip()):
        raise UnreadableError(_("an account has neither accountName nor anything in {member}"), member=name)
    return Account.model_validate(account | {"assets": assets})


def _parse_assets(profile: ProviderProfile, name: str, found: object, currency: str) -> Iterator[Asset]:
    """Read the assets from a list, or from a map by currency. `currency` is that of an asset which names none."""
    listed: list[tuple[dict[str, object], object]]
    match found:
        case list():
            listed = [({"currency": currency} if currency else {}, asset) for asset in found]
        case dict() if found:
            listed = [({"currency": code}, asset) for code, asset in found.items()]
        case _:
            raise no_entries(name, found)
    for default, asset in listed:
        if not isinstance(asset, dict):
            raise UnreadableError(ENTRY_NOT_AN_OBJECT, member=name)
        code = default.get("currency")
        if code and asset.get("currency", code) != code:
            raise UnreadableError(CONTRADICTION, members=f"{code}, currency")
        number = _number_member(profile, asset)
        yield Asset.model_validate(rename_members(default | asset, {"id": [number]}))


def _number_member(profile: ProviderProfile, asset: Mapping[str, object]) -> str:
    """The member with the account number; payers use it, so it is not chosen among several that differ."""
    named = [name for name in profile.asset_number_members if name in asset]
    if not named:
        raise missing(profile.asset_number_members)
    for name in named:
        if not is_of_type(asset[name], "string") and not is_of_type(asset[name], "integer"):
            raise UnreadableError(NOT_TEXT, member=name)
    given = {str(asset[name]): name for name in reversed(named) if asset[name] != ""}
    if len(given) > 1:
        raise UnreadableError(CONTRADICTION, members=", ".join(named))
    return next(iter(given.values()), named[0])


class Banks(Resource):
    """The operations under /bank."""

    def resolve(self, *, account_number: str, bank_code: str) -> AccountHolder:
        """Return the holder of a bank account (POST /bank/resolve, without credentials).

        Changes nothing although it is a POST, so it is retried. Raises RejectedError when the provider does
        not know the account, ReadFailedError otherwise, also when the response names no holder or another account.
        Specification: Endpoints, POST /bank/resolve; Bank account resolution result.
        """
        body = {"accountNumber": account_number, "bankCode": bank_code}
        into = partial(_parse_holder, self._profile, account_number)
        return self._transport.read("POST", "/bank/resolve", body=body, endpoint=Endpoint.V2_OPEN, into=into)


def _parse_holder(profile: ProviderProfile, account_number: str, response: ParsedResponse) -> AccountHolder:
    found_names = [text_at(response.data, [path]) for path in profile.holder_name_paths]
    names = [name for name in found_names if name is not None]
    if not names:
        raise missing(dotted(profile.holder_name_paths))
    if len({" ".join(name.split()).casefold() for name in names}) > 1:
        raise UnreadableError(CONTRADICTION, members=", ".join(dotted(profile.holder_name_paths)))
    bank = {
        "accountname": names[0],
        "bank_code": text_at(response.data, profile.bank_code_paths),
        "bank_name": text_at(response.data, profile.bank_name_paths),
    }
    found = AccountHolder.model_validate(response.data | bank)
    if found.account_number not in {"", account_number}:
        raise UnreadableError(_("it is about another account"))
    return found
