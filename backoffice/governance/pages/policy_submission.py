"""Review a draft of the approval policies, and submit it for approval with a reason."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import TextChoices
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core import clock
from backoffice.core.web.formatting import code_sentence
from backoffice.core.web.forms import PageForm, reason_field
from backoffice.core.web.submissions import submission_id
from backoffice.governance.policy_comparison import comparison_context
from backoffice.governance.policy_drafts import (
    PolicyDraft,
    drop_draft,
    policy_or_404,
    read_draft,
    waiting_versions,
)
from backoffice.governance.policy_replay import Change, replay
from backoffice.operations import permissions
from backoffice.operations.approval import requirements
from backoffice.operations.descriptions import Subject
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.approval_policy import (
    ApprovalPolicyKind,
    ApprovalPolicyPayload,
    RefusedPayments,
    refused_payments,
    requires_less,
)
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.kinds.satisfiability import groups_without_enrolled_people
from backoffice.operations.kinds.staffing import Staffing
from backoffice.operations.lifecycle.policy_version import check_policy, check_replaces_newest
from backoffice.operations.models.operations import Operation
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.refusals.sentences import ANYBODY, sentence
from backoffice.operations.workflow.prepare import prepare_operation
from backoffice.policies.document import Level
from backoffice.policies.models import PolicyInEffect
from backoffice.policies.sentences import Difference, compare, compare_lists, kind_name, level_text


class Obstacle(TextChoices):
    """Why a draft cannot be submitted, by the codes of `Refusal`: on its review nothing was submitted, so that there is
    no outcome to report. The label is the sentence, with its parameters in braces.
    """

    OUTDATED = (
        Refusal.POLICY_OUTDATED.value,
        _("Another version took effect meanwhile. Prepare your version again from the new rules."),
    )
    UNCHANGED = Refusal.POLICY_UNCHANGED.value, _("The draft is the same as the rules in effect.")
    UNSATISFIABLE = (
        Refusal.POLICY_UNSATISFIABLE.value,
        _("Rule {number} cannot be satisfied for {kind}: too few people can give {level}."),
    )
    NAMES_OUTDATED = (
        Refusal.POLICY_NAMES_OUTDATED.value,
        _("Rule {number} names {name}, who was deactivated, or a group that was retired. Edit this rule."),
    )


class SubmissionForm(PageForm):
    """The reason and, if the version refuses payments without exception, a confirmation."""

    reason = reason_field(
        help_text=_("Shown to the approver."),
        missing=_("Enter the reason for this change."),
        max_length=300,
        rows=2,
    )
    confirmed = forms.BooleanField(
        error_messages={"required": _("Confirm this, or change the rules. Nothing was submitted.")}
    )

    def __init__(self, *args: Any, refused: RefusedPayments | None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if refused is None:
            del self.fields["confirmed"]
        else:
            self.fields["confirmed"].label = refused.to_submit


@require_safe
@permission_required(permissions.PROPOSE, raise_exception=True)
def review(request: StaffRequest) -> HttpResponse:
    """Old beside new, the replay, and what would prevent the submission."""
    policy = policy_or_404()
    draft = read_draft(request, policy)
    form, staffing = SubmissionForm(refused=refused_payments(draft.document)), Staffing.now()
    problem = ""
    try:
        _check(draft, policy, staffing)
    except OperationError as exc:
        problem = gettext("This version cannot be submitted. {problem}").format(
            problem=_obstacle(exc.refusal)
        )
    return _review_page(request, draft, policy, None if problem else form, problem, staffing=staffing)


def _obstacle(refusal: Mapping[str, str]) -> str:
    if refusal["code"] not in Obstacle:
        return sentence(refusal)
    shown = dict(refusal)
    if refusal["code"] == Refusal.POLICY_UNSATISFIABLE:
        shown |= {
            "kind": kind_name(refusal["kind"]),
            "level": level_text(Level.model_validate_json(refusal["level"])),
        }
        if refusal["preparer"] != ANYBODY:
            shown["kind"] = gettext("{kind} prepared by {preparer}").format(**shown)
    return code_sentence(Obstacle, shown)


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def propose(request: StaffRequest) -> HttpResponse:
    """Submit the draft for approval, as it was reviewed. A refusal keeps it."""
    before = Operation.objects.filter(pk=submission_id(request.POST), preparer=request.user).first()
    if before is not None:
        messages.info(request, gettext("This form was already submitted. The operation was prepared once."))
        return redirect(before)
    policy, staffing = policy_or_404(), Staffing.now()
    draft = read_draft(request, policy)
    form = SubmissionForm(request.POST, refused=refused_payments(draft.document))
    if not form.is_valid():
        return _review_page(request, draft, policy, form, staffing=staffing, status=422)
    if request.POST.get("reviewed") != draft.document.digest:
        changed = gettext("Not submitted: the details changed after your review. Check them again.")
        return _review_page(request, draft, policy, form, changed, staffing=staffing, status=422)
    try:
        _check(draft, policy, staffing)
        operation = prepare_operation(
            submission_id(request.POST),
            actor=request.user,
            kind=ApprovalPolicyKind.name,
            payload=_payload(draft, policy, form.cleaned_data["reason"]),
        )
    except OperationError as exc:
        return _review_page(request, draft, policy, form, str(exc), staffing=staffing, status=422)
    drop_draft(request)
    messages.success(request, gettext("Submitted for approval. Another administrator must approve it."))
    return redirect(operation)


def _check(draft: PolicyDraft, policy: PolicyInEffect, staffing: Staffing) -> None:
    """Raises OperationError with what would prevent the submission."""
    check_replaces_newest(draft.replaces)
    check_policy(draft.document, staffing)
    if draft.document == policy.document:
        raise OperationError(Refusal.POLICY_UNCHANGED)


def _review_page(
    request: StaffRequest,
    draft: PolicyDraft,
    policy: PolicyInEffect,
    form: SubmissionForm | None,
    problem: str = "",
    *,
    staffing: Staffing,
    status: int = 200,
) -> HttpResponse:
    """The draft as it would be submitted; without a form if it cannot be, for the `problem`."""
    payload, submission = _payload(draft, policy), submission_id(request.POST)
    kind = KINDS[ApprovalPolicyKind.name]
    subject = Subject(submission, kind, payload, request.user.pk, str(request.user), clock.now())
    replayed = replay(draft.document, clock.now())
    context = {
        "form": form,
        "problem": problem,
        "sentence": kind.sentence(payload),
        "refused": refused_payments(draft.document),
        "less": requires_less(policy.document, draft.document),
        "not_set_up": groups_without_enrolled_people(draft.document, staffing),
        "waiting": waiting_versions(request.user, policy),
        "requirement": requirements.requirement_under(policy, subject),
        "replay": replayed,
        "changes": [(change.label, replayed.totals[change.value]) for change in Change],
        "submission": submission,
        "reviewed": draft.document.digest,
        "is_first": policy.number is None,
        "document": draft.document,
        **comparison_context(policy.document, draft.document, is_first=policy.number is None),
    }
    return render(request, "governance/policy_review.html", context, status=status)


def _payload(draft: PolicyDraft, policy: PolicyInEffect, reason: str = "") -> ApprovalPolicyPayload:
    document, old = draft.document, policy.document
    rules, lists = compare(old, document), compare_lists(old, document)
    count = {each: sum(one.difference == each for one in rules) for each in Difference}
    return ApprovalPolicyPayload(
        replaces=draft.replaces,
        document=document,
        added=count[Difference.ADDED],
        changed=count[Difference.CHANGED],
        removed=count[Difference.REMOVED],
        listed=sum(len(one.added) for one in lists),
        unlisted=sum(len(one.removed) for one in lists),
        time_zone_before=old.time_zone if draft.replaces and old.time_zone != document.time_zone else "",
        recipients_before=old.recipients if old.recipients != document.recipients else None,
        reason=reason,
    )
