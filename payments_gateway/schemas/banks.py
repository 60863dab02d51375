"""What POST /bank/resolve gives (specification: Bank account resolution result)."""

from typing import Annotated

from pydantic import Field

from payments_gateway.schemas.fields import Moment, Remark, Text, Wire


class AccountHolder(Wire):
    """Whose bank account it is, and what else the bank said."""

    account_name: Annotated[Text, Field(alias="accountname", min_length=1)]
    account_number: Annotated[Text, Field(alias="accountnumber")] = ""
    bank_code: Text = ""
    bank_name: Text = ""
    phone_number: Annotated[Remark, Field(alias="phonenumber", repr=False)] = ""
    currency: Remark = ""
    country: Remark = ""
    response_code: Annotated[Remark, Field(alias="responsecode")] = ""
    response_message: Annotated[Remark, Field(alias="responsemessage")] = ""
    unique_reference: Annotated[Remark, Field(alias="uniquereference")] = ""
    internal_reference: Annotated[Remark, Field(alias="internalreference")] = ""
    is_visible: Remark = ""
    is_trashed: Remark = ""
    deleted_at: Moment = None
    created_at: Moment = None
    updated_at: Moment = None
