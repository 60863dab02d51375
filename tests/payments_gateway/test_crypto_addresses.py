"""Crypto addresses: the vectors of the standards, and what a slip of the finger or of the clipboard does to them."""

import contextlib
import hashlib
import string

import base58
import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_gateway.crypto_addresses import (
    AddressError,
    AddressProof,
    NotBech32Error,
    check_address,
    witness_program,
)

# EIP-55, "Test Cases"
EIP55_MIXED = (
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
)
EIP55_ONE_CASE = (
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
)

# BIP-350, "Test vectors for v0-v16 native segregated witness addresses": address, version, witness program
SEGWIT = (
    ("BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", 0, "751e76e8199196d454941c45d1b3a323f1433bd6"),
    (
        "tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7",
        0,
        "1863143c14c5166804bd19203356da136c985678cd4d27a1b8c6329604903262",
    ),
    (
        "bc1pw508d6qejxtdg4y5r3zarvary0c5xw7kw508d6qejxtdg4y5r3zarvary0c5xw7kt5nd6y",
        1,
        "751e76e8199196d454941c45d1b3a323f1433bd6751e76e8199196d454941c45d1b3a323f1433bd6",
    ),
    ("BC1SW50QGDZ25J", 16, "751e"),
    ("bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs", 2, "751e76e8199196d454941c45d1b3a323"),
    (
        "tb1qqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesrxh6hy",
        0,
        "000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
    ),
    (
        "tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c",
        1,
        "000000c4a5cad46221b2a187905e5266362b99d5e91c6ce24d165dab93e86433",
    ),
    (
        "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
        1,
        "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798",
    ),
)
NOT_SEGWIT = {
    "another prefix": "tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut",
    "bech32, version 1": "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd",
    "bech32, version 2": "tb1z0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqglt7rf",
    "bech32, version 16": "BC1S0XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ54WELL",
    "bech32m, version 0": "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh",
    "bech32m, version 0 on test": "tb1q0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq24jc47",
    "wrong character": "bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4",
    "version 17": "BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R",
    "1 byte": "bc1pw5dgrnzv",
    "41 bytes": "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v8n0nx0muaewav253zgeav",
    "16 bytes, version 0": "BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P",
    "mixed case": "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq",
    "more than 4 bits of padding": "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf",
    "padding that is not zero": "tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j",
    "empty": "bc1gmk9yu",
}

TRON = ("TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", "TJCnKsPa7y5okkXvQAidZBzqx3QyQ6sxMW")
BITCOIN = (
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "17VZNX1SN5NtKa8UQFxwQbFeFc3iqRYhem",
    "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
    "1111111111111111111114oLvT2",
)
TESTNET = ("mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn", "2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc")


@pytest.mark.parametrize("address", EIP55_MIXED)
@pytest.mark.parametrize("network", ["ERC20", "erc-20", "BEP20", "bep 20", "Polygon", "ETH"])
def test_mixed_case_is_a_checksum(network: str, address: str) -> None:
    assert check_address(network, address) is AddressProof.CHECKSUM


@pytest.mark.parametrize("address", [*EIP55_ONE_CASE, EIP55_MIXED[0].lower(), "0x" + "1" * 40])
def test_an_address_without_mixed_case_has_no_checksum(address: str) -> None:
    assert check_address("ERC20", address) is AddressProof.FORM


@pytest.mark.parametrize("address", EIP55_MIXED)
def test_a_single_case_change_is_detected(address: str) -> None:
    for place, char in enumerate(address[2:], 2):
        if char.isalpha():
            with pytest.raises(AddressError, match="mistyped"):
                check_address("BEP20", address[:place] + char.swapcase() + address[place + 1 :])


@pytest.mark.parametrize(
    "address",
    [
        EIP55_MIXED[0][2:],
        EIP55_MIXED[0][:-1],
        EIP55_MIXED[0] + "0",
        "0X" + EIP55_ONE_CASE[0][2:],
        "0x" + "g" * 40,
        "0x" + "٣" * 40,
        TRON[0],
    ],
)
def test_malformed_ethereum_addresses_are_refused(address: str) -> None:
    with pytest.raises(AddressError, match="0x followed by 40 digits"):
        check_address("ERC20", address)


@pytest.mark.parametrize("address", TRON)
@pytest.mark.parametrize("network", ["TRC20", "trc-20", "TRON"])
def test_tron_addresses_are_accepted(network: str, address: str) -> None:
    assert check_address(network, address) is AddressProof.CHECKSUM


@pytest.mark.parametrize("address", [*BITCOIN, *(entry[0] for entry in SEGWIT if entry[0][0] in "bB")])
def test_bitcoin_addresses_are_accepted(address: str) -> None:
    assert check_address("BTC", address) is AddressProof.CHECKSUM


@pytest.mark.parametrize("address", [*TESTNET, *(entry[0] for entry in SEGWIT if entry[0][0] == "t")])
def test_testnet_addresses_are_refused_on_mainnet(address: str) -> None:
    assert check_address("BTC testnet", address) is AddressProof.CHECKSUM
    with pytest.raises(AddressError):
        check_address("BTC", address)


@pytest.mark.parametrize(("address", "version", "program"), SEGWIT)
def test_witness_programs_are_decoded_as_in_bip_350(address: str, version: int, program: str) -> None:
    assert witness_program(address[:2].lower(), address) == (version, bytes.fromhex(program))


@pytest.mark.parametrize("address", NOT_SEGWIT.values(), ids=NOT_SEGWIT)
@pytest.mark.parametrize("prefix", ["bc", "tb"])
def test_addresses_invalid_in_bip_350_are_refused(prefix: str, address: str) -> None:
    with pytest.raises(NotBech32Error):
        witness_program(prefix, address)


@pytest.mark.parametrize("address", NOT_SEGWIT.values(), ids=NOT_SEGWIT)
@pytest.mark.parametrize("network", ["BTC", "BTCTESTNET"])
def test_error_messages_are_readable(network: str, address: str) -> None:
    with pytest.raises(AddressError):
        check_address(network, address)


def test_an_address_of_another_chain_is_refused_by_network() -> None:
    with pytest.raises(AddressError, match="not an address on Tron: those begin with T"):
        check_address("TRC20", BITCOIN[0])
    with pytest.raises(AddressError, match="not an address on Bitcoin: those begin with 1, 3, bc1"):
        check_address("BTC", TRON[0])


@pytest.mark.parametrize("address", ["", " ", f"{TRON[0]}\n", f" {TRON[0]}", TRON[0].replace("H", "H\t")])
@pytest.mark.parametrize("network", ["ERC20", "TRC20", "BTC"])
def test_whitespace_is_refused_and_not_stripped(network: str, address: str) -> None:
    with pytest.raises(AddressError, match=r"Enter the address|space or a line break"):
        check_address(network, address)


@pytest.mark.parametrize("network", ["", "SOL", "a network of tomorrow"])
def test_an_unknown_network_is_reported_as_unchecked(network: str) -> None:
    assert check_address(network, "anything at all") is AddressProof.NOTHING


def test_a_long_text_is_refused_before_it_is_decoded() -> None:
    for network in ("TRC20", "BTC", "ERC20"):
        with pytest.raises(AddressError):
            check_address(network, "T" * 1_000_000)


@pytest.mark.parametrize(
    ("network", "address"),
    [("TRC20", TRON[0]), ("BTC", BITCOIN[0]), ("BTC", BITCOIN[2]), ("BTC", BITCOIN[3])]
    + [("BTC" if entry[0][0] in "bB" else "BTCTESTNET", entry[0]) for entry in SEGWIT],
)
def test_any_changed_character_is_detected(network: str, address: str) -> None:
    for place, right in enumerate(address):
        for wrong in set(string.ascii_letters + string.digits) - {right}:
            with pytest.raises(AddressError):
                check_address(network, address[:place] + wrong + address[place + 1 :])


def _tron(owner: bytes) -> str:
    payload = b"\x41" + owner
    checksum = hashlib.sha256(hashlib.sha256(payload).digest()).digest()[:4]
    return base58.b58encode(payload + checksum).decode()


@given(owner=st.binary(min_size=20, max_size=20), data=st.data())
def test_typing_errors_in_tron_addresses_are_detected(owner: bytes, data: st.DataObject) -> None:
    address = _tron(owner)
    assert check_address("TRC20", address) is AddressProof.CHECKSUM
    place = data.draw(st.integers(0, len(address) - 1))
    wrong = data.draw(
        st.sampled_from(string.ascii_letters + string.digits).filter(lambda c: c != address[place])
    )
    for slip in (
        address[:place] + wrong + address[place + 1 :],
        address[:place] + address[place + 1 :],
        address[:place] + wrong + address[place:],
    ):
        with pytest.raises(AddressError):
            check_address("TRC20", slip)


@given(network=st.sampled_from(["ERC20", "TRC20", "BTC", "BTCTESTNET", "SOL"]), text=st.text(max_size=120))
def test_any_text_gives_a_check_result_or_an_address_error(network: str, text: str) -> None:
    with contextlib.suppress(AddressError):
        assert isinstance(check_address(network, text), AddressProof)
