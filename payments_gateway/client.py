"""The client: configuration in, one attribute per resource out."""

from types import TracebackType
from typing import Self

from payments_gateway._transport import Transport
from payments_gateway.accounts import Accounts
from payments_gateway.api_keys import ApiKeys
from payments_gateway.balances import Balances
from payments_gateway.banks import Banks
from payments_gateway.callbacks import Callbacks
from payments_gateway.config import GatewayConfig
from payments_gateway.extras import Extras
from payments_gateway.payments import Payments
from payments_gateway.transactions import Transactions
from payments_gateway.wallets import Wallets


class PaymentsGateway:
    """The service, as typed calls. One instance serves a whole process, with all its threads."""

    def __init__(self, config: GatewayConfig, *, transport: Transport | None = None) -> None:
        self._transport = transport or Transport(config)
        self.accounts = Accounts(self._transport, config.dialect)
        self.api_keys = ApiKeys(self._transport, config.dialect)
        self.balances = Balances(self._transport, config.dialect)
        self.banks = Banks(self._transport, config.dialect)
        self.extras = Extras(self._transport, config.dialect)
        self.callbacks = Callbacks(self._transport, config.dialect)
        self.payments = Payments(self._transport, config.dialect)
        self.transactions = Transactions(self._transport, config.dialect)
        self.wallets = Wallets(self._transport, config.dialect)

    def close(self) -> None:
        """Close the pooled connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
