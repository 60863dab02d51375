"""One search for everything, from the top bar of every page."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from backoffice.accounts.http import StaffRequest
from backoffice.operations import permissions
from backoffice.operations.forms import SearchForm
from backoffice.operations.search import (
    NEWEST,
    everywhere,
    in_the_list,
    listed_under,
    operation_named,
    transactions_of_the_service,
)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def search(request: StaffRequest) -> HttpResponse:
    """What was found, by sort; a reference leads to its operation at once, and no text to the form alone.

    A POST only reads: it keeps account numbers out of addresses, and so out of logs and histories.
    """
    if not request.POST.get("q"):
        return render(request, "operations/search.html", {"form": SearchForm()})
    form = SearchForm(request.POST)
    if not form.is_valid():
        return render(request, "operations/search.html", {"form": form}, status=422)
    text = form.cleaned_data["q"]
    if "transactions" in request.POST:
        return _transactions(request, form, text)
    found = everywhere(request.user, text)
    operation = operation_named(found, text)
    if operation is not None:
        return redirect(operation)
    context = {
        "form": form,
        "text": text,
        "found": found,
        "more": in_the_list(found, text),
        "newest": f"{NEWEST:,}",
    }
    return render(request, "operations/search.html", context)


def _transactions(request: StaffRequest, form: SearchForm, text: str) -> HttpResponse:
    """What the service lists: htmx fills it in below the rest, and a button asks for it without JavaScript."""
    listed = transactions_of_the_service(request.user, text)
    context = {"form": form, "text": text, "listed": listed, "more": listed_under(text)}
    template = "operations/_found_transactions.html" if request.htmx else "operations/search.html"
    return render(request, template, context)
