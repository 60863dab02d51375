"""CSV that every reader understands and no spreadsheet runs."""

import csv
import io
import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from backoffice.reports.rendering.cells import cell_text
from backoffice.reports.rendering.csv import CHUNK_BYTES, csv_header, encode_csv


def encoded(header: list[str], rows: list[list[object]]) -> bytes:
    texts = [[cell_text(value) for value in row] for row in rows]
    chunks = encode_csv(texts, columns=len(header))
    return csv_header(header, has_byte_order_mark=False) + b"".join(chunk.content for chunk in chunks)


def test_lines_end_with_crlf_including_the_last() -> None:
    assert encoded(["a", "b"], [[1, "x"], [2, ""]]) == b"a,b\r\n1,x\r\n2,\r\n"


def test_a_report_without_rows_still_has_its_header() -> None:
    assert encoded(["a", "b"], []) == b"a,b\r\n"


@pytest.mark.parametrize(
    "text", ['say "yes"', "a,b", "two\r\nlines", "two\nlines", "Ada Obí, ₦", " spaced ", "a;b"]
)
def test_any_text_round_trips(text: str) -> None:
    content = encoded(["text", "next"], [[text, "end"]]).decode("utf-8")

    assert list(csv.reader(io.StringIO(content, newline=""), strict=True)) == [
        ["text", "next"],
        [text, "end"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\tx",
        "\rx",
        "\nx",
        '=HYPERLINK("http://example.com","pay")',
        "\uff1d1+1",
        "\uff0b1",
        "\uff0d1",
        "\uff20SUM(A1)",
        " =1+1",
        "\u00a0=1+1",
        "\ufeff=1+1",
        "\u200b-1",
        " \tx",
    ],
)
def test_no_cell_begins_like_a_formula(text: str) -> None:
    assert cell_text(text) == f"'{text}"


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("Ada;=1+1", "Ada;'=1+1"),
        ("Ada\t=1+1", "Ada\t'=1+1"),
        ("Ada\r\n-1", "Ada\r\n'-1"),
        ("Ada; \u00a0\uff0b1;@x", "Ada;' \u00a0\uff0b1;'@x"),
        ('Ada;"=1+1"', 'Ada;\'"=1+1"'),
        ("\t=1+1", "'\t'=1+1"),
        (";=1+1", ";'=1+1"),
    ],
)
def test_no_cell_begins_like_a_formula_with_other_separators(text: str, cell: str) -> None:
    assert cell_text(text) == cell


@pytest.mark.parametrize(
    "text", ["", "a=1", "1-2", "Ada", "'=1", "1", "ada@example.com", "a;b", "a;1-2", "two\r\nlines", "a;\t;"]
)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert cell_text(text) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (7, "7"),
        (Decimal("250000.00"), "250000"),
        (Decimal("0.10"), "0.1"),
        (Decimal("-0.00"), "0"),
        (True, "true"),
        (False, "false"),
        (timedelta(days=1, seconds=1, microseconds=999_999), "86401"),
        (Decimal("1E+3"), "1000"),
        (Decimal("0.000001"), "0.000001"),
        (Decimal("-5"), "'-5"),
        (date(2026, 3, 1), "2026-03-01"),
    ],
)
def test_values_are_written_exactly(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_a_time_carries_its_zone() -> None:
    moment = datetime(2026, 3, 1, 9, 30, 0, 250, tzinfo=UTC)

    with timezone.override(ZoneInfo("Africa/Lagos")):
        assert cell_text(moment) == "2026-03-01T10:30:00.000250+01:00"


def test_an_unpaired_surrogate_does_not_abort_the_file() -> None:
    assert encoded(["a", "b"], [["x\ud83d", 1]]) == b"a,b\r\nx?,1\r\n"


def test_empty_cells_of_a_single_column_are_quoted() -> None:
    assert encoded(["a"], [[None], ["x"]]) == b'"a"\r\n""\r\n"x"\r\n'


def test_the_byte_order_mark_comes_first_where_it_is_requested() -> None:
    assert csv_header(["a", "b"], has_byte_order_mark=True) == b"\xef\xbb\xbfa,b\r\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"bb": 1, "a": [True, None], "é": "₦"}, '{"a": [true, null], "bb": 1, "é": "₦"}'),
        ([{"b": 1, "a": 2}], '[{"a": 2, "b": 1}]'),
    ],
)
def test_json_keys_are_sorted(value: object, text: str) -> None:
    assert cell_text(value) == text


def test_rows_are_read_lazily_by_chunk() -> None:
    drawn = itertools.count()
    rows: Iterator[list[str]] = ([str(next(drawn)), "x" * 100] for _ in itertools.repeat(None))
    chunks = encode_csv(rows, columns=2)

    first, second = next(chunks), next(chunks)

    assert CHUNK_BYTES <= len(first.content) < 2 * CHUNK_BYTES
    assert next(drawn) == first.rows + second.rows


def test_every_row_is_counted_once() -> None:
    chunks = list(encode_csv([["x" * 1000] for _ in range(1000)], columns=1))

    assert len(chunks) > 2
    assert sum(chunk.rows for chunk in chunks) == 1000
