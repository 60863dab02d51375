"""What the operations on {base_url_v4}/account take and give (specification: Created bank account)."""

from typing import Annotated

from pydantic import Field

from payments_gateway.schemas.fields import Filled, OptionalAmount, Remark, Request, Wire


class AccountRequest(Request):
    """A bank account to be opened for the merchant, who must have completed the service's KYC."""

    account_name: Annotated[Filled, Field(alias="accountName")]
    currency: Filled
    preferred_account_name: Annotated[Filled | None, Field(alias="preferredAccountName")] = None

    def wire(self) -> dict[str, object]:
        """Return the body of PUT {base_url_v4}/account; what is not given is left out."""
        return self.model_dump(by_alias=True, exclude_none=True)


class CreatedAccount(Wire):
    """A bank account that the service has opened. Of its status only ACTIVE is documented."""

    account_name: Remark = ""
    account_number: Remark = ""
    bank_code: Remark = ""
    bank_name: Remark = ""
    currency: Remark = ""
    status: Remark = ""


class Asset(Wire):
    """What an account holds in one currency, and where it receives it."""

    currency: Remark = ""
    address: Annotated[Remark, Field(alias="id")] = ""
    type: Remark = ""
    balance: OptionalAmount = None


class Account(Wire):
    """An account of the merchant in the v4 family, with what it holds in each currency."""

    account_name: Annotated[Remark, Field(alias="accountName")] = ""
    assets: tuple[Asset, ...] = ()
