"""The columns of a file of payouts: its template, and which column of a file has which field."""

import csv
import io
from collections.abc import Mapping, Sequence

import xlsxwriter
from django.utils.translation import gettext

from backoffice.operations.kinds.registry import KINDS, AnyKind


def row_kinds() -> list[AnyKind]:
    """The kinds that can be prepared from a file, in the order of the registry."""
    return [kind for kind in KINDS.values() if kind.file_fields]


def field_labels(kind: AnyKind) -> dict[str, str]:
    """The label of each field that a file may have, in the order of the template."""
    return {name: str(kind.form_type.base_fields[name].label) for name in kind.file_fields}


def needed_fields(kind: AnyKind) -> list[str]:
    """The fields that a file must have."""
    return [name for name in kind.file_fields if kind.form_type.base_fields[name].required]


def guess_mapping(kind: AnyKind, headers: Sequence[str], remembered: Mapping[str, str]) -> dict[str, str]:
    """The column of each field: as this person chose it last, or by the name or label of the field."""
    by_name = {_simplified(header): header for header in headers}
    found = {}
    for name, label in field_labels(kind).items():
        wanted = (remembered.get(name, ""), name, label)
        column = next((by_name[_simplified(one)] for one in wanted if _simplified(one) in by_name), None)
        if column is not None:
            found[name] = column
    return found


def _simplified(text: str) -> str:
    return "".join(text.casefold().replace("_", " ").split())


def csv_template(kind: AnyKind) -> bytes:
    """The header of a file, in UTF-8 with the mark by which spreadsheets recognise it."""
    text = io.StringIO()
    csv.writer(text).writerow(kind.file_fields)
    return b"\xef\xbb\xbf" + text.getvalue().encode()


def xlsx_template(kind: AnyKind) -> bytes:
    """The same as a workbook whose cells are text, so that account numbers keep their leading zeros."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"in_memory": True}) as workbook:
        sheet = workbook.add_worksheet(gettext("Payouts"))
        as_text = workbook.add_format({"num_format": "@"})
        sheet.set_column(0, len(kind.file_fields) - 1, 22, as_text)
        sheet.write_row(0, 0, kind.file_fields, workbook.add_format({"bold": True}))
        sheet.freeze_panes(1, 0)
    return content.getvalue()
