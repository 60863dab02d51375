"""Retry the unpaid rows of a batch: why each was not paid, and a new file of them, as they are or corrected."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import code_sentence
from backoffice.core.web.pagination import keyset_page
from backoffice.operations import permissions
from backoffice.operations.batches import control
from backoffice.operations.batches.reading import UnreadableFileError
from backoffice.operations.batches.retried_rows import retryable_rows
from backoffice.operations.errors import NothingToRetryError, OperationError
from backoffice.operations.models.batches import FileProblem
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.batches.batch import batch_or_404
from backoffice.operations.pages.batches.files import FileForm, attachment


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PREPARE, raise_exception=True)
def batch_retry(request: StaffRequest, pk: UUID) -> HttpResponse:
    """The rows that can be retried, with the reasons. POST makes a new file of them as they are."""
    operation = batch_or_404(request, pk)
    if request.method != "POST":
        return _page(request, operation, FileForm())
    try:
        file = control.retry_rows(pk, actor=request.user, language=get_language() or "en")
    except OperationError as exc:
        return _refused(request, operation, exc)
    except UnreadableFileError as exc:
        text = gettext(
            "{problem} Nothing was prepared. Download the unpaid rows, and upload them in several files."
        )
        messages.error(request, text.format(problem=code_sentence(FileProblem, exc.problem)))
        return redirect("operations:batch_retry", operation.pk)
    return redirect(file)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def batch_retry_upload(request: StaffRequest, pk: UUID) -> HttpResponse:
    """A new file of these rows, as the person corrected them."""
    operation = batch_or_404(request, pk)
    row = retryable_rows(pk).first()
    if row is None:
        return _refused(request, operation, NothingToRetryError())
    form = FileForm(request.POST, request.FILES)
    file = form.store(request, row.kind, retry_of=operation) if form.is_valid() else None
    return _page(request, operation, form, status=422) if file is None else redirect(file)


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def batch_retry_file(request: StaffRequest, pk: UUID) -> HttpResponse:
    """These rows, to be corrected, in the format of the file of the batch."""
    operation = batch_or_404(request, pk)
    try:
        content = control.retry_file(operation)
    except OperationError as exc:
        return _refused(request, operation, exc)
    return attachment(content, f"{operation.reference}-unpaid", control.format_of_file(operation))


def _refused(request: StaffRequest, operation: Operation, reason: OperationError) -> HttpResponse:
    messages.error(request, str(reason))
    return redirect("operations:batch", operation.pk)


def _page(request: StaffRequest, operation: Operation, form: FileForm, status: int = 200) -> HttpResponse:
    unpaid = retryable_rows(operation.pk)
    page = keyset_page(unpaid, order=("number",), cursor=request.GET.get("cursor"))
    context = {
        "operation": operation,
        "form": form,
        "page": page,
        "rows": [(row, control.unpaid_reason(row)) for row in page.rows],
        "is_workbook": control.format_of_file(operation) == "xlsx",
        "count": unpaid.count(),
        "retries": operation.retries.select_related("operation").order_by("operation__prepared_at"),
    }
    return render(request, "operations/batches/retry.html", context, status=status)
