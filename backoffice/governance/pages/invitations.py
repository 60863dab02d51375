"""Invite one person or several with one form; each becomes an operation that another administrator approves."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid5

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.contrib.messages.storage.base import Message
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.groups import active_groups
from backoffice.accounts.models import StaffGroup, User
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.setup_links import PassedOn, halves_passed_on, open_halves
from backoffice.core.web.forms import PageForm, reason_field
from backoffice.core.web.submissions import submission_id
from backoffice.governance.pages.handover import may_mail_links
from backoffice.governance.pages.team import VIEW_TEAM
from backoffice.operations import policy
from backoffice.operations.approval.requirements import levels_of_many
from backoffice.operations.batches.summary import ShownStatus, statuses_in_list
from backoffice.operations.errors import NotPreparedTogetherError, OperationError
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.kinds.staff_change import (
    ROLE_FIELDS,
    StaffChange,
    StaffChangeForm,
    StaffChangeKind,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.bulk import references_query
from backoffice.operations.pages.operation.status import POLL_SECONDS_PEOPLE
from backoffice.operations.pages.prepare import submitted_text
from backoffice.operations.permissions import PROPOSE
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.selectors import visible_operations
from backoffice.operations.states import Status
from backoffice.operations.workflow.prepare import prepare_together
from backoffice.policies.document import Levels

MAX_PEOPLE = 20
_PERSON_FIELD = re.compile(r"p(\d{1,3})-\w+")


class InvitedPersonForm(StaffChangeForm):
    """Name, address, roles and groups of one person. The reason is that of the whole form."""

    def __init__(self, *args: Any, position: int, groups: list[StaffGroup], **kwargs: Any) -> None:
        self.position, self._groups = position, groups
        super().__init__(*args, **kwargs)
        for name in ("change", "typed", "duplicate_confirmed", "duplicate_reason"):
            del self.fields[name]
        for name in ROLE_FIELDS:  # what each role may do is on the page once
            self.fields[name].widget.attrs["aria-describedby"] = f"about_{name}"

    def add_prefix(self, field_name: str) -> str:
        return field_name if field_name == "reason" else super().add_prefix(field_name)

    def groups_to_offer(self) -> list[StaffGroup]:
        return self._groups

    def is_the_same_as(self, operation: Operation) -> bool:
        """Whether this was typed for this invitation, whether or not it is valid today."""
        typed = {name: str(self[name].value() or "").strip() for name in ("full_name", "email", "reason")}
        roles = [role.value for name, role in ROLE_FIELDS.items() if self[name].value()]
        groups = [group.pk for group in self._groups if self[f"in_group_{group.pk}"].value()]
        stored = operation.payload
        return (
            operation.kind == StaffChangeKind.name
            and typed["email"].lower() == stored["email"]
            and (typed["full_name"], typed["reason"]) == (stored["full_name"], stored["reason"])
            and sorted(roles) == sorted(stored["roles"])
            and sorted(groups) == sorted(group["id"] for group in stored["groups"])
        )

    def _requested_change(self) -> StaffChange:
        return StaffChange.INVITE

    def _requested_id(self, name: str) -> int:
        return 0


class InvitationsForm(PageForm):
    """The people, and why they are invited.

    `submitted` is the posted data, or None. It is validated unless a person is to be added or removed.
    """

    reason = reason_field(
        help_text=_("Shown to the approver."),
        missing=_("Enter the reason for this change."),
        max_length=300,
    )

    def __init__(self, submitted: QueryDict | None) -> None:
        typed = submitted or QueryDict()
        changes_rows = "add" in typed or "remove" in typed
        data = None if changes_rows else submitted
        initial = {"reason": typed.get("reason", "")}
        super().__init__(data, initial=initial)
        self.fields["reason"].widget.attrs["rows"] = 2
        self.groups = list(active_groups())
        numbers = _numbers(typed) if changes_rows else _numbers_filled_in(typed)
        kept = [number for number in numbers if str(number) != typed.get("remove")] or [1]
        added = [max(kept) + 1] if "add" in typed and len(kept) < MAX_PEOPLE else []
        self.is_longer = bool(added)
        self.people = [
            self._person(number, position, typed) for position, number in enumerate(kept + added, 1)
        ]
        self._set_focus(self.people[-1] if added else self.people[0])

    @property
    def is_full(self) -> bool:
        return len(self.people) >= MAX_PEOPLE

    def clean(self) -> dict[str, Any]:
        if len(self.people) > MAX_PEOPLE:
            text = gettext("Invite at most {n} people at once. Nothing was prepared.")
            self.add_error(None, text.format(n=MAX_PEOPLE))
            return self.cleaned_data
        seen: set[str] = set()
        for person in self.people:
            email = person.cleaned_data.get("email", "") if person.is_valid() else ""
            if email in seen:
                person.add_error("email", gettext("Another person in this form has this email address."))
            seen |= {email} - {""}
        if any(person.errors for person in self.people):
            self.add_error(None, gettext("Nothing was prepared. Correct the errors below."))
        return self.cleaned_data

    def full_clean(self) -> None:
        super().full_clean()
        wrong = (
            [person for person in self.people[:MAX_PEOPLE] if person.errors.keys() - {"reason"}]
            if self.is_bound
            else []
        )
        if wrong:
            self._set_focus(wrong[0])
        elif "reason" in self.errors:
            self.fields["reason"].widget.attrs["autofocus"] = True

    def drafts(self, submission: UUID) -> dict[UUID, InvitedPersonForm]:
        """The people by the id of the operation that each becomes: the same ones if the form is submitted twice."""
        return {uuid5(submission, str(person.prefix)): person for person in self.people}

    def submitted_before(self, submission: UUID, preparer: User) -> list[Operation]:
        """What this form has become, if it was submitted before with the same people; also once they have accounts."""
        drafts = self.drafts(submission)
        found = Operation.objects.in_bulk(drafts)
        is_same = len(found) == len(drafts) and all(
            found[pk].preparer_id == preparer.pk and person.is_the_same_as(found[pk])
            for pk, person in drafts.items()
        )
        return [found[pk] for pk in drafts] if is_same else []

    def refuse(self, person: InvitedPersonForm, reason: OperationError) -> None:
        """Show the reason of the refusal beside this person; no invitation was prepared."""
        person.add_refusal(reason)
        self.add_error(None, gettext("Nothing was prepared. Correct the errors below."))

    def _person(self, number: int, position: int, typed: QueryDict) -> InvitedPersonForm:
        prefix = f"p{number}"
        own = {name.partition("-")[2]: text for name, text in typed.items() if name.startswith(f"{prefix}-")}
        data = typed if self.is_bound else None
        initial = {**own, "typed": "1"}
        return InvitedPersonForm(data, position=position, prefix=prefix, initial=initial, groups=self.groups)

    def _set_focus(self, person: InvitedPersonForm) -> None:
        if not self.is_bound or person.errors:
            person.set_focus()


def _numbers(typed: QueryDict) -> list[int]:
    """The numbers of the people in the form, ascending, including blank ones."""
    return sorted({int(found[1]) for found in map(_PERSON_FIELD.fullmatch, typed) if found})


def _numbers_filled_in(typed: QueryDict) -> list[int]:
    """As `_numbers`, without blank people."""
    filled_in = {name.partition("-")[0] for name, text in typed.items() if str(text).strip()}
    return [number for number in _numbers(typed) if f"p{number}" in filled_in]


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required((VIEW_TEAM, PROPOSE), raise_exception=True)
def invite(request: StaffRequest) -> HttpResponse:
    """Show the form, add or remove a person, or prepare one invitation for each person."""
    submitted = request.POST if request.method == "POST" else None
    form, submission = InvitationsForm(submitted), submission_id(request.POST)
    if form.is_bound and (before := form.submitted_before(submission, request.user)):
        messages.info(request, gettext("This form was already submitted. Each person was invited once."))
        return _prepared_page(before)
    if not form.is_valid():
        return _form_page(request, form, submission)
    drafts = form.drafts(submission)
    contents = {pk: person.content() for pk, person in drafts.items()}
    try:
        prepared = prepare_together(contents, actor=request.user, kind=StaffChangeKind.name)
    except NotPreparedTogetherError as exc:
        form.refuse(drafts[exc.operation_id], exc.reason)
        return _form_page(request, form, submission)
    if len(prepared) == 1:
        messages.success(request, submitted_text(prepared[0]), extra_tags=prepared[0].status)
    return _prepared_page(prepared)


def _prepared_page(prepared: Sequence[Operation]) -> HttpResponse:
    """The page of the operation, or of all that were prepared with one form."""
    if len(prepared) == 1:
        return redirect(prepared[0])
    return redirect(f"{reverse('governance:invited')}?{references_query(prepared)}")


def _form_page(request: StaffRequest, form: InvitationsForm, submission: UUID) -> HttpResponse:
    """The whole page; to htmx, after adding or removing a person, only the part that changes."""
    partial = request.htmx and not form.is_bound
    context = {
        "form": form,
        "submission": submission,
        "max_people": MAX_PEOPLE,
        "only_added": partial and "add" in request.POST,
    }
    template = "governance/_invited_people.html" if partial else "governance/invite.html"
    return render(request, template, context, status=422 if form.is_bound else 200)


@dataclass(frozen=True)
class PreparedInvitation:
    """One prepared invitation. `own_page_reason` says why it cannot be approved in bulk; empty if it can."""

    operation: Operation
    status: ShownStatus
    roles: list[str]
    groups: list[str]
    own_page_reason: str
    has_link: bool
    """Whether the reader has a link to pass on."""
    passed_on: PassedOn | None
    """When the reader passed the link on."""


@require_safe
@permission_required((VIEW_TEAM, PROPOSE), raise_exception=True)
def invited(request: StaffRequest) -> HttpResponse:
    """The invitations prepared with one form, and how each is approved.

    Redirects to the Team page if the URL names none of the user's.
    """
    operations = _named_in(request)
    if not operations:
        return redirect("governance:team")
    return render(request, "governance/invited.html", _invited_context(request, operations))


@does_not_extend_session
@require_safe
@permission_required((VIEW_TEAM, PROPOSE), raise_exception=True)
def invited_live(request: StaffRequest) -> HttpResponse:
    """204 while the open page is up to date; otherwise its whole content."""
    operations = _named_in(request)
    context = _invited_context(request, operations) if operations else {}
    if not operations or request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    notices = [Message(messages.INFO, gettext("This page was updated."))]
    return render(request, "governance/_invited.html", context | {"notices": notices})


def _named_in(request: StaffRequest) -> list[Operation]:
    """The user's own invitations that the URL names, in that order."""
    references = [one for one in request.GET.getlist("operation")[:MAX_PEOPLE] if one.isprintable()]
    found = visible_operations(request.user).filter(
        preparer=request.user,
        kind=StaffChangeKind.name,
        payload__change=StaffChange.INVITE,
        reference__in=references,
    )
    return sorted(found, key=lambda one: references.index(one.reference))


def _invited_context(request: StaffRequest, operations: Sequence[Operation]) -> dict[str, Any]:
    """While one of them is open, the page polls with its fingerprint `seen`."""
    rows = prepared_invitations(operations, request.user)
    waiting = [row for row in rows if row.operation.status == Status.PENDING]
    shown = [(row.status, row.own_page_reason, row.has_link, row.passed_on) for row in rows]
    return {
        "rows": rows,
        "together": sum(not row.own_page_reason for row in waiting),
        "alone": sum(bool(row.own_page_reason) for row in waiting),
        "links": sum(row.has_link for row in rows),
        "query": references_query(operations),
        "may_mail": may_mail_links(),
        "seen": sha256(repr(shown).encode()).hexdigest()[:12],
        "polls": not all(one.is_closed for one in operations),
        "pace": POLL_SECONDS_PEOPLE,
    }


def prepared_invitations(operations: Sequence[Operation], reader: User) -> list[PreparedInvitation]:
    """Each of these invitations, in the same order."""
    levels = levels_of_many(operations)
    closed = {one.pk: one.closed_at for one in operations if one.closed_at is not None}
    links = open_halves(reader, "link").filter(operation__in=closed)
    with_link = set(links.values_list("operation", flat=True)) if closed else set()
    others = closed.keys() - with_link
    passed_on = halves_passed_on(reader, others, since=min(closed.values())) if others else {}
    found = []
    for operation, status, _batch in statuses_in_list(operations):
        own_page_reason = _own_page_reason(operation, levels.get(operation.pk))
        roles, groups = _rights(operation)
        has_link = operation.pk in with_link
        found.append(
            PreparedInvitation(
                operation, status, roles, groups, own_page_reason, has_link, passed_on.get(operation.pk)
            )
        )
    return found


def _own_page_reason(operation: Operation, levels: Levels | None) -> str:
    if operation.status != Status.PENDING:
        return ""
    try:
        policy.check_may_approve_in_bulk(operation, levels, alike=())
        return ""
    except OperationError as exc:
        if exc.refusal["code"] != Refusal.CAUTION_NOT_IN_BULK:
            return str(exc)
    kind, payload = read_content(operation)
    return gettext("Warning: {text}").format(text=" ".join(kind.cautions(payload)))


def _rights(operation: Operation) -> tuple[list[str], list[str]]:
    """The roles and groups as the reader calls them; none if the content can no longer be read."""
    try:
        _kind, payload = read_content(operation)
    except OperationError:
        return [], []
    roles = [str(role.label) for role in Role if role.value in payload.roles]
    return roles, [group.name for group in payload.groups]
