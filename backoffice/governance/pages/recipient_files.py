"""Import recipients: upload a file, with a template to begin from. The file's own pages follow."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from backoffice.accounts.sessions import StaffRequest
from backoffice.operations import permissions
from backoffice.operations.kinds.recipient import RecipientKind
from backoffice.operations.models.batches import MAX_ROWS
from backoffice.operations.pages.batches.files import FileForm, recent_files


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PREPARE, raise_exception=True)
def recipient_files(request: StaffRequest) -> HttpResponse:
    """The form for a file, the templates, and this person's last files."""
    form = FileForm(request.POST, request.FILES) if request.method == "POST" else FileForm()
    if form.is_bound and form.is_valid():
        file = form.store(request, RecipientKind.name)
        if file is not None:
            return redirect(file)
    context = {"form": form, "files": recent_files(request, is_import=True), "max_rows": MAX_ROWS}
    return render(request, "governance/recipient_files.html", context, status=422 if form.errors else 200)
