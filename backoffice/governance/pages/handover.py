"""Show the half of a new one-time link that this person may see: the link, or its start code."""

from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import permission_required
from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.setup_links import HandoverError, handover_of, show_handover
from backoffice.core.web.submissions import shown_once
from backoffice.governance.pages.team import VIEW_TEAM
from backoffice.operations.models.operations import Approval, Operation
from backoffice.operations.pages.operation.forms import BaseDecisionForm, DecisionRequirements
from backoffice.operations.states import Status


@shown_once
@cache_control(no_store=True, private=True)
@sensitive_post_parameters("code")
@sensitive_variables("shown")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW_TEAM, raise_exception=True)
def handover(request: StaffRequest, pk: UUID) -> HttpResponse:
    """GET asks for confirmation, POST shows it once. 404 for everybody but the preparer and the approver."""
    approved = Approval.objects.filter(operation=OuterRef("pk"), approver=request.user)
    involved = Q(preparer=request.user) | Exists(approved)
    operation = get_object_or_404(Operation.objects.filter(involved, status=Status.SUCCEEDED), pk=pk)
    found = handover_of(pk, request.user)
    data = request.POST if request.method == "POST" else None
    form = BaseDecisionForm(data, request=request, wants=DecisionRequirements())
    context: dict[str, object] = {"operation": operation, "handover": found, "form": form}
    if found is None or not form.is_valid():
        return render(request, "governance/handover.html", context, status=422 if form.is_bound else 200)
    try:
        shown = show_handover(pk, actor=request.user, second_factor_at=second_factor_at(request))
    except HandoverError as exc:
        form.add_error(None, str(exc))
        return render(request, "governance/handover.html", context, status=409)
    context["shown"] = setup_address(request, shown) if found.is_link else shown
    return render(request, "governance/handed_over.html", context)


def setup_address(request: StaffRequest, token: str) -> str:
    """The whole address of a one-time link."""
    path = reverse("accounts:set_up", args=[token])
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
