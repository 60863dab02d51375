"""Show one's own halves of several one-time links on one page, or mail the links.

Each is shown, mailed and recorded by itself, under the rules of `handover`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from backoffice.accounts.models import SetupLink, User
from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.setup_links import (
    MOST_TOGETHER,
    HandoverError,
    NothingToHandOverError,
    PassedOn,
    halves_passed_on,
    open_halves,
    show_handover,
)
from backoffice.core.web.submissions import shown_once
from backoffice.governance.pages.handover import (
    halves_in_list,
    list_address,
    listed_references,
    mail_or_show,
    may_mail_links,
    own_operations,
    setup_address,
)
from backoffice.governance.pages.team import VIEW_TEAM
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.operation.forms import BaseDecisionForm, DecisionRequirements

MAILING_SECONDS = 4
"""No further mail is begun after this time: a server that does not answer takes up to a minute for one, and a proxy
waits 65 seconds for the page, which shows the links that could not be mailed."""


@dataclass
class JointLine:
    """One person on the page: before, with the half that can be shown; afterwards, with what was done or why not."""

    operation: Operation
    half: SetupLink | None
    passed_on: PassedOn | None = None
    shown: str = ""
    is_mailed: bool = False
    is_mail_refused: bool = False
    problem: str = ""


@shown_once
@cache_control(no_store=True, private=True)
@sensitive_post_parameters("code")
@sensitive_variables("lines")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW_TEAM, raise_exception=True)
def joint_handover(request: StaffRequest, part: str) -> HttpResponse:
    """GET lists the people; POST shows the links or the start codes of those the page named, or mails the links."""
    data = request.POST if request.method == "POST" else None
    form = BaseDecisionForm(data, request=request, requirements=DecisionRequirements())
    may_mail = part == "link" and may_mail_links()
    context: dict[str, object] = {"form": form, "part": part, "may_mail": may_mail, **_way_out(request, part)}
    if not form.is_valid():
        lines, further = _listed_lines(request, part)
        open_lines = [line for line in lines if line.half]
        context |= {"lines": lines, "open_lines": open_lines, "further": further}
        return render(request, "governance/links.html", context, status=422 if form.is_bound else 200)
    lines = _chosen_lines(request.user, part, request.POST.getlist("operation"))
    by_mail = may_mail and "mail" in request.POST
    began = monotonic()
    for line in lines:
        if by_mail and monotonic() - began > MAILING_SECONDS:
            line.problem = gettext(
                "Not sent: the mail server did not respond in time. You can still send or show this link."
            )
        else:
            _hand_over(request, line, by_mail=by_mail)
    if lines and all(line.is_mailed for line in lines):
        n = len(lines)
        messages.success(request, ngettext("{n} link was sent.", "{n} links were sent.", n).format(n=n))
        return redirect(str(context["back"]))
    done = [line for line in lines if line.shown or line.is_mailed]
    context |= {
        "lines": lines,
        "done": done,
        "failed": len(lines) - len(done),
        "further": len(halves_in_list(request, part)),
    }
    return render(request, "governance/links_shown.html", context, status=200 if done else 409)


@sensitive_variables("shown")
def _hand_over(request: StaffRequest, line: JointLine, *, by_mail: bool) -> None:
    """Show or mail the half of one person, or note why not. A link that could not be mailed is shown."""
    if line.half is None:
        line.problem = str(NothingToHandOverError())
        return
    pk, person = line.operation.pk, line.half.user
    try:
        shown = show_handover(
            pk, actor=request.user, second_factor_at=second_factor_at(request), by_mail=by_mail
        )
    except HandoverError as exc:
        line.problem = str(exc)
        return
    line.shown = setup_address(request, shown) if line.half.link_for_id == request.user.pk else shown
    if not by_mail:
        return
    line.is_mailed = mail_or_show(person, line.shown, actor=request.user, operation=pk)
    line.is_mail_refused = not line.is_mailed
    if line.is_mailed:
        line.shown = ""


def _listed_lines(request: StaffRequest, part: str) -> tuple[list[JointLine], int]:
    """The people of the list, and how many are left for the next page.

    Without a list, all whose half this person has to pass on.
    """
    halves = halves_in_list(request, part)
    chosen = {half.operation: half for half in halves[:MOST_TOGETHER] if half.operation}
    own = own_operations(request.user, part)
    if listed := listed_references(request):
        later = [half.operation for half in halves[MOST_TOGETHER:] if half.operation]
        operations = list(own.filter(reference__in=listed).exclude(pk__in=later))
    else:
        operations = list(own.filter(pk__in=chosen))
    passed_on = _passed_on(request.user, [one for one in operations if one.pk not in chosen])
    lines = [JointLine(one, chosen.get(one.pk), passed_on.get(one.pk)) for one in operations]
    return lines, max(0, len(halves) - MOST_TOGETHER)


def _chosen_lines(person: User, part: str, references: Sequence[str]) -> list[JointLine]:
    """Those of the submitted operations of which this half is for this person; nothing of the others."""
    chosen = [one for one in references[:MOST_TOGETHER] if one.isprintable()]
    operations = list(own_operations(person, part).filter(reference__in=chosen))
    halves = open_halves(person, part).filter(operation__in=[one.pk for one in operations])
    by_operation = {half.operation: half for half in halves.select_related("user")}
    return [JointLine(one, by_operation.get(one.pk)) for one in operations]


def _passed_on(person: User, operations: Iterable[Operation]) -> dict[UUID, PassedOn]:
    closed = {one.pk: one.closed_at for one in operations if one.closed_at is not None}
    return halves_passed_on(person, closed, since=min(closed.values())) if closed else {}


def _way_out(request: StaffRequest, part: str) -> dict[str, str]:
    """Where this was opened: the page of the invitations, “Waiting for me” after a joint approval, or the overview."""
    if not listed_references(request):
        return {"back": reverse("operations:overview")}
    if part == "link":
        return {"back": list_address(request, part)}
    return {"back": f"{reverse('operations:list')}?tab=waiting"}
