from typing import cast

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_POST

from backoffice.audit import selectors, services
from backoffice.audit.forms import EntryFilterForm
from backoffice.audit.models import Entry
from backoffice.core.pagination import keyset_page


@require_GET
@permission_required("audit.view_entry", raise_exception=True)
def entry_list(request: HttpRequest) -> HttpResponse:
    """The log, newest first, narrowed by the filters in the address."""
    form = EntryFilterForm(request.GET)
    found = selectors.entries(**form.cleaned_data) if form.is_valid() else Entry.objects.none()
    page = keyset_page(found, order=("-position",), cursor=request.GET.get("cursor"))
    return render(
        request, "audit/list.html", {"form": form, "page": page}, status=200 if form.is_valid() else 422
    )


@require_POST
@permission_required("audit.view_entry", raise_exception=True)
def verify(request: HttpRequest) -> HttpResponse:
    """Verify the whole log and show the verdict."""
    person = cast("AbstractBaseUser", request.user)  # nobody else has a permission
    verdict = services.verify_log(actor=person)
    return render(request, "audit/verdict.html", {"verdict": verdict})
