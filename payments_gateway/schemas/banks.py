"""What the operations under /bank give."""

from typing import Annotated

from pydantic import Field

from payments_gateway.schemas.fields import Text, Wire


class AccountHolder(Wire):
    """Whose bank account it is."""

    account_name: Annotated[Text, Field(alias="accountname", min_length=1)]
    account_number: Annotated[Text, Field(alias="accountnumber")] = ""
    bank_code: Text = ""
    bank_name: Text = ""
