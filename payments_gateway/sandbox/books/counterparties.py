"""Invented counterparties: bank account holders, companies, and crypto addresses with valid checksums.

Pure: the same account always has the same holder, the same owner the same address. The addresses have no
private keys. Includes the crypto currencies of wallets, and the networks on which they are sent, with their fees.
"""

import hashlib
from dataclasses import dataclass

import base58

from payments_gateway import BANKS
from payments_gateway.crypto_addresses import eip55_checksum

PEOPLE = (
    (
        (
            "Adebayo",
            "Folake",
            "Tunde",
            "Yetunde",
            "Babatunde",
            "Funmilayo",
            "Segun",
            "Bukola",
            "Kehinde",
            "Temitope",
        ),
        (
            "Adeyemi",
            "Ogunleye",
            "Balogun",
            "Akinola",
            "Oyelaran",
            "Olatunji",
            "Ajayi",
            "Bankole",
            "Afolabi",
            "Odukoya",
        ),
    ),
    (
        ("Chinedu", "Adaeze", "Ngozi", "Emeka", "Ifeoma", "Obinna", "Chioma", "Uchenna", "Nneka", "Kelechi"),
        ("Okonkwo", "Eze", "Obi", "Nwosu", "Okafor", "Igwe", "Umeh", "Anyanwu", "Chukwu", "Okeke"),
    ),
    (
        ("Aisha", "Musa", "Ibrahim", "Fatima", "Sani", "Hauwa", "Abdullahi", "Zainab", "Yusuf", "Halima"),
        ("Bello", "Abubakar", "Danjuma", "Suleiman", "Garba", "Lawal", "Yakubu", "Tanko", "Idris", "Aliyu"),
    ),
    (
        ("Ese", "Efe", "Ebiere", "Tonye", "Ekaette", "Idongesit", "Aniekan", "Osaze", "Ivie", "Preye"),
        ("Edet", "Bassey", "Ekpo", "Briggs", "Amadi", "Akpan", "Etim", "Omoruyi", "Igho", "Dokubo"),
    ),
)
"""Given names and family names, by region."""

PLACES = (
    "Lekki",
    "Zaria",
    "Aba",
    "Onitsha",
    "Ikeja",
    "Kano",
    "Jos",
    "Calabar",
    "Ibadan",
    "Warri",
    "Enugu",
    "Abeokuta",
)
TRADES = (
    "Mills",
    "Cold Stores",
    "Logistics",
    "Packaging",
    "Farms",
    "Haulage",
    "Supermarkets",
    "Foods",
    "Stores",
)
ABROAD = (
    "Atlas Commodities LLC",
    "Blue Harbour Trading Ltd",
    "Cedar & Finch Imports Inc",
    "Golden Delta FZE",
    "Nordwind Handel GmbH",
    "Orchid Foods Pte Ltd",
)


def account_holder(account_number: str, bank_code: str) -> str | None:
    """The holder's name in capitals, as banks print it; None if the account does not exist.

    An account exists at a known bank if its number has ten digits and does not end in 0000.
    """
    if bank_code not in BANKS or not _is_account_number(account_number):
        return None
    digest = hashlib.sha256(f"{bank_code}/{account_number}".encode()).digest()
    return (firm_name(digest) if digest[0] % 10 == 0 else person_name(digest)).upper()


def person_name(digest: bytes) -> str:
    """A name of two or three parts, derived from the bytes."""
    given, family = PEOPLE[digest[1] % len(PEOPLE)]
    first, second = given[digest[2] % len(given)], given[digest[3] % len(given)]
    middle = f" {second}" if digest[4] % 3 == 0 and second != first else ""
    return f"{first}{middle} {family[digest[5] % len(family)]}"


def firm_name(digest: bytes) -> str:
    """The name of a company, derived from the bytes."""
    return f"{PLACES[digest[1] % len(PLACES)]} {TRADES[digest[2] % len(TRADES)]} Ltd"


def _is_account_number(text: str) -> bool:
    return len(text) == 10 and text.isascii() and text.isdigit() and not text.endswith("0000")


# The first byte of an address in Base58, by network.
_BASE58_VERSIONS = {"TRC20": b"\x41", "BTC": b"\x00"}


@dataclass(frozen=True, slots=True)
class CryptoNetwork:
    """`fee` is in minor units, the same for all its currencies; Ethereum-like networks share their addresses."""

    name: str
    fee: int
    is_ethereum_like: bool


NETWORKS = {
    each.name: each
    for each in (
        CryptoNetwork("TRC20", 1_000000, is_ethereum_like=False),
        CryptoNetwork("ERC20", 4_000000, is_ethereum_like=True),
        CryptoNetwork("BEP20", 500000, is_ethereum_like=True),
        CryptoNetwork("POLYGON", 200000, is_ethereum_like=True),
        CryptoNetwork("BTC", 20000, is_ethereum_like=False),
    )
}
"""Networks by their name in requests."""

CRYPTO = "USDT"
"""The crypto currency of GET /balance and of payments. The balances of others are nowhere in the specification."""

WALLETS = {
    CRYPTO: ("TRC20", "ERC20", "BEP20", "POLYGON"),
    "USDC": ("ERC20", "BEP20", "POLYGON"),
    "BTC": ("BTC",),
}
"""The crypto currencies that the merchant can hold and send, each with its networks."""


def address_on(network: str, owner: str) -> str:
    """The address of this owner on this network."""
    kind = "ethereum" if NETWORKS[network].is_ethereum_like else network
    account = hashlib.sha256(f"address {kind} {owner}".encode()).digest()[:20]
    if NETWORKS[network].is_ethereum_like:
        return "0x" + eip55_checksum(account.hex())
    return base58.b58encode_check(_BASE58_VERSIONS[network] + account).decode()
