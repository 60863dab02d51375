"""Bank accounts: opening and listing them ({base_url_v4}/account), resolving their holder (POST /bank/resolve),
and the bank codes of Nigeria.
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

#: Code that the Central Bank of Nigeria gave a bank -> the bank's usual name.
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
    """A bank account to be opened for the merchant, who must have completed the service's KYC."""

    account_name: Annotated[RequiredText, Field(alias="accountName")]
    currency: RequiredText
    preferred_account_name: Annotated[RequiredText | None, Field(alias="preferredAccountName")] = None

    def wire(self) -> dict[str, object]:
        """Return the body of PUT {base_url_v4}/account; what is not given is left out."""
        return self.model_dump(by_alias=True, exclude_none=True)


class CreatedAccount(WireModel):
    """A bank account that the service has opened. Of its status only ACTIVE is documented."""

    account_name: LenientText = ""
    account_number: LenientText = ""
    bank_code: LenientText = ""
    bank_name: LenientText = ""
    currency: LenientText = ""
    status: LenientText = ""


class Asset(WireModel):
    """What an account holds in one currency, and where it receives it."""

    currency: LenientText = ""
    address: Annotated[LenientText, Field(alias="id")] = ""
    type: LenientText = ""
    balance: OptionalAmount = None


class Account(WireModel):
    """An account of the merchant in the v4 family, with what it holds in each currency."""

    account_name: Annotated[LenientText, Field(alias="accountName")] = ""
    assets: tuple[Asset, ...] = ()


class AccountHolder(WireModel):
    """Whose bank account it is, and what else the bank said."""

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
