"""Which addresses pass for one another, and how their differences are marked."""

import pytest

from backoffice.recipients.look_alikes import looks_alike, mark_differences

PAID = "0xabc1112223334445556667778889990001112def"


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (PAID, False),
        (PAID.upper().replace("0X", "0x"), False),
        ("0xabc9998887776665554443332221119998887def", True),
        ("0xABC9998887776665554443332221119998887DEF", True),
        ("0xabc1112223334445556667778889990001112dee", True),
        ("0xbbc1112223334445556667778889990001112def", True),
        ("0xabc9998887776665554443332221119998887fff", False),
        ("0xfff9998887776665554443332221119998887def", False),
        ("0x0123456789012345678901234567890123456789", False),
        ("", False),
    ],
)
def test_same_ends_or_a_typing_error_are_lookalikes(other: str, alike: bool) -> None:
    assert looks_alike(PAID, other) is alike
    assert looks_alike(other, PAID) is alike


def test_a_tron_address_in_another_case_is_a_lookalike() -> None:
    assert looks_alike("TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE", "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSe")


@pytest.mark.parametrize(
    ("address", "beside", "shown"),
    [
        ("abcdef", "abcdef", "abcdef"),
        ("abcdef", "abXdef", "ab[c]def"),
        ("abcdefghij", "XbcdefghiX", "[a]bcdefghi[j]"),
        ("abcdef", "aXcXef", "a[bcd]ef"),
        ("abcdef", "abef", "ab[cd]ef"),
        ("abef", "abcdef", "ab[]ef"),
        ("0xABc", "0xabd", "0xAB[c]"),
    ],
)
def test_differences_are_in_brackets(address: str, beside: str, shown: str) -> None:
    assert mark_differences(address, beside) == shown
