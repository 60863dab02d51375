"""What the reads beyond the specification give. Their shapes are hints, so other spellings are taken, too."""

from typing import Annotated

from pydantic import AliasChoices, BeforeValidator, Field

from payments_gateway.schemas.fields import Amount, Text, Wire


class Bank(Wire):
    """A bank that money can be sent to."""

    code: Annotated[Text, Field(alias="Code", min_length=1)]
    name: Annotated[Text, Field(alias="Name", min_length=1)]


class Rate(Wire):
    """What one unit of the first currency of a pair is worth in the second; `key` is the `rateKey` of a payment."""

    pair: Annotated[Text, Field(min_length=1)]
    rate: Annotated[Amount, Field(gt=0)]
    key: Text = ""


class SupportedCurrency(Wire):
    """A currency that the service deals in."""

    code: Annotated[Text, Field(validation_alias=AliasChoices("code", "currency"), min_length=1)]
    name: Text = ""


class Minimum(Wire):
    """The least amount that the service moves in a currency; None where the answer gives no number for it."""

    currency: Annotated[Text, Field(validation_alias=AliasChoices("currency", "code"), min_length=1)]
    amount: Annotated[
        Amount | None, Field(validation_alias=AliasChoices("amount", "minimum", "minimumAllowed"))
    ] = None


def _networks(value: object) -> list[object]:
    """Take one network or several, each as a text or as an object that names it."""
    found = value if isinstance(value, list) else [value]
    return [item.get("network", item.get("name")) if isinstance(item, dict) else item for item in found]


class WalletOption(Wire):
    """A crypto currency of the merchant's wallets, and the networks on which it travels."""

    currency: Annotated[Text, Field(validation_alias=AliasChoices("currency", "code"), min_length=1)]
    networks: Annotated[
        list[Text],
        BeforeValidator(_networks),
        Field(validation_alias=AliasChoices("networks", "network")),
    ] = []
