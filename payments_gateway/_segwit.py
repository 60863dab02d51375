"""Segregated-witness addresses of Bitcoin: Bech32 (BIP-173) and Bech32m (BIP-350). Reading only."""

from collections.abc import Iterable, Sequence

_ALPHABET = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_BECH32, _BECH32M = 1, 0x2BC830A3
_CHECKSUM_LENGTH = 6
_LONGEST = 90


class NotBech32Error(ValueError):
    """The text breaks a rule of Bech32 or of segregated-witness addresses; the message says which, for people."""


class MistypedError(NotBech32Error):
    """The form is right and the checksum is not."""


def witness_program(prefix: str, address: str) -> tuple[int, bytes]:
    """Return witness version and program of an address with this human-readable part (`bc` for Bitcoin).

    Raises NotBech32Error, MistypedError among them.
    """
    values, constant = _decoded(prefix, address)
    if not values:
        raise NotBech32Error("it holds nothing after its prefix.")
    version, program = values[0], _octets(values[1:])
    if version > 16:
        raise NotBech32Error("its version does not exist.")
    if constant != (_BECH32 if version == 0 else _BECH32M):
        raise MistypedError("the checksum does not fit.")
    if not 2 <= len(program) <= 40 or (version == 0 and len(program) not in {20, 32}):
        raise NotBech32Error("it is too short or too long.")
    return version, program


def _decoded(prefix: str, text: str) -> tuple[Sequence[int], int]:
    """Take a text apart: its values without the checksum, and the constant that the checksum stands for."""
    if text not in {text.lower(), text.upper()}:
        raise NotBech32Error("it mixes capitals and small letters.")
    text = text.lower()
    rest = text.removeprefix(f"{prefix}1")
    if rest == text or len(text) > _LONGEST or len(rest) < _CHECKSUM_LENGTH:
        raise NotBech32Error(f"it does not begin with {prefix}1, or is too short or too long.")
    values = [_ALPHABET.find(char) for char in rest]
    if -1 in values:
        raise NotBech32Error(f"the character {rest[values.index(-1)]!r} never occurs in such an address.")
    constant = _remainder([*_expanded(prefix), *values])
    if constant not in {_BECH32, _BECH32M}:
        raise MistypedError("the checksum does not fit.")
    return values[:-_CHECKSUM_LENGTH], constant


def _expanded(prefix: str) -> list[int]:
    return [ord(char) >> 5 for char in prefix] + [0] + [ord(char) & 31 for char in prefix]


def _remainder(values: Iterable[int]) -> int:
    """The BCH code of BIP-173 over five-bit values."""
    remainder = 1
    for value in values:
        top = remainder >> 25
        remainder = (remainder & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate(_GENERATOR):
            remainder ^= generator if top >> bit & 1 else 0
    return remainder


def _octets(values: Sequence[int]) -> bytes:
    """Regroup five-bit values into octets; what is left over must be fewer than five bits, all zero."""
    number = 0
    for value in values:
        number = number << 5 | value
    length, left_over = divmod(5 * len(values), 8)
    if left_over >= 5 or number & ((1 << left_over) - 1):
        raise NotBech32Error("its end is padded wrongly.")
    return (number >> left_over).to_bytes(length, "big")
