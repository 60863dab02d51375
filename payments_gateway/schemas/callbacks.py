"""What the callback operations take, and what webhook deliveries tell."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from payments_gateway.schemas.fields import Amount, Filled, Text, Wire
from payments_gateway.schemas.transactions import TransactionRecord

_LONGEST_URL = 2048


def _web_address(text: str) -> str:
    if len(text) > _LONGEST_URL or not text.isprintable() or " " in text:
        raise ValueError(f"a web address has at most {_LONGEST_URL} characters and no spaces")
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise ValueError(
            "a callback URL begins with https:// or http://, names a host, and holds no password"
        )
    return text


class CallbackUrl(Wire):
    """Where the service sends its webhooks."""

    callback_url: Annotated[Filled, Field(alias="callbackUrl"), AfterValidator(_web_address)]


class TransactionNews(TransactionRecord):
    """The data of `Transaction updated`: the record as the sender says it now is, to be read again at the service."""

    session_id: Text = ""
    reference: Text = ""
    failure_reason: Text = ""


class PaymentNews(Wire):
    """The data of `Payment created` and `Payment updated`. It carries no id: a payment is found by its reference."""

    reference: Annotated[Text, Field(min_length=1)]
    state: Text = ""
    resolve_id: Text = ""
    incoming_currency: Annotated[Text, Field(alias="incomingCurrency")] = ""
    outgoing_currency: Annotated[Text, Field(alias="outgoingCurrency")] = ""
    incoming_amount: Annotated[Amount | None, Field(alias="incomingAmount")] = None
    outgoing_amount: Annotated[Amount | None, Field(alias="outgoingAmount")] = None
