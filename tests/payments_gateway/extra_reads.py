"""Every read beyond the specification, and a client with all of them enabled."""

from collections.abc import Callable
from typing import Any

from payments_gateway import PaymentsGateway, ProviderProfile
from payments_gateway.profile.values import CAPABILITIES, Capability
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve

ALL_ON = ProviderProfile(capabilities=CAPABILITIES)
RECORD = {"transactionId": "T-1", "amount": 5, "status": "fullfiled"}
PAYMENT = {"_id": "T-1", "reference": "R-1", "state": "pending", "rate": "1534.5"}

READS: dict[Capability, Callable[[PaymentsGateway], object]] = {
    "banks": lambda gateway: gateway.extras.banks(),
    "rates": lambda gateway: gateway.extras.rates(),
    "currencies": lambda gateway: gateway.extras.currencies(),
    "minimums": lambda gateway: gateway.extras.minimums(),
    "wallet_config": lambda gateway: gateway.extras.wallet_config(),
    "transaction": lambda gateway: gateway.extras.transaction("T-1"),
    "payment": lambda gateway: gateway.extras.payment("T-1"),
}

BY_ID: dict[Capability, Callable[[PaymentsGateway, str], object]] = {
    "transaction": lambda gateway, identity: gateway.extras.transaction(identity),
    "payment": lambda gateway, identity: gateway.extras.payment(identity),
}


def asked(serve: Serve, gateway: Gateway, body: object, read: Callable[[PaymentsGateway], Any]) -> Any:
    return read(gateway(serve(stub.answer(200, body)).url, profile=ALL_ON))
