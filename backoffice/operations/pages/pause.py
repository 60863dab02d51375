"""The page that pauses all payments."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import PageForm, reason_field
from backoffice.operations import permissions
from backoffice.operations.errors import OperationError
from backoffice.operations.lifecycle.pause import pause_payments
from backoffice.operations.models.monitoring import current_pause


class PauseForm(PageForm):
    """The reason for pausing."""

    reason = reason_field(
        help_text=_("Shown to everyone at the top of every page."),
        missing=_("Enter a reason. Payments were not paused."),
        max_length=300,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.PAUSE, raise_exception=True)
def pause(request: StaffRequest) -> HttpResponse:
    """Pause all payments at once, with a reason; or show who paused them and why."""
    form = PauseForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            pause_payments(actor=request.user, reason=form.cleaned_data["reason"])
        except OperationError as exc:
            form.add_error(None, str(exc))
        else:
            messages.success(
                request, gettext("Payments are paused. Resuming requires approval by another person.")
            )
            return redirect("operations:pause")
    context = {"form": form, "standing": current_pause()}
    return render(request, "operations/pause.html", context, status=422 if request.method == "POST" else 200)
