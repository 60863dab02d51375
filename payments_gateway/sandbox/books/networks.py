"""The networks that Tether travels on: what sending costs there, and addresses of our own with valid checksums.

Pure: the same owner has the same address for ever. Nobody has the keys of these addresses.
"""

import hashlib
from dataclasses import dataclass

import base58
from Crypto.Hash import keccak

_TRON_VERSION = b"\x41"


@dataclass(frozen=True, slots=True)
class Network:
    """`fee` of sending is in minor units of the currency; networks of Ethereum's kind share their addresses."""

    name: str
    fee: int
    is_ethereum_like: bool


NETWORKS = {
    each.name: each
    for each in (
        Network("TRC20", 1_000000, is_ethereum_like=False),
        Network("ERC20", 4_000000, is_ethereum_like=True),
        Network("BEP20", 500000, is_ethereum_like=True),
        Network("POLYGON", 200000, is_ethereum_like=True),
    )
}
"""By the name that requests give; all of them carry USDT."""

CRYPTO = "USDT"


def address_on(network: str, owner: str) -> str:
    """The address of this owner on this network."""
    kind = "ethereum" if NETWORKS[network].is_ethereum_like else network
    account = hashlib.sha256(f"address {kind} {owner}".encode()).digest()[:20]
    if NETWORKS[network].is_ethereum_like:
        return "0x" + _with_checksum(account.hex())
    return base58.b58encode_check(_TRON_VERSION + account).decode()


def _with_checksum(digits: str) -> str:
    """The capitals of EIP-55: a letter is capital where the hash of all digits has 8 or more."""
    marks = keccak.new(digest_bits=256, data=digits.encode()).hexdigest()
    return "".join(
        digit.upper() if int(mark, 16) >= 8 else digit for digit, mark in zip(digits, marks, strict=False)
    )
