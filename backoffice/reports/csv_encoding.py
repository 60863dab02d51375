"""Rows of text as CSV: RFC 4180 in UTF-8. `copying` makes the same bytes of the same rows."""

import csv
import io
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

CHUNK_BYTES = 131_072
_ROWS_AT_ONCE = 200
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Chunk:
    """Some bytes of the file, and how many rows end in them."""

    content: bytes
    rows: int


def head(header: Sequence[str], *, has_mark: bool) -> bytes:
    """The line of headings, behind the byte order mark if it `has_mark`."""
    buffer = io.StringIO(newline="")
    _writer(buffer, len(header)).writerow(header)
    return ((_BYTE_ORDER_MARK if has_mark else "") + buffer.getvalue()).encode()


def encode(rows: Iterable[Sequence[str | None]], *, columns: int) -> Generator[Chunk, None, None]:
    """The rows in chunks. Takes some rows from `rows` only when they are needed; holds one chunk."""
    buffer, waiting, rows = io.StringIO(newline=""), 0, iter(rows)
    writer = _writer(buffer, columns)
    while batch := list(islice(rows, _ROWS_AT_ONCE)):
        _write(batch, buffer, writer, columns)
        waiting += len(batch)
        if buffer.tell() >= CHUNK_BYTES:
            yield _drained(buffer, waiting)
            waiting = 0
    if waiting:
        yield _drained(buffer, waiting)


def quotes_everything(columns: int) -> bool:
    """Whether every cell is quoted: a line with nothing on it would not be a row with one empty cell."""
    return columns == 1


def _writer(buffer: io.StringIO, columns: int) -> Any:
    if quotes_everything(columns):
        return csv.writer(buffer, lineterminator="\r\n", quoting=csv.QUOTE_ALL)
    return csv.writer(buffer, lineterminator="\r\n")


def _write(batch: list[Sequence[str | None]], buffer: io.StringIO, writer: Any, columns: int) -> None:
    """Most rows need no quotes: joining and searching them is several times faster than looking at each character."""
    for row in batch:
        line = ",".join([text or "" for text in row])
        if (
            quotes_everything(columns)
            or line.count(",") >= columns
            or '"' in line
            or "\n" in line
            or "\r" in line
        ):
            writer.writerow(row)
        else:
            buffer.write(line)
            buffer.write("\r\n")


def _drained(buffer: io.StringIO, rows: int) -> Chunk:
    content = buffer.getvalue().encode("utf-8", "replace")
    buffer.seek(0)
    buffer.truncate()
    return Chunk(content, rows)
