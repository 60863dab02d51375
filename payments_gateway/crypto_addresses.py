"""Check the form and checksum of a crypto address before money is sent to it.

EIP-55 for Ethereum-like networks, Base58Check for Tron and Bitcoin, Bech32 (BIP-173) and Bech32m (BIP-350) for
SegWit. The specification (POST /wallet/transfer) names no networks, so addresses on unknown networks pass unchecked.
"""

import enum
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import base58
from Crypto.Hash import keccak

from payments_gateway.errors import InputError
from payments_gateway.errors import gettext_noop as _

_BECH32_ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32, _BECH32M = 1, 0x2BC830A3
_BECH32_CHECKSUM_LENGTH = 6
_BECH32_MAX_LENGTH = 90


class NotBech32Error(InputError):
    """The text violates a rule of Bech32 or of SegWit addresses; the message names it, for display."""


class Bech32ChecksumError(NotBech32Error):
    """The form is valid and the checksum is wrong."""


def witness_program(prefix: str, address: str) -> tuple[int, bytes]:
    """Return the witness version and program of an address with this prefix (`bc` for Bitcoin).

    Raises NotBech32Error, of which Bech32ChecksumError is a subclass.
    """
    values, constant = _decode_bech32(prefix, address)
    if not values:
        raise NotBech32Error(_("The address is too short or too long."))
    version, program = values[0], _five_bits_to_octets(values[1:])
    if version > 16:
        raise NotBech32Error(_("The address is damaged. Copy it again."))
    if constant != (_BECH32 if version == 0 else _BECH32M):
        raise Bech32ChecksumError(_CHECKSUM_FAILED)
    if not 2 <= len(program) <= 40 or (version == 0 and len(program) not in {20, 32}):
        raise NotBech32Error(_("The address is too short or too long."))
    return version, program


def _decode_bech32(prefix: str, text: str) -> tuple[Sequence[int], int]:
    """Return the five-bit values without the checksum, and the checksum constant (Bech32 or Bech32m)."""
    if text not in {text.lower(), text.upper()}:
        raise NotBech32Error(_("The address mixes upper-case and lower-case letters."))
    text = text.lower()
    rest = text.removeprefix(f"{prefix}1")
    if rest == text or len(text) > _BECH32_MAX_LENGTH or len(rest) < _BECH32_CHECKSUM_LENGTH:
        raise NotBech32Error(
            _("The address does not begin with {beginnings}, or is too short or too long."),
            beginnings=f"{prefix}1",
        )
    values = [_BECH32_ALPHABET.find(char) for char in rest]
    if -1 in values:
        raise NotBech32Error(
            _("The character {character} is not valid in an address on {network}."),
            character=repr(rest[values.index(-1)]),
            network="Bitcoin",
        )
    constant = _bch_remainder([*_expand_prefix(prefix), *values])
    if constant not in {_BECH32, _BECH32M}:
        raise Bech32ChecksumError(_CHECKSUM_FAILED)
    return values[:-_BECH32_CHECKSUM_LENGTH], constant


def _expand_prefix(prefix: str) -> list[int]:
    return [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]


def _bch_remainder(values: Iterable[int]) -> int:
    """The BCH checksum of BIP-173 over five-bit values."""
    remainder = 1
    for value in values:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_BECH32_GENERATOR):
            remainder ^= generator if top >> bit & 1 else 0
    return remainder


def _five_bits_to_octets(values: Sequence[int]) -> bytes:
    """Regroup five-bit values into bytes. The remaining bits must be fewer than five and all zero."""
    number = 0
    for value in values:
        number = number << 5 | value
    length, left_over = divmod(5 * len(values), 8)
    if left_over >= 5 or number & ((1 << left_over) - 1):
        raise NotBech32Error(_("The address is damaged. Copy it again."))
    return (number >> left_over).to_bytes(length, "big")


_EVM = re.compile(r"0x[0-9a-fA-F]{40}")
_NOT_BASE58 = re.compile(r"[^1-9A-HJ-NP-Za-km-z]")
_CHECKSUM_BYTES = 4
_CHECKSUM_FAILED = _("The checksum does not match: a character is probably mistyped.")


class AddressError(InputError):
    """The text is not an address of its network; the message gives the reason, for display."""


class AddressProof(enum.Enum):
    """How much a successful check has proven."""

    CHECKSUM = "the checksum fits: a mistyped character would have been noticed"
    FORM = "the form is right, but the address carries no checksum: a mistyped character goes unnoticed"
    NOTHING = "the network is not known here, so nothing was checked"


def check_address(network: str, address: str) -> AddressProof:
    """Check the form of an address, and its checksum if it has one. Does not check who owns it.

    `network` is one of the usual names, regardless of case, spaces and hyphens (ERC20, BEP20, TRC20, BTC, …);
    an address on any other network passes as AddressProof.NOTHING. Raises AddressError.
    """
    check = _CHECKS.get(_normalized_network(network))
    if check is None:
        return AddressProof.NOTHING
    if not address:
        raise AddressError(_("Enter the address."))
    if re.search(r"\s", address):
        raise AddressError(_("The address contains a space or a line break. Copy it again without them."))
    return check(address)


def _normalized_network(network: str) -> str:
    return re.sub(r"[\s_-]", "", network).upper()


def _check_evm(address: str) -> AddressProof:
    if not _EVM.fullmatch(address):
        raise AddressError(
            _(
                "An address on this network is 0x followed by 40 digits and letters from a to f. "
                "This is not one (length: {length})."
            ),
            length=len(address),
        )
    digits = address[2:]
    if digits in {digits.lower(), digits.upper()}:
        return AddressProof.FORM
    if digits != eip55_checksum(digits.lower()):
        raise AddressError(_CHECKSUM_FAILED)
    return AddressProof.CHECKSUM


def eip55_checksum(digits: str) -> str:
    """Return forty hexadecimal digits with EIP-55 capitals: letters whose digit of the hash is 8 or more."""
    digest = keccak.new(data=digits.encode(), digest_bits=256).hexdigest()[: len(digits)]
    pairs = zip(digits, digest, strict=True)
    return "".join(char.upper() if int(mark, 16) >= 8 else char for char, mark in pairs)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Possible version bytes of a Base58Check address, and its first characters for display."""

    name: str
    versions: frozenset[int]
    beginnings: str


def _check_base58(chain: _Chain, address: str) -> AddressProof:
    wrong = _NOT_BASE58.search(address)
    if wrong:
        raise AddressError(
            _("The character {character} is not valid in an address on {network}."),
            character=repr(wrong[0]),
            network=chain.name,
        )
    if not 25 <= len(address) <= 36:
        raise AddressError(
            _(
                "An address on {network} begins with {beginnings} and has about 34 characters; "
                "this one has {length}."
            ),
            network=chain.name,
            beginnings=chain.beginnings,
            length=len(address),
        )
    content = base58.b58decode(address)
    payload, checksum = content[:-_CHECKSUM_BYTES], content[-_CHECKSUM_BYTES:]
    if hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:_CHECKSUM_BYTES] != checksum:
        raise AddressError(_CHECKSUM_FAILED)
    if len(payload) != 21 or payload[0] not in chain.versions:
        raise AddressError(
            _("This is not an address on {network}: those begin with {beginnings}."),
            network=chain.name,
            beginnings=chain.beginnings,
        )
    return AddressProof.CHECKSUM


def _check_bitcoin(chain: _Chain, prefix: str, address: str) -> AddressProof:
    if not address.lower().startswith(f"{prefix}1"):
        return _check_base58(chain, address)
    try:
        witness_program(prefix, address)
    except Bech32ChecksumError as exc:
        raise AddressError(_CHECKSUM_FAILED) from exc
    except NotBech32Error as exc:
        raise AddressError(exc.template, **exc.parameters) from exc
    return AddressProof.CHECKSUM


_check_tron = partial(_check_base58, _Chain("Tron", frozenset({0x41}), "T"))
_check_bitcoin_mainnet = partial(
    _check_bitcoin, _Chain("Bitcoin", frozenset({0x00, 0x05}), "1, 3, bc1"), "bc"
)
_check_bitcoin_testnet = partial(
    _check_bitcoin, _Chain("Bitcoin testnet", frozenset({0x6F, 0xC4}), "m, n, 2, tb1"), "tb"
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
    **dict.fromkeys(("BTC", "BITCOIN", "SEGWIT"), _check_bitcoin_mainnet),
    **dict.fromkeys(("BTCTESTNET", "BITCOINTESTNET", "TBTC"), _check_bitcoin_testnet),
}
