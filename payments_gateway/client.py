"""The API client: built from a configuration, with one attribute per resource of the API."""

from types import TracebackType
from typing import Self

from payments_gateway.config import GatewayConfig
from payments_gateway.resources.accounts import Accounts, Banks
from payments_gateway.resources.api_keys import ApiKeys
from payments_gateway.resources.balances import Balances
from payments_gateway.resources.callbacks import Callbacks
from payments_gateway.resources.extras import Extras
from payments_gateway.resources.payments import Payments
from payments_gateway.resources.transactions import Transactions
from payments_gateway.resources.wallets import Wallets
from payments_gateway.transport import Transport


class PaymentsGateway:
    """The provider's API as typed calls. Thread-safe: one instance serves a whole process."""

    def __init__(self, config: GatewayConfig, *, transport: Transport | None = None) -> None:
        self._transport = transport or Transport(config)
        self.accounts = Accounts(self._transport, config.profile)
        self.api_keys = ApiKeys(self._transport, config.profile)
        self.balances = Balances(self._transport, config.profile)
        self.banks = Banks(self._transport, config.profile)
        self.extras = Extras(self._transport, config.profile)
        self.callbacks = Callbacks(self._transport, config.profile)
        self.payments = Payments(self._transport, config.profile)
        self.transactions = Transactions(self._transport, config.profile)
        self.wallets = Wallets(self._transport, config.profile)

    def close(self) -> None:
        """Close the pooled connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
