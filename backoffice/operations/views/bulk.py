"""Approving and rejecting several operations: a page to confirm it, then a line for each with what became of it."""

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from backoffice.accounts.http import StaffRequest
from backoffice.accounts.services import second_factor_at
from backoffice.operations import permissions, services
from backoffice.operations.forms import ApproveManyForm, RejectManyForm
from backoffice.operations.many import rows_for, totals
from backoffice.operations.models import Operation
from backoffice.operations.selectors import chosen_operations
from backoffice.operations.services import Choice, Decision, Line
from backoffice.operations.services.bulk import AT_ONCE, Result

ManyForm = ApproveManyForm | RejectManyForm


@dataclass(frozen=True)
class Chosen:
    """The operations that somebody chose, with the digests that were shown; none in the list of waiting ones."""

    operations: list[Operation]
    digests: dict[str, str]

    @property
    def missing(self) -> int:
        """How many are not there, or not to be seen."""
        return len(self.digests) - len(self.operations)

    @property
    def choices(self) -> list[Choice]:
        return [Choice(operation, self.digests[operation.reference]) for operation in self.operations]


@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.APPROVE, raise_exception=True)
def approve_many(request: StaffRequest) -> HttpResponse:
    return _decide(request, Decision.APPROVE)


@sensitive_post_parameters("code")
@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.APPROVE, raise_exception=True)
def reject_many(request: StaffRequest) -> HttpResponse:
    return _decide(request, Decision.REJECT)


def _decide(request: StaffRequest, decision: Decision) -> HttpResponse:
    given = (request.POST if request.method == "POST" else request.GET).getlist("operation")
    if not 0 < len(given) <= AT_ONCE:
        messages.error(request, f"Choose between 1 and {AT_ONCE} operations. Nothing was decided.")
        return redirect(f"{reverse('operations:list')}?tab=waiting")
    chosen = _chosen(request, given)
    if request.method != "POST":
        return _page(request, decision, chosen, _form(request, decision))
    form = _form(request, decision, filled=True)
    if not form.is_valid():
        return _page(request, decision, chosen, form, status=422)
    lines = _carried_out(request, decision, chosen, form)
    context = {"decision": decision, "lines": lines, "missing": chosen.missing}
    return render(request, "operations/decided_many.html", context | _counts(lines))


def _chosen(request: StaffRequest, given: list[str]) -> Chosen:
    """Each is a reference; behind a colon follows the digest that was shown."""
    digests = {reference: digest for reference, _, digest in (text.partition(":") for text in given)}
    return Chosen(chosen_operations(request.user, digests), digests)


def _form(request: StaffRequest, decision: Decision, *, filled: bool = False) -> ManyForm:
    form_type = ApproveManyForm if decision is Decision.APPROVE else RejectManyForm
    return form_type(request.POST if filled else None, request=request)


def _page(
    request: StaffRequest, decision: Decision, chosen: Chosen, form: ManyForm, *, status: int = 200
) -> HttpResponse:
    rows = rows_for(request.user, chosen.operations, decision)
    included = [row for row in rows if not row.obstacle]
    context = {
        "decision": decision,
        "form": form,
        "included": included,
        "left_out": [row for row in rows if row.obstacle],
        "totals": totals(included, debited=True),
        "not_debited": totals(included, debited=False),
        "missing": chosen.missing,
    }
    return render(request, "operations/decide_many.html", context, status=status)


def _carried_out(request: StaffRequest, decision: Decision, chosen: Chosen, form: ManyForm) -> list[Line]:
    carry_out: Callable[..., list[Line]] = (
        services.approve_operations if decision is Decision.APPROVE else services.reject_operations
    )
    values = {name: form.cleaned_data[name] for name in ("comment", "reason") if name in form.fields}
    return carry_out(chosen.choices, actor=request.user, second_factor_at=second_factor_at(request), **values)


def _counts(lines: list[Line]) -> dict[str, int]:
    return {result.name.lower(): sum(line.result is result for line in lines) for result in Result}
