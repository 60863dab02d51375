"""Settings, Approval policies: the rules in effect, proposing a new version, its replay, and an operation to try."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from backoffice.accounts.models import User
from backoffice.accounts.sessions import StaffRequest
from backoffice.core import clock
from backoffice.governance.policy_comparison import comparison_context
from backoffice.governance.policy_drafts import (
    PolicyDraft,
    digest_of_part,
    drop_draft,
    has_draft,
    keep_draft,
    own_changes,
    policy_or_404,
    read_draft,
    waiting_versions,
)
from backoffice.governance.policy_forms import PeopleChoices, RuleForm, TryForm, rule_initial
from backoffice.governance.policy_recipients import ListsForm, RequirementsForm, requirements_initial
from backoffice.governance.policy_replay import (
    MOST_OPERATIONS,
    Change,
    Replay,
    replay,
    replay_csv,
    sentences_by_number,
)
from backoffice.operations import permissions
from backoffice.operations.allow_list import demanded_by_deployment
from backoffice.operations.errors import ContentUnreadableError
from backoffice.operations.kinds.approval_policy import (
    ApprovalPolicyKind,
    ApprovalPolicyPayload,
    kind_facts,
    refused_payments,
    requires_less,
)
from backoffice.operations.kinds.base import LocalKind
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.models.operations import Operation
from backoffice.operations.permissions import APPROVE
from backoffice.operations.selectors import visible_operations
from backoffice.policies.document import (
    LAST_RULE,
    PolicyDocument,
    RecipientRequirements,
    Rule,
    TotalOf,
    Window,
)
from backoffice.policies.evaluator import (
    Condition,
    DescribedOperation,
    Evaluator,
    RecipientFacts,
    strictest,
)
from backoffice.policies.models import AlteredPolicyError, PolicyInEffect, PolicyVersion
from backoffice.policies.people import read_people, with_current_names
from backoffice.policies.sentences import (
    Difference,
    kind_name,
    last_rule_sentence,
    levels_text,
    recipient_texts,
    rule_sentences,
)
from backoffice.recipients.keys import key_text

_EARLIER_VERSIONS = 50
_LISTED = 200


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def in_effect(request: StaffRequest) -> HttpResponse:
    policy = policy_or_404()
    context = {
        **_shown(policy),
        "waiting": waiting_versions(request.user, policy),
        "own_changes": own_changes(request, policy),
        "refused": refused_payments(policy.document),
        "demanded": _demanded_beyond(policy.document),
        "versions": PolicyVersion.objects.all()[:_EARLIER_VERSIONS],
    }
    return render(request, "governance/policies.html", context)


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def version(request: StaffRequest, number: int) -> HttpResponse:
    """An earlier version, beside the one that it replaced."""
    both = Q(number=number) | Q(number=number - 1)  # not `in`, which fails for a number beyond the column's
    found = {one.number: one for one in PolicyVersion.objects.filter(both)}
    if number not in found:
        raise Http404
    context: dict[str, Any] = {"version": found[number]}
    document = _unaltered(found[number])
    before = found.get(number - 1)
    if document is not None:
        document = with_current_names(document)
        context |= _shown(PolicyInEffect(number, document))
        old = _unaltered(before) if before else PolicyDocument()
        context |= (
            comparison_context(with_current_names(old), document) if old is not None else {"compared": None}
        )
    return render(request, "governance/policy_version.html", context)


def _unaltered(stored: PolicyVersion) -> PolicyDocument | None:
    """The document of this version; None if it was altered, or this version of Countersign cannot read it."""
    try:
        return stored.read()
    except AlteredPolicyError:
        return None


def _shown(policy: PolicyInEffect) -> dict[str, Any]:
    return {
        "policy": policy,
        "sentences": rule_sentences(policy.document),
        "last_rule": last_rule_sentence(LAST_RULE.levels),
        "lists": [(each.name, [key_text(key) for key in each.keys]) for each in policy.document.lists],
        "requirements": _in_words(policy.document.recipients),
    }


def _in_words(required: RecipientRequirements) -> list[str]:
    return [text for text in recipient_texts(required).values() if text]


def _demanded_beyond(document: PolicyDocument) -> list[str]:
    """What the deployment demands of recipients, if it is more than the document requires."""
    demanded = demanded_by_deployment()
    return [] if document.recipients.stricter(demanded) == document.recipients else _in_words(demanded)


# The draft


@require_safe
@permission_required(permissions.PROPOSE, raise_exception=True)
def draft(request: StaffRequest) -> HttpResponse:
    policy = policy_or_404()
    edited = read_draft(request, policy)
    document = edited.document
    context = {
        "rules": list(enumerate(rule_sentences(document), start=1)),
        "last_rule": last_rule_sentence(LAST_RULE.levels),
        "document": document,
        "shown": digest_of_part(document, "rules"),
        "requirements": _in_words(document.recipients),
        "demanded": _demanded_beyond(document),
        **comparison_context(
            policy.document, document, leave_out=Difference.SAME, is_first=policy.number is None
        ),
        "is_changed": document != policy.document,
        "is_first": policy.number is None,
        "is_outdated": (policy.number or 0) != edited.replaces,
        "refused": refused_payments(document),
        "less": requires_less(policy.document, document),
        "waiting": waiting_versions(request.user, policy),
        "policy": policy,
        "copied": _proposal_to_copy(request),
        "has_draft": has_draft(request),
    }
    return render(request, "governance/policy_draft.html", context)


_CHANGED_ELSEWHERE = _(
    "The draft was changed in another window after this page was opened. Nothing was changed now. Open it again from "
    "the draft."
)


def _was_changed_elsewhere(request: StaffRequest, now: str) -> bool:
    """Whether the page that sent this form showed another draft than that with this digest."""
    return request.POST.get("shown", now) != now


def _shown_by(request: StaffRequest, form: forms.Form, now: str) -> str:
    """The digest that the page carries: of the draft now or, with an error of the form, of the one it showed before."""
    if not (form.is_bound and _was_changed_elsewhere(request, now)):
        return now
    form.full_clean()  # which would drop an error that was added before
    form.add_error(None, _CHANGED_ELSEWHERE)
    return request.POST["shown"]


@require_http_methods(["GET", "POST"])
@permission_required(permissions.PROPOSE, raise_exception=True)
def edit_rule(request: StaffRequest, number: int | None = None) -> HttpResponse:
    """Add a rule where it was put, after the others if nowhere, or edit this one in its place.

    "Save rule and add another" opens the empty form again.
    """
    edited = read_draft(request)
    document = edited.document
    rule = _rule_or_404(document, number) if number else None
    form = RuleForm(
        request.POST or None,
        people=PeopleChoices(),
        lists=[each.name for each in document.lists],
        initial=rule_initial(rule) if rule else {"weekdays": list(range(7)), "needed1": 1},
    )
    shown = _shown_by(request, form, digest_of_part(document, "rules")) if number else ""
    if form.is_valid() and form.rule is not None:
        rules = list(document.rules)
        if number:
            rules[number - 1] = form.rule
        else:
            position = form.cleaned_data["position"] or len(rules) + 1
            rules.insert(position - 1, form.rule)
        keep_draft(request, edited, rules=tuple(rules))
        if "again" not in request.POST:
            return redirect("governance:policy_draft")
        messages.success(request, gettext("The rule was added to your draft."))
        return redirect("governance:policy_new_rule")
    status = 422 if form.is_bound else 200
    context = {"form": form, "number": number, "document": document, "shown": shown}
    return render(request, "governance/policy_rule.html", context, status=status)


def _rule_or_404(document: PolicyDocument, number: int) -> Rule:
    if not 1 <= number <= len(document.rules):
        raise Http404
    return document.rules[number - 1]


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def move_rule(request: StaffRequest, number: int) -> HttpResponse:
    """Move a rule one place up or down, or remove it. Anything else changes nothing."""
    edited = read_draft(request)
    if _was_changed_elsewhere(request, digest_of_part(edited.document, "rules")):
        messages.error(
            request,
            gettext(
                "The draft was changed in another window. Nothing was changed now. Check the rules again."
            ),
        )
        return redirect("governance:policy_draft")
    rules = list(edited.document.rules)
    rule = _rule_or_404(edited.document, number)
    del rules[number - 1]
    match request.POST.get("to"):
        case "up":
            rules.insert(max(number - 2, 0), rule)
        case "down":
            rules.insert(number, rule)
        case "remove":
            pass
        case _:
            return redirect("governance:policy_draft")
    keep_draft(request, edited, rules=tuple(rules))
    return redirect("governance:policy_draft")


@require_http_methods(["GET", "POST"])
@permission_required(permissions.PROPOSE, raise_exception=True)
def edit_lists(request: StaffRequest) -> HttpResponse:
    """Edit the lists of recipients and the time zone. "Add another" saves, and opens the form again."""
    edited = read_draft(request)
    form = ListsForm(request.POST or None, document=edited.document)
    shown = _shown_by(request, form, digest_of_part(edited.document, "time_zone"))
    if form.is_valid():
        keep_draft(request, edited, time_zone=form.cleaned_data["time_zone"], lists=form.lists)
        again = "again" in request.POST
        return redirect("governance:policy_lists" if again else "governance:policy_draft")
    status = 422 if form.is_bound else 200
    return render(request, "governance/policy_lists.html", {"form": form, "shown": shown}, status=status)


@require_http_methods(["GET", "POST"])
@permission_required(permissions.PROPOSE, raise_exception=True)
def edit_requirements(request: StaffRequest) -> HttpResponse:
    """Edit what is required of recipients."""
    edited = read_draft(request)
    form = RequirementsForm(request.POST or None, initial=requirements_initial(edited.document.recipients))
    shown = _shown_by(request, form, digest_of_part(edited.document, "recipients"))
    if form.is_valid() and form.requirements is not None:
        keep_draft(request, edited, recipients=form.requirements)
        return redirect("governance:policy_draft")
    context = {"form": form, "demanded": _in_words(demanded_by_deployment()), "shown": shown}
    status = 422 if form.is_bound else 200
    return render(request, "governance/policy_requirements.html", context, status=status)


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def copy_proposal(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Replace the draft by a version that was proposed before, to be compared with the rules in effect now."""
    _, payload = _proposal_or_404(request, pk)
    keep_draft(request, PolicyDraft(policy_or_404().number or 0, payload.document))
    return redirect("governance:policy_draft")


def _proposal_to_copy(request: StaffRequest) -> Operation | None:
    """The proposal that is prepared again, if the address names one."""
    try:
        pk = UUID(request.GET.get("copy", ""))
    except ValueError:
        return None
    return visible_operations(request.user).filter(pk=pk, kind=ApprovalPolicyKind.name).first()


@require_POST
@permission_required(permissions.PROPOSE, raise_exception=True)
def discard(request: StaffRequest) -> HttpResponse:
    drop_draft(request)
    return redirect("governance:policies")


# A proposal, and the replay


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def proposal(request: StaffRequest, pk: UUID) -> HttpResponse:
    """Old beside new."""
    operation, payload = _proposal_or_404(request, pk)
    replaced = PolicyVersion.objects.filter(number=payload.replaces).first()
    old = PolicyDocument.model_validate(replaced.document) if replaced else _policy_without_versions()
    context = {
        "operation": operation,
        "payload": payload,
        "refused": refused_payments(payload.document),
        "less": requires_less(old, payload.document),
        **comparison_context(with_current_names(old), payload.document, is_first=not payload.replaces),
    }
    return render(request, "governance/policy_proposal.html", context)


def _policy_without_versions() -> PolicyDocument:
    policy = policy_or_404()
    return policy.document if policy.number is None else PolicyDocument()


def _proposal_or_404(request: StaffRequest, pk: UUID) -> tuple[Operation, ApprovalPolicyPayload]:
    operation = get_object_or_404(visible_operations(request.user), pk=pk, kind=ApprovalPolicyKind.name)
    try:
        return operation, read_content(operation)[1]
    except ContentUnreadableError as exc:
        raise Http404 from exc


@require_safe
@permission_required(permissions.PROPOSE, raise_exception=True)
def replay_draft(request: StaffRequest) -> HttpResponse:
    return _replay_page(request, read_draft(request).document, None)


def may_replay(user: User) -> bool:
    """Whether this user may replay past operations, which takes seconds: who may propose policies, and auditors."""
    return user.has_perm(permissions.PROPOSE) or user.has_perm("audit.view_entry")


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def replay_proposal(request: StaffRequest, pk: UUID) -> HttpResponse:
    if not may_replay(request.user):
        raise PermissionDenied
    operation, payload = _proposal_or_404(request, pk)
    return _replay_page(request, payload.document, operation)


def _replay_page(
    request: StaffRequest, document: PolicyDocument, operation: Operation | None
) -> HttpResponse:
    found = replay(document, clock.now())
    sentences = sentences_by_number(document)
    if request.GET.get("format") == "csv":
        response = HttpResponse(replay_csv(found, sentences), content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="policy-replay.csv"'
        return response
    context = _replay_context(found, sentences, operation)
    context["has_cooling"] = document.recipients.cooling is not None
    return render(request, "governance/policy_replay.html", context)


def _replay_context(found: Replay, sentences: Sequence[str], operation: Operation | None) -> dict[str, Any]:
    changed = found.changed
    return {
        "replay": found,
        "most": MOST_OPERATIONS,
        "operation": operation,
        "changes": [(change.label, found.totals[change.value]) for change in Change],
        "headings": [change.label for change in Change],
        "summary": [
            (kind, currency, [(change.label, counts[change.value]) for change in Change])
            for kind, currency, counts in found.summary
        ],
        "changed": [(one, sentences[one.rule]) for one in changed[:_LISTED]],
        "more": max(len(changed) - _LISTED, 0),
    }


# An operation to try


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def try_operation(request: StaffRequest) -> HttpResponse:
    """Which rule of the draft, or of the policy in effect, would decide a typed operation, and why none before it."""
    is_draft = "draft" in request.GET and request.user.has_perm(permissions.PROPOSE)
    document = read_draft(request).document if is_draft else policy_or_404().document
    form = TryForm(request.GET if "kind" in request.GET else None, people=PeopleChoices())
    context: dict[str, Any] = {"form": form, "is_draft": is_draft}
    if form.is_valid():
        context |= _tried(document, _described(form, document))
    return render(
        request, "governance/policy_try.html", context, status=422 if form.is_bound and form.errors else 200
    )


def _described(form: TryForm, document: PolicyDocument) -> DescribedOperation:
    values = form.cleaned_data
    asked = [rule.when.preparer for rule in document.rules if rule.when.preparer]
    [preparer] = read_people(APPROVE, [int(values["preparer"])], asked=asked)
    is_, kind = values["recipient_is"], KINDS[values["kind"]]
    total = values["total"] if values["total"] is not None else values["amount"]
    facts = RecipientFacts(
        key=values["recipient"],
        is_new="new" in is_,
        is_saved="saved" in is_,
        is_provider_user="provider_user" in is_,
        is_look_alike="look_alike" in is_,
        network=values["network"],
    )
    return DescribedOperation(
        kind=kind.name,
        preparer=preparer,
        at=values["at"] or timezone.now(),
        currency=values["currency"],
        amount=values["amount"],
        recipient=facts if values["recipient"] or is_ or values["network"] else None,
        rows=values["rows"] or 1,
        totals={(window, of): total for window in Window for of in TotalOf} if total is not None else {},
        refusable=kind.name == BatchKind.name or not isinstance(kind, LocalKind),
    )


@dataclass(frozen=True)
class Outcome:
    """What an operation to try needs, and the rule that decides. `rows` is what the rows of a batch are."""

    rows: str
    approvals: str
    is_not_approved: bool
    number: int
    sentence: str


def _tried(document: PolicyDocument, operation: DescribedOperation) -> dict[str, Any]:
    """A batch has an outcome for each kind that its rows can be, since it is decided as a batch and as its rows."""
    evaluator = Evaluator(document)
    required = document.recipients.stricter(demanded_by_deployment())
    is_saved = operation.recipient is not None and operation.recipient.is_saved
    sentences = [*rule_sentences(document), last_rule_sentence(LAST_RULE.levels)]
    outcomes = []
    [combinations] = (one.decided_as for one in kind_facts() if one.name == operation.kind)
    for kinds in combinations:
        decision = strictest(evaluator.decide(replace(operation, kind=kind)) for kind in kinds)
        levels = decision.rule.levels
        outcomes.append(
            Outcome(
                kind_name(kinds[-1]) if operation.kind == BatchKind.name else "",
                levels_text(levels) if levels else "",
                not (is_saved or set(kinds).isdisjoint(required.approved_only)),
                decision.number,
                sentences[decision.number - 1],
            )
        )
    misses = evaluator.misses(operation) if len(outcomes) == 1 else []
    return {
        "outcomes": outcomes,
        "misses": [
            (sentences[place], ", ".join(str(Condition(one).label) for one in missed))
            for place, missed in enumerate(misses)
        ],
    }
