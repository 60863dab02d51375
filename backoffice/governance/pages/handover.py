"""Show the half of a new one-time link that this person may see: the link, or its start code; or mail the link to the
person it is for. The start code is never in a mail: its approver passes it on.

`joint_handover` does so for several people. Both keep the list on which they were opened in their query.
"""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import translation
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.views.decorators.cache import cache_control
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods

from backoffice.accounts.models import Language, SetupLink, User
from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.setup_links import (
    HandoverError,
    handover_of,
    open_halves,
    record_shown_instead,
    show_handover,
)
from backoffice.accounts.staff import SETUP_LINK_LIFETIME
from backoffice.core.web.mail import MailNotSentError, email_is_on, send_now
from backoffice.core.web.submissions import shown_once
from backoffice.governance.pages.team import VIEW_TEAM
from backoffice.operations.kinds.staff_change import MAKES_LINK, StaffChangeKind, progress_of_handover
from backoffice.operations.models.operations import Approval, Operation
from backoffice.operations.pages.operation.forms import BaseDecisionForm, DecisionRequirements
from backoffice.operations.states import Status
from backoffice.operations.workflow.approvals import BULK_LIMIT

MOST_LISTED = BULK_LIMIT


@shown_once
@cache_control(no_store=True, private=True)
@sensitive_post_parameters("code")
@sensitive_variables("shown")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(VIEW_TEAM, raise_exception=True)
def handover(request: StaffRequest, pk: UUID) -> HttpResponse:
    """GET asks for confirmation; POST shows the half once, or mails the link. 404 for all but preparer and approver."""
    approved = Approval.objects.filter(operation=OuterRef("pk"), approver=request.user)
    involved = Q(preparer=request.user) | Exists(approved)
    operation = get_object_or_404(Operation.objects.filter(involved, status=Status.SUCCEEDED), pk=pk)
    found, part = handover_of(pk, request.user), part_of(operation, request.user)
    data = request.POST if request.method == "POST" else None
    form = BaseDecisionForm(data, request=request, requirements=DecisionRequirements())
    may_mail = found is not None and found.is_link and may_mail_links()
    context: dict[str, object] = {
        "operation": operation,
        "handover": found,
        "progress": progress_of_handover(operation, request.user),
        "form": form,
        "may_mail": may_mail,
        "back": list_address(request, part) if listed_references(request) else operation.get_absolute_url(),
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
    if remaining := halves_in_list(request, part):
        context |= {"back": list_address(request, part), "next": remaining[0], "remaining": len(remaining)}
    if by_mail and mailed(request, found.link.user, context, operation=pk):
        return redirect(str(context["back"]))
    return render(request, "governance/handed_over.html", context)


def part_of(operation: Operation, person: User) -> str:
    """Which half is that of the preparer or the approver."""
    return "link" if operation.preparer_id == person.pk else "code"


def listed_references(request: StaffRequest) -> list[str]:
    """The operations of the list on which this was opened; empty for all that this person passes on."""
    return [one for one in request.GET.getlist("operation")[:MOST_LISTED] if one.isprintable()]


def halves_in_list(request: StaffRequest, part: str) -> list[SetupLink]:
    """What this person still has to pass on of that list, in the order in which the operations were prepared."""
    operations = own_operations(request.user, part)
    if listed := listed_references(request):
        operations = operations.filter(reference__in=listed)
    halves = open_halves(request.user, part).filter(operation__in=operations.order_by().values("pk"))
    prepared = operations.filter(pk=OuterRef("operation")).order_by().values("prepared_at")
    return list(halves.select_related("user").order_by(Subquery(prepared), "operation"))


def own_operations(person: User, part: str) -> QuerySet[Operation]:
    """The applied changes with a link of which this half is for this person, in the order they were prepared."""
    approved = Approval.objects.filter(operation=OuterRef("pk"), approver=person)
    is_own = Q(preparer=person) if part == "link" else Q(Exists(approved))
    made_link = Operation.objects.filter(kind=StaffChangeKind.name, payload__change__in=sorted(MAKES_LINK))
    return made_link.filter(is_own, status=Status.SUCCEEDED).order_by("prepared_at", "pk")


def list_address(request: StaffRequest, part: str) -> str:
    """The list that leads to each half: of the invitations prepared together, or of all in the query."""
    query = urlencode({"operation": listed_references(request)}, doseq=True)
    page = "invited" if query and part == "link" else {"link": "links", "code": "start_codes"}[part]
    return f"{reverse(f'governance:{page}')}?{query}".rstrip("?")


@sensitive_variables("address")
def mail_or_show(person: User, address: str, *, actor: User, operation: UUID | None = None) -> bool:
    """Mail the link, which has a start code if it is of an operation.

    False if it could not be sent: then it is recorded as shown, and the page has to show it.
    """
    try:
        mail_setup_link(person, address, has_start_code=operation is not None)
    except MailNotSentError:
        record_shown_instead(person, actor=actor, operation=operation)
        return False
    return True


def mailed(
    request: StaffRequest, person: User, context: dict[str, object], *, operation: UUID | None = None
) -> bool:
    """Mail the link of the context, as `mail_or_show` does, with a message; if that fails, set `is_mail_refused`."""
    if not mail_or_show(person, str(context["shown"]), actor=request.user, operation=operation):
        context["is_mail_refused"] = True
        return False
    text = gettext("The link was sent to {email}.").format(email=person.email)
    messages.success(request, text)
    return True


def setup_address(request: HttpRequest, token: str) -> str:
    """The whole address of a one-time link."""
    path = reverse("accounts:set_up", args=[token])
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)


def may_mail_links() -> bool:
    """Whether mails are delivered, and links in them lead here."""
    return email_is_on() and bool(settings.PUBLIC_URL)


def mail_setup_link(person: User, address: str, *, has_start_code: bool) -> None:
    """Send the link in the person's language, or that of the deployment. Raises MailNotSentError."""
    language = settings.NOTIFY_LANGUAGE if person.language == Language.AUTO else person.language
    with translation.override(language):
        hours = int(SETUP_LINK_LIFETIME.total_seconds() // 3600)
        lines = [
            gettext("Choose your password and set up your authenticator app with this one-time link:"),
            gettext("The link works once, within {hours} hours. Do not forward this email.").format(
                hours=hours
            ),
        ]
        if has_start_code:
            lines.append(
                gettext(
                    "You also need a start code. A colleague gives it to you in person or by telephone, never by "
                    "email."
                )
            )
        lines.append(
            gettext("If you were not expecting this account, do not open the link. Inform an administrator.")
        )
        send_now(
            to=person.email,
            subject=gettext("Set up your account"),
            lines=lines,
            address=address,
            button=gettext("Set up your account"),
        )
