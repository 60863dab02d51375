"""What is wanted becomes chunks of a file, whatever its kind."""

from collections.abc import Generator
from datetime import timedelta

from backoffice.reports.csv_encoding import Chunk
from backoffice.reports.models import folder
from backoffice.reports.reading import csv_of, rows_of
from backoffice.reports.wanted import Format, Wanted
from backoffice.reports.xlsx import encode_xlsx


def chunks_of(wanted: Wanted, *, at_most: timedelta) -> Generator[Chunk, None, None]:
    """The whole file. The first step fails where the report cannot be read at all."""
    if wanted.format == Format.XLSX:
        return encode_xlsx(wanted.header, rows_of(wanted, at_most=at_most), folder=str(folder()))
    return csv_of(wanted, at_most=at_most)
