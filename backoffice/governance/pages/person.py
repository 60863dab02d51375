"""The page of one person: what the person may do since when, and what one administrator can do at once."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.access_report import access_rows
from backoffice.accounts.models import User
from backoffice.accounts.restrictions import restrictions_of
from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.forms import reason_field
from backoffice.governance import deactivation
from backoffice.governance.bootstrap import invited_alone, people_with_renewable_link
from backoffice.governance.pages.team import VIEW_TEAM, setup_of, shown_rights
from backoffice.governance.team import team_members, waiting_change
from backoffice.operations.errors import OperationError
from backoffice.operations.pages.operation.forms import BaseDecisionForm, DecisionRequirements
from backoffice.operations.permissions import APPROVE_GOVERNANCE


@require_safe
@permission_required(VIEW_TEAM, raise_exception=True)
def person(request: StaffRequest, pk: int) -> HttpResponse:
    """Rights since when and by whose approval, sign-in, sessions, and the actions."""
    shown = get_object_or_404(team_members(timezone.now()).annotate(invited_alone=invited_alone()), pk=pk)
    may_be_renewable = vars(shown)["invited_alone"] and not vars(shown)["has_second_factor"]
    renewable = people_with_renewable_link() if may_be_renewable else frozenset()
    context = {
        "person": shown,
        "setup": setup_of(shown, request.user, renewable),
        "rights": shown_rights(access_rows([shown.pk])),
        "restrictions": restrictions_of(vars(shown)),
        "waiting": waiting_change(shown),
        "is_self": shown == request.user,
    }
    return render(request, "governance/person.html", context)


class OnePersonForm(BaseDecisionForm):
    """The reason, and a second factor unless one is fresh."""

    reason = reason_field(
        help_text=_("Recorded in the audit log."),
        missing=_("Enter a reason. Nothing was changed."),
        max_length=300,
    )


_ACTIONS: dict[str, tuple[Callable[..., User], object]] = {
    "deactivate": (
        deactivation.deactivate_person,
        _("{person} can no longer sign in. All sessions have ended."),
    ),
    "end_sessions": (deactivation.end_sessions, _("All sessions of {person} have ended.")),
}


@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required((VIEW_TEAM, APPROVE_GOVERNANCE), raise_exception=True)
def act(request: StaffRequest, pk: int, action: str) -> HttpResponse:
    """Deactivate the account, or end its sessions, after a confirmation."""
    shown = get_object_or_404(deactivation.people_with_open_operations(), pk=pk)
    data = request.POST if request.method == "POST" else None
    form = OnePersonForm(data, request=request, requirements=DecisionRequirements())
    service, done = _ACTIONS[action]
    if form.is_valid():
        try:
            service(
                pk,
                actor=request.user,
                second_factor_at=second_factor_at(request),
                reason=form.cleaned_data["reason"],
            )
        except OperationError as exc:
            form.add_error(None, str(exc))
        else:
            messages.success(request, str(done).format(person=shown))
            return redirect("governance:person", pk)
    context = {
        "person": shown,
        "form": form,
        "action": action,
        "title": _title(action),
        "stranded": shown.is_active and vars(shown)["stranded_operations"],
        "lost": deactivation.lost_approvals(pk) if action == "deactivate" and shown.is_active else [],
    }
    return render(request, "governance/person_action.html", context, status=422 if form.is_bound else 200)


def _title(action: str) -> str:
    return gettext("Deactivate account") if action == "deactivate" else gettext("End sessions")
