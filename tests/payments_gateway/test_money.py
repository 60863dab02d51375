"""Exact JSON, and amounts that people type."""

from decimal import Decimal

import pytest

from payments_gateway import AmountError, UnreadableError, dumps, loads, parse_amount
from payments_gateway.money import check_quantity, fits_ledger, format_plain

EXACT = ["0.1", "0.000001", "12345678901234567890.12", "-0.30", "100.00", "12345678901234567890"]


@pytest.mark.parametrize("digits", EXACT)
def test_a_number_round_trips_digit_by_digit(digits: str) -> None:
    assert dumps(loads(digits)) == digits


def test_numbers_are_never_floats() -> None:
    value = loads("[0.1, 1e-6, 1E5, 3, -0.0]")
    assert isinstance(value, list)
    assert value == [Decimal("0.1"), Decimal("0.000001"), Decimal(100000), 3, Decimal(0)]
    assert [type(item) for item in value] == [Decimal, Decimal, Decimal, int, Decimal]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e65",
        "1e-65",
        "1e99999999999999999999",
        "'a'",
        '"\t"',
        b"\xff",
        b"\x00",
    ],
)
def test_inexact_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(UnreadableError):
        loads(text)


def test_a_duplicate_key_is_refused_only_if_ambiguous() -> None:
    assert loads('{"a": 1, "a": 1}') == {"a": 1}
    with pytest.raises(UnreadableError, match="two different values"):
        loads('{"a": 1, "a": 2}')


def test_unstorable_text_is_replaced() -> None:
    assert loads(r'{"a\u0000": ["\ud800", "\ud83d\ude00"]}') == {"a\ufffd": ["\ufffd", "😀"]}


def test_a_byte_order_mark_is_accepted() -> None:
    assert loads(b"\xef\xbb\xbf{}") == {}


def test_json_is_written_exactly() -> None:
    value = {"a": [None, True, False, 1, 'ü\n"', Decimal("1.50")], "b": {}, "c": ()}
    assert dumps(value) == '{"a": [null, true, false, 1, "\\u00fc\\n\\"", 1.50], "b": {}, "c": []}'


@pytest.mark.parametrize("value", [0.1, [0.5], {"a": 1.0}, object(), b"x"])
def test_a_float_is_never_written(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(value)


@pytest.mark.parametrize("digits", ["NaN", "Infinity", "1e999999", "1e-999999"])
def test_unserialisable_values_are_refused(digits: str) -> None:
    with pytest.raises(AmountError):
        format_plain(Decimal(digits))


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("250000", "NGN", "250000.00"),
        (" 0.1 ", "USD", "0.10"),
        ("0.000001", "USDT", "0.000001"),
        ("12345678901234567890.12", "NGN", "12345678901234567890.12"),
    ],
)
def test_an_entered_amount_is_parsed_exactly(text: str, currency: str, amount: str) -> None:
    assert str(parse_amount(text, currency)) == amount


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Enter an amount"),
        ("   ", "Enter an amount"),
        ("0", "greater than zero"),
        ("0.00", "greater than zero"),
        ("0.001", "at most 2 decimals"),
        ("250.000", "at most 2 decimals"),  # 250,000 where a point separates thousands
        ("9" * 22, "too large"),
        ("9" * 5000, "too large"),
        *(
            (text, "digits and at most one point")
            for text in ("-1", "+1", "1e5", "NaN", "inf", "1,000.50", "1.", ".5", "1 000")
        ),
        *((text, "digits and at most one point") for text in ("١٢", "1_000", "0x10", "1.2.3", "₦5")),
    ],
)
def test_an_invalid_entered_amount_is_explained(text: str, words: str) -> None:
    with pytest.raises(AmountError, match=words):
        parse_amount(text, "NGN")


def test_an_unknown_currency_is_refused() -> None:
    with pytest.raises(AmountError, match="NGN, USD, USDT"):
        parse_amount("1", "EUR")


@pytest.mark.parametrize(
    ("number", "is_kept"),
    [
        ("0", True),
        ("0E+60", True),
        ("9" * 22, True),
        ("9" * 23, False),
        ("1E+21", True),
        ("1E+22", False),
        ("-" + "9" * 22 + ".5", True),
        ("1E-40", True),
        ("1E-41", False),
        ("0." + "0" * 41, False),
        ("NaN", False),
        ("Infinity", False),
        ("sNaN", False),
    ],
)
def test_range_of_ledger_amounts(number: str, is_kept: bool) -> None:
    assert fits_ledger(Decimal(number)) is is_kept


@pytest.mark.parametrize("amount", ["0.000000000000000001", "1", "123456789012345678901"])
def test_an_amount_of_an_unknown_currency_is_checked_for_its_size(amount: str) -> None:
    check_quantity(Decimal(amount), "BTC")


@pytest.mark.parametrize("amount", ["0", "-1", "NaN", "Infinity", "0.0000000000000000001", "1E+21"])
def test_an_invalid_amount_is_refused(amount: str) -> None:
    with pytest.raises(AmountError):
        check_quantity(Decimal(amount), "BTC")


def test_an_amount_of_a_known_currency_is_limited_to_its_decimals() -> None:
    check_quantity(Decimal("0.000001"), "USDT")
    with pytest.raises(AmountError, match="at most 6 decimals"):
        check_quantity(Decimal("0.0000001"), "USDT")


@pytest.mark.parametrize("text", ['{"a": "\\u0000"}', '{"a": "\ud800"}', b'{"a": "\\ud800"}'])
def test_unstorable_text_is_replaced_at_any_depth(text: str | bytes) -> None:
    assert loads(text) == {"a": "\ufffd"}


@pytest.mark.parametrize(("depth", "is_read"), [(50, True), (51, False)])
def test_nesting_depth_is_limited(depth: int, is_read: bool) -> None:
    text = "[" * depth + "]" * depth
    if is_read:
        assert isinstance(loads(text), list)
    else:
        with pytest.raises(UnreadableError, match="nested too deeply"):
            loads(text)
