"""Bank accounts saved under a name: saving the one that an operation pays, and looking after all of them."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.http import StaffRequest
from backoffice.core.pagination import keyset_page
from backoffice.operations import permissions, services
from backoffice.operations.account_forms import SavedAccountForm
from backoffice.operations.errors import SavedAccountError, UnreadableContentError
from backoffice.operations.models import SavedAccount
from backoffice.operations.views import detail

PER_PAGE = 25
NEWEST_FIRST = ("-saved_at", "-id")


@require_safe
@permission_required(permissions.PREPARE, raise_exception=True)
def saved_accounts(request: StaffRequest) -> HttpResponse:
    """All of them, the newest first."""
    saved = SavedAccount.objects.select_related("saved_by")
    page = keyset_page(saved, order=NEWEST_FIRST, cursor=request.GET.get("cursor"), size=PER_PAGE)
    return render(request, "operations/saved_accounts.html", {"page": page})


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def save(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Keep the account that this operation pays; refused, the operation's page says why beside the name."""
    operation = detail.find(request, pk)
    form = SavedAccountForm(request.POST)
    if form.is_valid():
        try:
            saved = services.save_account(pk, actor=request.user, **form.cleaned_data)
        except (SavedAccountError, UnreadableContentError) as exc:
            form.add_error("name", str(exc))
        else:
            messages.success(request, f"The account is saved as “{saved.name}”. Saving it pays nobody.")
            return redirect(operation)
    return detail.page(request, operation, saving=form)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PREPARE, raise_exception=True)
def saved_account(request: StaffRequest, pk: int) -> HttpResponse:
    """One of them, to be called something else or deleted."""
    saved = get_object_or_404(SavedAccount.objects.select_related("saved_by"), pk=pk)
    if request.method != "POST":
        return _page(request, saved, SavedAccountForm(initial={"name": saved.name}))
    form = SavedAccountForm(request.POST)
    if form.is_valid():
        try:
            services.rename_account(pk, actor=request.user, **form.cleaned_data)
        except SavedAccountError as exc:
            form.add_error("name", str(exc))
        except SavedAccount.DoesNotExist as exc:
            raise Http404("It was deleted at this very moment") from exc
        else:
            messages.success(request, "The account has its new name.")
            return redirect("operations:saved_accounts")
    return _page(request, saved, form, status=422)


@require_POST
@permission_required(permissions.PREPARE, raise_exception=True)
def delete(request: StaffRequest, pk: int) -> HttpResponse:
    services.delete_account(pk, actor=request.user)
    messages.success(request, "The account is not saved any more. Operations to it stay as they are.")
    return redirect("operations:saved_accounts")


def _page(
    request: StaffRequest, saved: SavedAccount, form: SavedAccountForm, *, status: int = 200
) -> HttpResponse:
    return render(request, "operations/saved_account.html", {"saved": saved, "form": form}, status=status)
