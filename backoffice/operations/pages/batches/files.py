"""Payments from a file: upload it, choose its columns, correct what its check found, submit it for approval.

Files of recipients are uploaded on the pages of recipients, and continue here.
"""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db import transaction
from django.db.models import QuerySet
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
from backoffice.core.web.forms import PageForm, reason_field
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger import balances
from backoffice.ledger.accounts import known_currencies
from backoffice.operations import permissions
from backoffice.operations.approval import requirements
from backoffice.operations.batches import files, submission
from backoffice.operations.batches.checking import columns_of, rules_of
from backoffice.operations.batches.columns import (
    csv_of_banks,
    csv_template,
    format_of,
    xlsx_of_banks,
    xlsx_template,
)
from backoffice.operations.batches.payout_rows import payout_kinds
from backoffice.operations.batches.reading import MAX_MEGABYTES, UnreadableFileError
from backoffice.operations.batches.row_rules import similar_text
from backoffice.operations.descriptions import Subject
from backoffice.operations.errors import OperationError, PolicyAlteredError
from backoffice.operations.kinds.base import Debit
from backoffice.operations.kinds.batch import BatchKind, BatchPayload, CurrencyTotal, currency_totals
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import (
    MAX_ROWS,
    RECIPIENT,
    FileProblem,
    FileState,
    PayoutFile,
    PayoutFileRow,
    RowFlag,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.prepare import submitted_text

RECENT_FILES = 10
_CONTENT_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}
_TEMPLATES: dict[str, Callable[[Any], bytes]] = {"csv": csv_template, "xlsx": xlsx_template}
_BANKS: dict[str, Callable[[], bytes]] = {"csv": csv_of_banks, "xlsx": xlsx_of_banks}


class FileForm(PageForm):
    """Asks for a file."""

    file = forms.FileField(
        label=_("File"),
        help_text=_("CSV in UTF-8 or Excel (.xlsx), with column names in the first row."),
        widget=forms.FileInput(attrs={"accept": ".csv,.xlsx"}),
        error_messages={"required": _("Choose a file.")},
    )

    def clean_file(self) -> Any:
        uploaded = self.cleaned_data["file"]
        if uploaded.size > MAX_MEGABYTES * 1_000_000:
            problem = {"code": FileProblem.TOO_LARGE, "limit": str(MAX_MEGABYTES)}
            raise forms.ValidationError(code_sentence(FileProblem, problem))
        return uploaded

    def store(
        self, request: StaffRequest, kind: str, *, retry_of: Operation | None = None
    ) -> PayoutFile | None:
        """The stored file, whose rows are of this kind; None, with the error beside the field, if it cannot be read.

        Its rows are checked at once if it has the columns of the template.
        """
        uploaded = self.cleaned_data["file"]
        try:
            file = files.upload_file(
                actor=request.user,
                kind=kind,
                name=uploaded.name,
                content=uploaded.read(),
                language=get_language() or "en",
                retry_of=retry_of,
            )
        except UnreadableFileError as exc:
            self.add_error("file", code_sentence(FileProblem, exc.problem))
            return None
        files.check_template_columns(file.pk, actor=request.user)
        return file


class UploadForm(FileForm):
    """Asks for a file, and what its rows are."""

    kind = forms.ChoiceField(label=_("Kind"), widget=forms.RadioSelect)

    field_order = ("kind", "file")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        kinds = payout_kinds()
        field: Any = self.fields["kind"]
        field.choices = [(kind.name, kind.label) for kind in kinds]
        field.initial = kinds[0].name


class ImportReasonForm(PageForm):
    """Asks, once for all rows, by what the approver can judge the recipients."""

    reason = reason_field(
        help_text=_("How you know that the details are right. Shown to the approver."),
        missing=_("Enter how you know that the details are right."),
        max_length=300,
        rows=2,
    )


class ColumnField(forms.ChoiceField):
    """One of the columns of the file. Browsers submit every line break as CR LF, whichever the heading has."""

    def prepare_value(self, value: Any) -> Any:
        return self._heading(value)

    def to_python(self, value: Any) -> str:
        return str(self._heading(super().to_python(value)))

    def _heading(self, submitted: Any) -> Any:
        choices: Any = self.choices
        headings = [name for name, _label in choices]
        alike = (name for name in headings if name.splitlines() == str(submitted).splitlines())
        return submitted if submitted in headings else next(alike, submitted)


class ColumnsForm(PageForm):
    """Asks which column of the file has each field."""

    def __init__(self, *args: Any, file: PayoutFile, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields = columns_of(file)
        columns = [("", gettext("Not in the file")), *((name, name) for name in file.headers)]
        for name, label in fields.labels.items():
            self.fields[name] = ColumnField(
                label=label,
                choices=columns,
                required=name in fields.needed,
                initial=file.mapping.get(name, ""),
                error_messages={"required": gettext("Select the column.")},
                widget=forms.Select(attrs={"translate": "no"}),
            )

    def clean(self) -> dict[str, Any]:
        """Refuse one column for two fields, and a payment taken for the names of the columns: it would not be paid."""
        values = super().clean() or self.cleaned_data
        if values.get("currency", "").upper() in known_currencies():
            text = gettext(
                "{heading} is a currency, not the name of a column. If the first row of the file is a payment, insert "
                "a row with the names of the columns above it, and upload the file again."
            )
            self.add_error("currency", text.format(heading=values["currency"]))
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
        file = form.store(request, form.cleaned_data["kind"])
        if file is not None:
            return redirect(file)
    recent = recent_files(request, is_import=False)
    context = {"form": form, "kinds": payout_kinds(), "files": recent, "max_rows": MAX_ROWS}
    return render(request, "operations/batches/upload.html", context, status=422 if form.errors else 200)


def recent_files(request: StaffRequest, *, is_import: bool) -> QuerySet[PayoutFile]:
    """This person's last files, of recipients or of payouts."""
    own = PayoutFile.objects.filter(uploader=request.user).defer("content")
    return (own.filter(kind=RECIPIENT) if is_import else own.exclude(kind=RECIPIENT))[:RECENT_FILES]


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_template(_request: StaffRequest, kind: str, suffix: str) -> HttpResponse:
    """A file without rows, with the columns of these payments, or of recipients; as a workbook with help."""
    if suffix not in _TEMPLATES or kind not in {RECIPIENT, *(one.name for one in payout_kinds())}:
        raise Http404
    return attachment(_TEMPLATES[suffix](rules_of(kind).columns), kind, suffix)


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def bank_codes(_request: StaffRequest, suffix: str) -> HttpResponse:
    """Code and name of each bank, for the column of a file that names one."""
    if suffix not in _BANKS:
        raise Http404
    return attachment(_BANKS[suffix](), "bank-codes", suffix)


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
        _start_check(request, pk, form.mapping)
    except OperationError as exc:
        messages.error(request, str(exc))
    return redirect(file)


@transaction.atomic
def _start_check(request: StaffRequest, pk: UUID, mapping: dict[str, str]) -> None:
    """Check the rows, unless they are being checked already: the columns must not change during a check."""
    locked = files.own_file(pk, request.user)
    if locked.state != FileState.CHECKING:
        files.check_columns(pk, actor=request.user, mapping=mapping)
    elif locked.mapping != mapping:
        text = gettext("The rows are already being checked. To select other columns, upload the file again.")
        messages.error(request, text)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file_submit(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Submit the rows as a batch or as an import of recipients."""
    file = _own(request, pk)
    form = ImportReasonForm(request.POST if file.is_import else None)
    if file.is_import and file.state == FileState.CHECKED and not form.is_valid():
        return _file_page(request, file, reason=form)
    try:
        if file.is_import:
            reason = form.cleaned_data["reason"] if form.is_valid() else ""
            operation = submission.submit_recipients(pk, actor=request.user, reason=reason)
        else:
            operation = submission.submit_file(pk, actor=request.user)
    except OperationError as exc:
        messages.error(request, str(exc))
        return redirect(file)
    messages.success(request, submitted_text(operation), extra_tags=operation.status)
    return redirect(operation)


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
    return redirect("governance:recipient_files" if file.is_import else "operations:payout_files")


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def payout_file_errors(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The uploaded file with a column of errors, to be corrected and uploaded again."""
    file = _own(request, pk)
    if file.state in {FileState.SUBMITTED, FileState.UNREADABLE}:
        return redirect(file)
    try:
        content = files.file_of_errors(file)
    except UnreadableFileError:  # it was not checked yet; its page says why
        return redirect(file)
    return attachment(content, f"{file.name.rpartition('.')[0] or 'file'}-errors", format_of(file.name))


def attachment(content: bytes, name: str, suffix: str) -> HttpResponse:
    """A file for the browser to store, of the type of this suffix."""
    response = HttpResponse(content, content_type=_CONTENT_TYPES[suffix])
    disposition = content_disposition_header(as_attachment=True, filename=f"{name}.{suffix}")
    response["Content-Disposition"] = disposition
    return response


def _own(request: StaffRequest, pk: UUID) -> PayoutFile:
    """The file without its content; 404 for another person's."""
    return get_object_or_404(PayoutFile.objects.defer("content"), pk=pk, uploader=request.user)


def _file_page(
    request: StaffRequest,
    file: PayoutFile,
    form: ColumnsForm | None = None,
    reason: ImportReasonForm | None = None,
) -> HttpResponse:
    """The page of a file in its state. `form` or `reason` is a form that was refused."""
    context: dict[str, Any] = {"file": file, "kind": KINDS[file.kind]}
    if file.state in {FileState.UPLOADED, FileState.UNREADABLE} or form:
        context["form"] = form or ColumnsForm(file=file)
    elif file.state == FileState.CHECKED:
        context |= _checked_context(request, file) | {"reason": reason or ImportReasonForm()}
    status = 422 if form or reason else 200
    return render(request, "operations/batches/file.html", context, status=status)


def _checked_context(request: StaffRequest, file: PayoutFile) -> dict[str, Any]:
    shows_all = "all" in request.GET or not file.error_count
    rows = file.rows.all() if shows_all else file.rows.filter(has_errors=True)
    page = keyset_page(rows, order=("number",), cursor=request.GET.get("cursor"))
    named = {
        name for row in page.rows for name in (*filter(row.cells.get, row.cells), *(n for n, _ in row.errors))
    }
    used = {name: label for name, label in columns_of(file).labels.items() if name in named}
    return {
        "page": page,
        "rows": [_shown(row, used) for row in page.rows],
        "columns": used,
        "shows_all": shows_all,
    } | ({} if file.is_import else _totals_context(request, file))


def _totals_context(request: StaffRequest, file: PayoutFile) -> dict[str, Any]:
    amounts = file.rows.filter(has_errors=False).order_by().values_list("currency", "amount")
    totals = currency_totals(Debit(currency, amount) for currency, amount in amounts if amount is not None)
    reported = {balance.currency: balance for balance in balances.stored_balances()}
    context: dict[str, Any] = {"totals": [(total, reported.get(total.currency)) for total in totals]}
    try:
        context["requirement"] = requirements.approval_requirement(_subject(request, file, totals))
    except PolicyAlteredError as exc:
        context["policy_problem"] = str(exc)
    return context


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
            (label, row.cells.get(name, ""), " ".join(problems.get(name, ())), name == "amount")
            for name, label in labels.items()
        ],
        "problem": " ".join(problems.get("", ())),
        "flags": [str(RowFlag(flag).label) for flag in row.flags],
        "similar": [similar_text(one) for one in row.similar],
    }
