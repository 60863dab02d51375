"""Crypto addresses: whether one can exist on its network, before money is sent to it for ever.

EIP-55 for the networks of Ethereum's kind, Base58Check for Tron and Bitcoin, BIP-173 and BIP-350 for Bitcoin's
segregated witness. The specification (POST /wallet/transfer) names no networks, so any name is accepted here and
only the known ones are checked.
"""

import enum
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import base58
from Crypto.Hash import keccak

from payments_gateway._segwit import MistypedError, NotBech32Error, witness_program

_EVM = re.compile(r"0x[0-9a-fA-F]{40}")
_NOT_BASE58 = re.compile(r"[^1-9A-HJ-NP-Za-km-z]")
_CHECKSUM_BYTES = 4
_MISTYPED = "One character is probably mistyped: the checksum does not fit."


class AddressError(ValueError):
    """This can be no address of its network; the message says what is wrong with it, in words for people."""


class AddressProof(enum.Enum):
    """How much a check that found nothing wrong has proven."""

    CHECKSUM = "the checksum fits: a mistyped character would have been noticed"
    FORM = "the form is right, but the address carries no checksum: a mistyped character goes unnoticed"
    NOTHING = "the network is not known here, so nothing was checked"


def check_address(network: str, address: str) -> AddressProof:
    """Check the form of an address, and its checksum where it has one. It says nothing about who owns it.

    `network` is known by its usual names, without regard to case, spaces and hyphens (ERC20, BEP20, TRC20, BTC, …);
    an address on any other network passes as AddressProof.NOTHING. Raises AddressError.
    """
    check = _CHECKS.get(_simple(network))
    if check is None:
        return AddressProof.NOTHING
    if not address:
        raise AddressError("Enter the address.")
    if re.search(r"\s", address):
        raise AddressError("The address holds a space or a line break. Copy it again, without them.")
    return check(address)


def _simple(network: str) -> str:
    return re.sub(r"[\s_-]", "", network).upper()


def _check_evm(address: str) -> AddressProof:
    if not _EVM.fullmatch(address):
        raise AddressError(
            "An address on this network is 0x and then 40 characters, digits and the letters a to f; "
            f"this is not one ({len(address)} characters in all)."
        )
    digits = address[2:]
    if digits in {digits.lower(), digits.upper()}:
        return AddressProof.FORM
    if digits != _capitals_of(digits.lower()):
        raise AddressError(_MISTYPED)
    return AddressProof.CHECKSUM


def _capitals_of(digits: str) -> str:
    """Write forty hexadecimal digits with the capitals of EIP-55: those whose digit of the hash is 8 or more."""
    digest = keccak.new(data=digits.encode(), digest_bits=256).hexdigest()[: len(digits)]
    pairs = zip(digits, digest, strict=True)
    return "".join(char.upper() if int(mark, 16) >= 8 else char for char, mark in pairs)


@dataclass(frozen=True, slots=True)
class _Chain:
    """How a Base58Check address begins: the first byte of its content, and what people see of it."""

    name: str
    versions: frozenset[int]
    beginnings: str


def _check_base58(chain: _Chain, address: str) -> AddressProof:
    wrong = _NOT_BASE58.search(address)
    if wrong:
        raise AddressError(f"The character {wrong[0]!r} never occurs in {chain.name} address.")
    if not 25 <= len(address) <= 36:
        raise AddressError(
            f"{chain.name.capitalize()} address begins with {chain.beginnings} and has about 34 characters; "
            f"this one has {len(address)}."
        )
    content = base58.b58decode(address)
    payload, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:_CHECKSUM_BYTES] != checksum:
        raise AddressError(_MISTYPED)
    if len(payload) != 21 or payload[0] not in chain.versions:
        raise AddressError(
            f"This is an address, but not {chain.name} address: those begin with {chain.beginnings}."
        )
    return AddressProof.CHECKSUM


def _check_bitcoin(chain: _Chain, prefix: str, address: str) -> AddressProof:
    if not address.lower().startswith(f"{prefix}1"):
        return _check_base58(chain, address)
    try:
        witness_program(prefix, address)
    except MistypedError as exc:
        raise AddressError(_MISTYPED) from exc
    except NotBech32Error as exc:
        raise AddressError(f"This is not {chain.name} address: {exc}") from exc
    return AddressProof.CHECKSUM


_check_tron = partial(_check_base58, _Chain("a Tron", frozenset({0x41}), "T"))
_check_main = partial(_check_bitcoin, _Chain("a Bitcoin", frozenset({0x00, 0x05}), "1, 3 or bc1"), "bc")
_check_test = partial(
    _check_bitcoin, _Chain("a Bitcoin testnet", frozenset({0x6F, 0xC4}), "m, n, 2 or tb1"), "tb"
)

_EVM_NAMES = (
    *(
        "ERC20",
        "ETH",
        "ETHEREUM",
        "BEP20",
        "BSC",
        "BNBSMARTCHAIN",
        "POLYGON",
        "MATIC",
        "ARBITRUM",
        "ARBITRUMONE",
    ),
    *("OPTIMISM", "BASE", "AVAXC", "AVALANCHEC", "CELO"),
)
_CHECKS: Mapping[str, Callable[[str], AddressProof]] = {
    **dict.fromkeys(_EVM_NAMES, _check_evm),
    **dict.fromkeys(("TRC20", "TRON", "TRX"), _check_tron),
    **dict.fromkeys(("BTC", "BITCOIN", "SEGWIT"), _check_main),
    **dict.fromkeys(("BTCTESTNET", "BITCOINTESTNET", "TBTC"), _check_test),
}
