"""First steps of a new installation: the first administrator invites the second one, or renews that link."""

from functools import cache
from typing import cast

from django import forms
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from backoffice.accounts.models import User
from backoffice.accounts.roles import administrators_not_set_up
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.staff import EmailTakenError
from backoffice.core.web.submissions import shown_once
from backoffice.governance.bootstrap import (
    NotBootstrappingError,
    bootstrap_state,
    invite_second_administrator,
    people_with_renewable_link,
    renew_second_administrator_link,
)
from backoffice.governance.pages.handover import mailed, may_mail_links, setup_address
from backoffice.governance.policy_drafts import has_draft
from backoffice.governance.team import team_state
from backoffice.operations.kinds.form_fields import OneLineField
from backoffice.operations.pages.operation.forms import BaseDecisionForm, DecisionRequirements
from backoffice.operations.permissions import APPROVE_GOVERNANCE


class SecondAdministratorForm(BaseDecisionForm):
    """Name and address of the second administrator, and a second factor unless one is fresh."""

    full_name = OneLineField(label=_("Full name"), max_length=120)
    email = forms.EmailField(label=_("Email address"), max_length=254)


@shown_once
@cache_control(no_store=True, private=True)
@sensitive_post_parameters("code")
@sensitive_variables("token")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(APPROVE_GOVERNANCE, raise_exception=True)
def bootstrap(request: StaffRequest) -> HttpResponse:
    """The invitation and its link, shown once or mailed; the Team page once two have an authenticator."""
    state = bootstrap_state()
    if not state.is_open:
        return redirect("governance:team")
    data = request.POST if request.method == "POST" else None
    form = SecondAdministratorForm(data, request=request, requirements=DecisionRequirements())
    context = {"form": form, "invited": state.invited, "may_mail": may_mail_links()}
    if form.is_valid():
        values = {name: form.cleaned_data[name] for name in ("full_name", "email")}
        try:
            person, token = invite_second_administrator(actor=request.user, **values)
        except (EmailTakenError, NotBootstrappingError) as exc:
            form.add_error(None, str(exc) or gettext("Nothing was changed. Open the Team page."))
        else:
            return _link_page(request, person, token)
    return render(request, "governance/bootstrap.html", context, status=422 if form.is_bound else 200)


@shown_once
@cache_control(no_store=True, private=True)
@sensitive_post_parameters("code")
@sensitive_variables("token")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(APPROVE_GOVERNANCE, raise_exception=True)
def renew_link(request: StaffRequest, pk: int) -> HttpResponse:
    """A new link for the second administrator, who never set up an authenticator; the Team page if this is not possible
    any more.
    """
    if pk not in people_with_renewable_link():
        return redirect("governance:team")
    person = get_object_or_404(User, pk=pk)
    data = request.POST if request.method == "POST" else None
    form = BaseDecisionForm(data, request=request, requirements=DecisionRequirements())
    if form.is_valid():
        try:
            _person, token = renew_second_administrator_link(pk, actor=request.user)
        except NotBootstrappingError:
            text = gettext(
                "No new link was created: the second administrator has set up the account, or the team has other "
                "accounts. Open the Team page."
            )
            form.add_error(None, text)
        else:
            return _link_page(request, person, token)
    context = {"form": form, "person": person, "may_mail": may_mail_links()}
    return render(request, "governance/renew_link.html", context, status=422 if form.is_bound else 200)


@sensitive_variables("token", "shown")
def _link_page(request: StaffRequest, person: User, token: str) -> HttpResponse:
    """The link, shown only now; or the Team page once it was mailed."""
    shown: dict[str, object] = {"person": person, "shown": setup_address(request, token)}
    by_mail = may_mail_links() and "mail" in request.POST
    if by_mail and mailed(request, person, shown):
        return redirect("governance:team")
    return render(request, "governance/second_administrator.html", shown)


def first_steps(request: HttpRequest) -> dict[str, object]:
    """Context processor: `are_first_steps_open`, `invited_alone` (the second administrator until the set-up is
    finished), `administrators_not_set_up` (all of them, also those made at the shell), `has_policy_draft` and
    `team_state`, each read only if a template uses it.
    """
    state = cache(bootstrap_state)
    return {
        "are_first_steps_open": lambda: state().is_open,
        "invited_alone": lambda: list(state().invited) if state().is_open else [],
        "administrators_not_set_up": lambda: list(administrators_not_set_up()),
        "has_policy_draft": lambda: has_draft(request),
        "team_state": lambda: team_state(cast(User, request.user)),
    }
