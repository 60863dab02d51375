"""Show the half of a new one-time link that this person may see: the link, or its start code; or mail the link."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Exists, OuterRef, Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from backoffice.accounts.models import User
from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.setup_links import HandoverError, handover_of, record_shown_instead, show_handover
from backoffice.core.web.mail import MailNotSentError
from backoffice.core.web.submissions import shown_once
from backoffice.governance.pages.setup_mail import mail_setup_link, may_mail_links, setup_address
from backoffice.governance.pages.team import VIEW_TEAM
from backoffice.operations.kinds.staff_change import progress_of_handover
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
    """GET asks for confirmation; POST shows it once, or mails the link. 404 for all but the preparer and approver."""
    approved = Approval.objects.filter(operation=OuterRef("pk"), approver=request.user)
    involved = Q(preparer=request.user) | Exists(approved)
    operation = get_object_or_404(Operation.objects.filter(involved, status=Status.SUCCEEDED), pk=pk)
    found = handover_of(pk, request.user)
    data = request.POST if request.method == "POST" else None
    form = BaseDecisionForm(data, request=request, requirements=DecisionRequirements())
    may_mail = found is not None and found.is_link and may_mail_links()
    context: dict[str, object] = {
        "operation": operation,
        "handover": found,
        "progress": progress_of_handover(operation, request.user),
        "form": form,
        "may_mail": may_mail,
    }
    if found is None or not form.is_valid():
        return render(request, "governance/handover.html", context, status=422 if form.is_bound else 200)
    by_mail = may_mail and "mail" in request.POST
    try:
        shown = show_handover(
            pk, actor=request.user, second_factor_at=second_factor_at(request), by_mail=by_mail
        )
    except HandoverError as exc:
        form.add_error(None, str(exc))
        return render(request, "governance/handover.html", context, status=409)
    context["shown"] = setup_address(request, shown) if found.is_link else shown
    if by_mail and mailed(request, found.link.user, context, has_start_code=True):
        return redirect(operation.get_absolute_url())
    return render(request, "governance/handed_over.html", context)


def mailed(request: StaffRequest, person: User, context: dict[str, object], *, has_start_code: bool) -> bool:
    """Mail the link of the context. If it could not be sent, the page shows it instead, and that is recorded."""
    try:
        mail_setup_link(person, str(context["shown"]), has_start_code=has_start_code)
    except MailNotSentError:
        record_shown_instead(person, actor=request.user)
        context["is_mail_refused"] = True
        return False
    text = gettext("The link was sent to {email}.").format(email=person.email)
    messages.success(request, text)
    return True
