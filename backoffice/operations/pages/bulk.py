"""Approve or reject several operations: the confirmation page with totals, and the results."""

from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from backoffice.accounts.models import User
from backoffice.accounts.second_factor import second_factor_at
from backoffice.accounts.sessions import StaffRequest
from backoffice.accounts.setup_links import open_halves
from backoffice.core.fields import EXACT
from backoffice.core.web.forms import reason_field
from backoffice.operations import policy
from backoffice.operations.approval.requirements import levels_of_many
from backoffice.operations.errors import (
    AlreadyApprovedError,
    ContentUnreadableError,
    NotInBulkError,
    OperationError,
    PermissionMissingError,
)
from backoffice.operations.kinds.base import Facts, LocalKind
from backoffice.operations.kinds.registry import (
    KINDS,
    approval_permission_for,
    debits_a_balance,
    facts_of,
    read_content,
)
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.operation.forms import BaseDecisionForm, DecisionRequirements
from backoffice.operations.payee_look_alikes import look_alikes_of_payees
from backoffice.operations.policy import has_approved
from backoffice.operations.selectors import (
    first_payment_text,
    visible_operations,
    with_first_payment,
)
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow.approvals import (
    BULK_LIMIT,
    BulkDecision,
    BulkOutcome,
    BulkResult,
    SelectedOperation,
    is_all_applied_here,
)
from backoffice.policies.document import Levels


class _BulkForm(BaseDecisionForm):
    """A decision about several operations. Each row carries its digest, so the form has none of its own."""

    def __init__(self, *args: Any, request: StaffRequest) -> None:
        super().__init__(*args, request=request, requirements=DecisionRequirements())
        del self.fields["digest"]


class BulkApprovalForm(_BulkForm):
    """Approves several."""

    comment = forms.CharField(
        label=_("Comment"), required=False, max_length=500, help_text=_("Added to every operation.")
    )
    field_order = ("comment", "code")


class BulkRejectionForm(_BulkForm):
    """Rejects several with one reason."""

    reason = reason_field(
        label=_("Reason"),
        help_text=_("Added to every operation. Shown to the preparers."),
        missing=_("Enter a reason: the preparers will see it. Nothing was rejected."),
    )
    field_order = ("reason", "code")


def selected_operations(user: User, references: Collection[str]) -> list[Operation]:
    """The operations of these references that this user may see, with their approvals, in the order in which they were
    prepared: as on the page of their preparer, so that two people can go through both lists together.

    Each has what `selectors.first_payment_text` needs.
    """
    found = with_first_payment(visible_operations(user)).filter(reference__in=references)
    return list(found.prefetch_related("approvals").order_by("prepared_at", "pk"))


@dataclass(frozen=True)
class BulkRow:
    """One operation with its facts, the warning of a first payment, and why it is skipped (empty if it is not)."""

    operation: Operation
    facts: Facts
    first_payment: str
    skip_reason: str
    must_be_alone: bool = False  # whether it is skipped only because it must be approved on its own page

    @property
    def is_unfolded(self) -> bool:
        """Whether its facts are always shown: those of a change of people or rules are all that says what it does."""
        return isinstance(KINDS.get(self.operation.kind), LocalKind)


def bulk_rows(person: User, operations: Iterable[Operation], decision: BulkDecision) -> list[BulkRow]:
    """A row for each operation. The services check every permission again."""
    rows = list(operations)
    approves = decision is BulkDecision.APPROVE
    levels = levels_of_many(rows) if approves else {}
    alike = look_alikes_of_payees({one.recipient_key or "" for one in rows}) if approves else {}
    return [
        _row(operation, _obstacle(person, operation, decision, levels=levels.get(operation.pk), alike=alike))
        for operation in rows
    ]


def _row(operation: Operation, obstacle: OperationError | None) -> BulkRow:
    return BulkRow(
        operation,
        _facts(operation),
        first_payment_text(operation),
        str(obstacle or ""),
        must_be_alone=isinstance(obstacle, NotInBulkError),
    )


def bulk_totals(operations: Iterable[Operation], *, debited: bool) -> list[tuple[str, Decimal]]:
    """Currency and sum of the amounts that are debited, or of those that are not, such as payments."""
    sums: dict[str, Decimal] = {}
    for operation in operations:
        if operation.amount is not None and debits_a_balance(operation.kind) is debited:
            sums[operation.currency] = EXACT.add(sums.get(operation.currency, Decimal(0)), operation.amount)
    return sorted(sums.items())


def _facts(operation: Operation) -> Facts:
    try:
        return facts_of(*read_content(operation))
    except ContentUnreadableError:
        return []


def _obstacle(
    person: User,
    operation: Operation,
    decision: BulkDecision,
    *,
    levels: Levels | None,
    alike: Container[str | None],
) -> OperationError | None:
    try:
        permission = approval_permission_for(operation.kind)
        if restricted := policy.restriction(person, permission):
            raise restricted
        if not person.has_perm(permission):
            raise PermissionMissingError
        policy.check_is_decidable(person, operation, digest=operation.digest, now=timezone.now())
        if decision is BulkDecision.APPROVE:
            if has_approved(person, operation):
                raise AlreadyApprovedError
            approvals.check_may_approve_in_bulk(operation, levels, alike=alike)
        else:
            read_content(operation)
    except OperationError as exc:
        return exc
    return None


BulkForm = BulkApprovalForm | BulkRejectionForm


@dataclass(frozen=True)
class BulkSelection:
    """The selected operations with the digests that were shown; no digests from the list of waiting ones."""

    operations: list[Operation]
    digests: dict[str, str]

    @property
    def missing(self) -> int:
        """How many do not exist or may not be seen."""
        return len(self.digests) - len(self.operations)

    @property
    def choices(self) -> list[SelectedOperation]:
        return [
            SelectedOperation(operation, self.digests[operation.reference]) for operation in self.operations
        ]


@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def bulk_approve(request: StaffRequest) -> HttpResponse:
    return _decide(request, BulkDecision.APPROVE)


@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
def bulk_reject(request: StaffRequest) -> HttpResponse:
    return _decide(request, BulkDecision.REJECT)


def _decide(request: StaffRequest, decision: BulkDecision) -> HttpResponse:
    if not policy.may_approve_any(request.user):
        raise PermissionDenied
    given = (request.POST if request.method == "POST" else request.GET).getlist("operation")
    if not 0 < len(given) <= BULK_LIMIT:
        messages.error(
            request, gettext("Select 1 to {n} operations. Nothing was changed.").format(n=BULK_LIMIT)
        )
        return redirect(f"{reverse('operations:list')}?tab=waiting")
    chosen = _selection(request, given)
    if request.method != "POST":
        return _page(request, decision, chosen, _form(request, decision))
    form = _form(request, decision, filled=True)
    if not form.is_valid():
        return _page(request, decision, chosen, form, status=422)
    lines = _results(request, decision, chosen, form)
    context = {"decision": decision, "lines": lines, "missing": chosen.missing}
    with_code = _with_start_code(request.user, lines) if decision is BulkDecision.APPROVE else []
    context |= {
        "with_code": with_code,
        "is_all_applied": all(is_all_applied_here(line.operation) for line in lines),
        "start_codes": references_query(with_code),
    }
    return render(request, "operations/bulk_result.html", context | _counts(lines))


def references_query(operations: Iterable[Operation]) -> str:
    """The query that names these operations, for the pages of several."""
    return urlencode({"operation": [one.reference for one in operations]}, doseq=True)


def _with_start_code(approver: User, lines: list[BulkResult]) -> list[Operation]:
    """Those just approved whose start code this person has to pass on."""
    done = [line.operation for line in lines if line.result is BulkOutcome.DONE]
    halves = open_halves(approver, "code").filter(operation__in=[one.pk for one in done])
    found = set(halves.values_list("operation", flat=True))
    return [one for one in done if one.pk in found]


def _selection(request: StaffRequest, given: list[str]) -> BulkSelection:
    """Each item is a reference, with the shown digest after a colon."""
    digests = {reference: digest for reference, _, digest in (text.partition(":") for text in given)}
    return BulkSelection(selected_operations(request.user, digests), digests)


def _form(request: StaffRequest, decision: BulkDecision, *, filled: bool = False) -> BulkForm:
    form_type = BulkApprovalForm if decision is BulkDecision.APPROVE else BulkRejectionForm
    return form_type(request.POST if filled else None, request=request)


def _page(
    request: StaffRequest, decision: BulkDecision, chosen: BulkSelection, form: BulkForm, *, status: int = 200
) -> HttpResponse:
    rows = bulk_rows(request.user, chosen.operations, decision)
    included = [row for row in rows if not row.skip_reason]
    to_decide = [row.operation for row in included]
    left_out = [row for row in rows if row.skip_reason]
    context = {
        "decision": decision,
        "form": form,
        "included": included,
        "left_out": left_out,
        "one_by_one": bool(left_out) and all(row.must_be_alone for row in left_out),
        "totals": bulk_totals(to_decide, debited=True),
        "not_debited": bulk_totals(to_decide, debited=False),
        "missing": chosen.missing,
        "is_all_applied": all(is_all_applied_here(one) for one in to_decide),
    }
    return render(request, "operations/bulk_confirm.html", context, status=status)


def _results(
    request: StaffRequest, decision: BulkDecision, chosen: BulkSelection, form: BulkForm
) -> list[BulkResult]:
    carry_out: Callable[..., list[BulkResult]] = (
        approvals.approve_operations if decision is BulkDecision.APPROVE else approvals.reject_operations
    )
    values = {name: form.cleaned_data[name] for name in ("comment", "reason") if name in form.fields}
    return carry_out(chosen.choices, actor=request.user, second_factor_at=second_factor_at(request), **values)


def _counts(lines: list[BulkResult]) -> dict[str, int]:
    return {result.name.lower(): sum(line.result is result for line in lines) for result in BulkOutcome}
