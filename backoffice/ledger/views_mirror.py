"""How the mirror stands, for the pages that show what is in it."""

from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from backoffice.accounts.decorators import polled
from backoffice.ledger.mirror.state import mirror_state


@polled
@require_safe
@permission_required("ledger.view_transaction", raise_exception=True)
def mirror(request: HttpRequest) -> HttpResponse:
    """The box alone, which asks for itself: often while the list is read for the first time."""
    return render(request, "ledger/_mirror.html", {"mirror": mirror_state()})
