"""Payouts from a file: upload it, choose its columns, correct what its check found, submit it for approval."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.sessions import StaffRequest
from backoffice.core import clock
from backoffice.core.web.formatting import code_sentence
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger import balances
from backoffice.operations import permissions, policy
from backoffice.operations.batches import files, submission
from backoffice.operations.batches.columns import (
    csv_template,
    field_labels,
    needed_fields,
    row_kinds,
    xlsx_template,
)
from backoffice.operations.batches.reading import MAX_MEGABYTES, UnreadableFileError
from backoffice.operations.batches.totals import file_totals
from backoffice.operations.descriptions import Subject
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.batch import BatchKind, BatchPayload, CurrencyTotal
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import (
    MAX_ROWS,
    FileProblem,
    FileState,
    PayoutFile,
    PayoutFileRow,
    RowFlag,
)

RECENT_FILES = 10
_FORMULA_SIGNS = "=+-@\t\r"
_FORMATS: dict[str, tuple[Callable[[Any], bytes], str]] = {
    "csv": (csv_template, "text/csv; charset=utf-8"),
    "xlsx": (xlsx_template, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
}


class UploadForm(forms.Form):
    """Asks for a file, and what its rows are."""

    kind = forms.ChoiceField(label=_("Each row is a"), widget=forms.RadioSelect)
    file = forms.FileField(
        label=_("File"),
        help_text=_("CSV in UTF-8 or Excel (.xlsx), the names of the columns in the first row."),
        widget=forms.FileInput(attrs={"accept": ".csv,.xlsx"}),
        error_messages={"required": _("Choose a file.")},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = row_kinds()
        field: Any = self.fields["kind"]
        field.choices = [(kind.name, kind.label) for kind in kinds]
        field.initial = kinds[0].name

    def clean_file(self) -> Any:
        uploaded = self.cleaned_data["file"]
        if uploaded.size > MAX_MEGABYTES * 1_000_000:
            problem = {"code": FileProblem.TOO_LARGE, "limit": str(MAX_MEGABYTES)}
            raise forms.ValidationError(code_sentence(FileProblem, problem))
        return uploaded


class ColumnsForm(forms.Form):
    """Asks which column of the file has each field."""

    def __init__(self, *args: Any, file: PayoutFile, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kind = KINDS[file.kind]
        needed = needed_fields(kind)
        columns = [("", gettext("Not in the file")), *((name, name) for name in file.headers)]
        for name, label in field_labels(kind).items():
            self.fields[name] = forms.ChoiceField(
                label=label,
                choices=columns,
                required=name in needed,
                initial=file.mapping.get(name, ""),
                error_messages={"required": gettext("Select the column.")},
                widget=forms.Select(attrs={"translate": "no"}),
            )

    def clean(self) -> dict[str, Any]:
        """Refuse one column for two fields."""
        values = super().clean() or self.cleaned_data
        chosen: dict[str, str] = {}
        for name, column in values.items():
            if column and column in chosen:
                self.add_error(name, gettext("Another field already has this column."))
            chosen[column] = name
        return values

    @property
    def mapping(self) -> dict[str, str]:
        return {name: column for name, column in self.cleaned_data.items() if column}


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_files(request: StaffRequest) -> HttpResponse:
    """The form for a file, the templates, and this person's last files."""
    form = UploadForm(request.POST, request.FILES) if request.method == "POST" else UploadForm()
    if form.is_bound and form.is_valid():
        uploaded = form.cleaned_data["file"]
        try:
            file = files.upload_file(
                actor=request.user,
                kind=form.cleaned_data["kind"],
                name=uploaded.name,
                content=uploaded.read(),
                language=get_language() or "en",
            )
        except UnreadableFileError as exc:
            form.add_error("file", code_sentence(FileProblem, exc.problem))
        else:
            return redirect(file)
    recent = PayoutFile.objects.filter(uploader=request.user).defer("content")[:RECENT_FILES]
    context = {"form": form, "kinds": row_kinds(), "files": recent, "max_rows": MAX_ROWS}
    return render(request, "operations/batches/upload.html", context, status=422 if form.errors else 200)


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_template(_request: StaffRequest, kind: str, suffix: str) -> HttpResponse:
    """An empty file with the columns of this kind."""
    if suffix not in _FORMATS or kind not in {one.name for one in row_kinds()}:
        raise Http404
    make, content_type = _FORMATS[suffix]
    return _attachment(make(KINDS[kind]), f"{kind}.{suffix}", content_type)


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file(request: StaffRequest, pk: UUID) -> HttpResponse:
    return _file_page(request, _own(request, pk))


@does_not_extend_session
@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file_live(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The progress of the check, and the whole page once it has ended."""
    file = _own(request, pk)
    if file.state == FileState.CHECKING:
        return render(request, "operations/batches/_check_progress.html", {"file": file})
    response = HttpResponse(status=204)
    response["HX-Refresh"] = "true"
    return response


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file_check(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Check the rows with these columns."""
    file = _own(request, pk)
    form = ColumnsForm(request.POST, file=file)
    if not form.is_valid():
        return _file_page(request, file, form)
    try:
        files.check_columns(pk, actor=request.user, mapping=form.mapping)
    except OperationError as exc:
        messages.error(request, str(exc))
    return redirect(file)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file_submit(request: StaffRequest, pk: UUID) -> HttpResponse:
    file = _own(request, pk)
    try:
        batch = submission.submit_file(pk, actor=request.user)
    except OperationError as exc:
        messages.error(request, str(exc))
        return redirect(file)
    text = gettext("Submitted for approval. Another person must approve it.")
    messages.success(request, text, extra_tags=batch.status)
    return redirect(batch)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file_delete(request: StaffRequest, pk: UUID) -> HttpResponse:
    file = _own(request, pk)
    try:
        files.delete_file(pk, actor=request.user)
    except OperationError as exc:
        messages.error(request, str(exc))
        return redirect(file)
    messages.info(request, gettext("File deleted. Nothing was prepared."))
    return redirect("operations:payout_files")


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file_errors(request: StaffRequest, pk: UUID) -> HttpResponse:
    """All rows as CSV with a column of errors, to be corrected and uploaded again."""
    file = _own(request, pk)
    kind = KINDS[file.kind]
    labels = field_labels(kind)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*kind.file_fields, "errors"])
    for row in file.rows.iterator(chunk_size=500):
        problems = "; ".join(
            f"{labels[name]}: {problem}" if name else problem for name, problem in row.errors
        )
        cells = [row.cells.get(name, "") for name in kind.file_fields]
        writer.writerow([_without_formula(cell) for cell in [*cells, problems]])
    content = b"\xef\xbb\xbf" + text.getvalue().encode()
    return _attachment(
        content, f"{file.name.rpartition('.')[0] or 'file'}-errors.csv", "text/csv; charset=utf-8"
    )


def _without_formula(text: str) -> str:
    """The text with an apostrophe where a spreadsheet would run it. It is removed when the file is read again."""
    return f"'{text}" if text[:1] and text[0] in _FORMULA_SIGNS else text


def _attachment(content: bytes, name: str, content_type: str) -> HttpResponse:
    response = HttpResponse(content, content_type=content_type)
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=name)
    return response


def _own(request: StaffRequest, pk: UUID) -> PayoutFile:
    """The file without its content; 404 for another person's."""
    return get_object_or_404(PayoutFile.objects.defer("content"), pk=pk, uploader=request.user)


def _file_page(request: StaffRequest, file: PayoutFile, form: ColumnsForm | None = None) -> HttpResponse:
    context: dict[str, Any] = {"file": file, "kind": KINDS[file.kind]}
    if file.state in {FileState.UPLOADED, FileState.UNREADABLE} or form:
        context["form"] = form or ColumnsForm(file=file)
    elif file.state == FileState.CHECKED:
        context |= _checked_context(request, file)
    return render(request, "operations/batches/file.html", context, status=422 if form else 200)


def _checked_context(request: StaffRequest, file: PayoutFile) -> dict[str, Any]:
    shows_all = "all" in request.GET or not file.error_count
    rows = file.rows.all() if shows_all else file.rows.filter(has_errors=True)
    page = keyset_page(rows, order=("number",), cursor=request.GET.get("cursor"))
    totals = file_totals(file)
    reported = {balance.currency: balance for balance in balances.stored_balances()}
    named = {
        name for row in page.rows for name in (*filter(row.cells.get, row.cells), *(n for n, _ in row.errors))
    }
    used = {name: label for name, label in field_labels(KINDS[file.kind]).items() if name in named}
    return {
        "page": page,
        "rows": [_shown(row, used) for row in page.rows],
        "columns": used,
        "shows_all": shows_all,
        "totals": [(total, reported.get(total.currency)) for total in totals],
        "requirement": policy.approval_requirement(_subject(request, file, totals)),
    }


def _subject(request: StaffRequest, file: PayoutFile, totals: Sequence[CurrencyTotal]) -> Subject:
    """The batch as it would be submitted now, for the rule that would decide."""
    payload = BatchPayload(
        file_name=file.name,
        row_kind=file.kind,
        count=file.row_count - file.error_count,
        totals=tuple(totals),
        rows_digest="",
        new_recipients=0,
        names_differ=0,
        repeated=0,
        retry_of="",
    )
    person = request.user
    return Subject(file.pk, KINDS[BatchKind.name], payload, person.pk, str(person), clock.now())


def _shown(row: PayoutFileRow, labels: dict[str, str]) -> dict[str, Any]:
    """A row with its cells in order, each with its errors beside it."""
    problems: dict[str, list[str]] = {}
    for name, problem in row.errors:
        problems.setdefault(name, []).append(problem)
    return {
        "number": row.number,
        "cells": [
            (label, row.cells.get(name, ""), " ".join(problems.get(name, ())))
            for name, label in labels.items()
        ],
        "problem": " ".join(problems.get("", ())),
        "flags": [str(RowFlag(flag).label) for flag in row.flags],
    }
