"""The client: configuration in, one attribute per resource out."""

from types import TracebackType
from typing import Self

from payments_gateway._transport import Transport
from payments_gateway.balances import Balances
from payments_gateway.banks import Banks
from payments_gateway.config import GatewayConfig
from payments_gateway.extras import Extras
from payments_gateway.transactions import Transactions


class PaymentsGateway:
    """The service, as typed calls. One instance serves a whole process, with all its threads."""

    def __init__(self, config: GatewayConfig, *, transport: Transport | None = None) -> None:
        self._transport = transport or Transport(config)
        self.balances = Balances(self._transport, config.dialect)
        self.banks = Banks(self._transport, config.dialect)
        self.extras = Extras(self._transport, config.dialect)
        self.transactions = Transactions(self._transport, config.dialect)

    def close(self) -> None:
        """Close the pooled connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
