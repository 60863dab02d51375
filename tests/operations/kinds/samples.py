"""One valid payload of each kind, for the rules that hold for all of them. A new kind adds a line here."""

from decimal import Decimal

from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.conversion import ConversionPayload
from backoffice.operations.kinds.transfer import TransferPayload
from tests import factories

SAMPLES: dict[str, Payload] = {
    "withdrawal": factories.payload(),
    "conversion": ConversionPayload(
        from_currency="NGN", to_currency="USD", amount=Decimal("1540000.00"), known_rate=Decimal("0.00065")
    ),
    "transfer": TransferPayload(
        receiver_username="ngozi.eze", currency="NGN", amount=Decimal("60000.00"), memo="week 46"
    ),
}
