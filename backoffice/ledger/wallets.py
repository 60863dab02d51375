"""Where the merchant receives crypto: addresses by currency and network."""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import TypeAdapter

from backoffice.core.gateway import PATIENCE_OF_A_PAGE, gateway
from backoffice.ledger.told import Question, Told
from payments_gateway import Wallet, WalletAddress

_WALLET = Question("wallet", TypeAdapter(Wallet))


def wallet_now() -> Told[Wallet]:
    """The wallet with all its addresses, now or as last told (GET /wallet)."""
    return _WALLET.told_now(lambda: gateway(deadline=PATIENCE_OF_A_PAGE).wallets.get())


def known_wallet() -> Told[Wallet]:
    """The same as last told, without asking."""
    return _WALLET.last_told()


@dataclass(frozen=True)
class Narrowed:
    """The addresses of one currency and one network, or of all, and what there is to choose from."""

    addresses: list[WalletAddress]
    currencies: list[str]
    networks: list[str]


def narrowed(wallet: Wallet | None, *, currency: str, network: str) -> Narrowed:
    """The addresses that fit; an empty text fits everything. What the service left empty fits only that."""
    addresses = wallet.addresses if wallet else ()
    return Narrowed(
        [
            one
            for one in addresses
            if currency in {"", one.currency} and network in {"", one.network} and one.address
        ],
        _named(one.currency for one in addresses),
        _named(one.network for one in addresses),
    )


def _named(texts: Iterable[str]) -> list[str]:
    return sorted({text for text in texts if text})
