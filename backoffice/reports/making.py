"""What is wanted becomes chunks of a file, whatever its kind."""

from collections.abc import Generator
from datetime import timedelta

from backoffice.core import stopping
from backoffice.reports.copying import Check
from backoffice.reports.csv_encoding import Chunk
from backoffice.reports.models import folder
from backoffice.reports.reading import csv_of, rows_of
from backoffice.reports.wanted import Format, Wanted
from backoffice.reports.xlsx import encode_xlsx


def chunks_of(
    wanted: Wanted, *, at_most: timedelta, check: Check = stopping.check
) -> Generator[Chunk, None, None]:
    """The whole file. The first step fails where the report cannot be read at all.

    While PostgreSQL looks for the next rows of a CSV, `check` may raise what ends it, each second.
    """
    if wanted.format == Format.XLSX:
        return encode_xlsx(wanted.header, rows_of(wanted, at_most=at_most), folder=str(folder()))
    return csv_of(wanted, at_most=at_most, check=check)
