"""Wallet addresses at which the merchant receives crypto, by currency and network."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import TypeAdapter

from backoffice.core.cached_reads import CachedRead, CachedValue
from backoffice.core.gateway import PAGE_TIMEOUT, gateway
from payments_gateway import Wallet, WalletAddress

_WALLET = CachedRead("wallet", TypeAdapter(Wallet))


def refresh_wallet() -> CachedValue[Wallet]:
    """The wallet with all its addresses (GET /wallet), read now, or as last reported if that fails."""
    return _WALLET.refresh(lambda: gateway(deadline=PAGE_TIMEOUT).wallets.get())


def cached_wallet() -> CachedValue[Wallet]:
    """The wallet as last reported, without a request."""
    return _WALLET.cached()


@dataclass(frozen=True)
class FilteredAddresses:
    """The addresses of one currency and network, or of all, and the available choices."""

    addresses: list[WalletAddress]
    currencies: list[str]
    networks: list[str]


def filter_addresses(wallet: Wallet | None, *, currency: str, network: str) -> FilteredAddresses:
    """The addresses that match. An empty filter matches all; an address without the value matches no other."""
    addresses = wallet.addresses if wallet else ()
    return FilteredAddresses(
        [
            one
            for one in addresses
            if currency in {"", one.currency} and network in {"", one.network} and one.address
        ],
        _sorted_texts(one.currency for one in addresses),
        _sorted_texts(one.network for one in addresses),
    )


def _sorted_texts(texts: Iterable[str]) -> list[str]:
    return sorted({text for text in texts if text})
