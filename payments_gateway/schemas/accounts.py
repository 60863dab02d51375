"""Bank accounts: open and list them ({base_url_v4}/account), resolve a holder (POST /bank/resolve), bank
codes.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from payments_gateway.schemas.fields import (
    LenientText,
    OptionalAmount,
    RequestModel,
    RequiredText,
    Text,
    Timestamp,
    WireModel,
)

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
    """A bank account that the provider has opened. The only documented status is ACTIVE."""

    account_name: LenientText = ""
    account_number: LenientText = ""
    bank_code: LenientText = ""
    bank_name: LenientText = ""
    currency: LenientText = ""
    status: LenientText = ""


class Asset(WireModel):
    """The balance of an account in one currency, and the address that receives it."""

    currency: LenientText = ""
    address: Annotated[LenientText, Field(alias="id")] = ""
    type: LenientText = ""
    balance: OptionalAmount = None


class Account(WireModel):
    """An account of the merchant in the v4 API, with its balance in each currency."""

    account_name: Annotated[LenientText, Field(alias="accountName")] = ""
    assets: tuple[Asset, ...] = ()


class AccountHolder(WireModel):
    """The holder of a bank account, and what else the bank reported."""

    account_name: Annotated[Text, Field(alias="accountname", min_length=1)]
    account_number: Annotated[Text, Field(alias="accountnumber")] = ""
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
