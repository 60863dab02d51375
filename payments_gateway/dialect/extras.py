"""Open points of the optional reads: which of them the service has, and where.

No path may lead to GET /payment/resolve, which moves money: `rules` refuses every one that could.
"""

from dataclasses import dataclass

from payments_gateway.dialect.points import point
from payments_gateway.dialect.words import CAPABILITIES, Capability

_NOWHERE = "nowhere: beyond the specification"


@dataclass(frozen=True, kw_only=True)
class ExtraPoints:
    """The reads beyond the specification, all off by default."""

    capabilities: tuple[Capability, ...] = point(
        (),
        "hint",
        _NOWHERE,
        f"Which of these reads the service has: {', '.join(CAPABILITIES)}. Nothing needs them.",
    )
    extra_banks_path: str = point("/bank/supported", "hint", _NOWHERE, "Path of: the banks.")
    extra_rates_path: str = point("/currency/rate", "hint", _NOWHERE, "Path of: the rates.")
    extra_currencies_path: str = point("/currency/supported", "hint", _NOWHERE, "Path of: the currencies.")
    extra_minimums_path: str = point(
        "/currency/minimum-allowed", "hint", _NOWHERE, "Path of: the least amounts."
    )
    extra_wallet_config_path: str = point(
        "/wallet/supported/config", "hint", _NOWHERE, "Path of: the networks of wallets."
    )
    extra_transaction_path: str = point(
        "/transaction/{transactionId}",
        "hint",
        _NOWHERE,
        "Path of: one transaction; its id stands for the braces.",
    )
    extra_payment_path: str = point(
        "/payment/{paymentId}", "hint", _NOWHERE, "Path of: one payment; its id stands for the braces."
    )
    extra_country_query: str = point("country", "hint", _NOWHERE, "Banks: query name of the country.")
