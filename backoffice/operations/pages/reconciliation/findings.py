"""What reconciliation found: comparisons with sums by day, and incidents with their evidence.

Incidents, and changes of accounts with break-glass, are acknowledged with a note. The list also shows the result of
the last inspection.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.db.models import F, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.accounts.roles import Role
from backoffice.accounts.sessions import StaffRequest
from backoffice.audit.models import Entry
from backoffice.core.web.forms import ListFilterForm, PageForm, day_field, reason_field
from backoffice.core.web.pagination import keyset_page
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.transactions.filters import known_facets
from backoffice.operations import permissions, policy
from backoffice.operations.errors import OperationError
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.incidents import all_incidents
from backoffice.operations.models.evidence import evidence_in_words, lost_times
from backoffice.operations.models.monitoring import Incident, LostAttempt, Pause
from backoffice.operations.models.operations import Attempt
from backoffice.operations.models.reconciliation import ReconciliationResult
from backoffice.operations.monitoring.inspection import system_health
from backoffice.operations.reconciliation import selectors as kept
from backoffice.operations.reconciliation.selectors import UNMATCHED, ReconciliationFilter


def _currencies() -> list[tuple[str, str]]:
    codes = {facet.currency for facet in known_facets()} - {""}
    return [("", gettext("All currencies")), *((code, code) for code in sorted(codes))]


class ReconciliationFilterForm(ListFilterForm):
    """The filters. Days are UTC for every user, since the totals are stored by UTC day."""

    since = day_field(_("From (UTC)"))
    until = day_field(_("To (UTC)"))
    result = forms.ChoiceField(
        required=False,
        label=_("Result"),
        choices=[("", _("All results")), (UNMATCHED, _("Unmatched")), *ReconciliationResult.choices],
    )
    currency = forms.ChoiceField(required=False, label=_("Currency"), choices=_currencies)

    def chosen(self) -> ReconciliationFilter:
        """The filter to apply. Call only on a valid form."""
        values = self.cleaned_data
        return ReconciliationFilter(values["result"], values["currency"], values["since"], values["until"])

    @property
    def query_of_days(self) -> str:
        """The filters of the sums by day, which have a column for each result. Call only on a valid form."""
        return self._query_string(without=["result"])


@require_safe
@permission_required(kept.REQUIRED_PERMISSIONS, raise_exception=True)
def reconciliation(request: StaffRequest) -> HttpResponse:
    """What is not matched, or what the filters in the URL choose, and the sums by day."""
    form = ReconciliationFilterForm({"result": UNMATCHED, **request.GET.dict()})
    state = kept.reconciliation_state()
    context: dict[str, object] = {"form": form, "state": state, "mirror": mirror_state()}
    if form.is_valid():
        chosen = form.chosen()
        counts = kept.result_counts(chosen)
        context |= {
            "counts": counts,
            "has_comparisons": any(number for _result, _label, number in counts),
            "days": kept.daily_totals(chosen, state.begins_at, datetime.now(UTC).date()),
            "page": keyset_page(
                chosen.comparisons(), order=kept.NEWEST_COMPARISONS_FIRST, cursor=request.GET.get("cursor")
            ),
        }
    status = 200 if form.is_valid() else 422
    return render(request, "operations/reconciliation.html", context, status=status)


class AcknowledgeForm(PageForm):
    """The note that acknowledges an incident."""

    note = reason_field(
        label=_("What you found"),
        help_text=_("Stored with the incident. Everyone who sees the incident can read it."),
        missing=_("Enter what you found. The incident is still open."),
    )


NEWEST_INCIDENTS_FIRST = ("-at", "-id")
MOST_BREAK_GLASS_SHOWN = 50
MOST_LOST_SHOWN = 50  # attempts, and transactions that may be theirs


@require_safe
@permission_required(permissions.VIEW, raise_exception=True)
def incident_list(request: StaffRequest) -> HttpResponse:
    """Every incident, the newest first, and the result of the last inspection."""
    page = keyset_page(all_incidents(), order=NEWEST_INCIDENTS_FIRST, cursor=request.GET.get("cursor"))
    changes = BreakGlassChange.objects.select_related("user", "invited_by", "acknowledged_by")
    shown = changes.order_by(F("acknowledged_at").desc(nulls_first=True), *NEWEST_INCIDENTS_FIRST)
    context = {"page": page, "health": system_health(), "break_glass": shown[:MOST_BREAK_GLASS_SHOWN]}
    return render(request, "operations/incidents.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def incident(request: StaffRequest, pk: int) -> HttpResponse:
    """One incident with its evidence, and the form to acknowledge it."""
    found = get_object_or_404(all_incidents(), pk=pk)
    form = AcknowledgeForm(request.POST or None)
    acknowledge, permission = incidents.acknowledge_incident, permissions.ACKNOWLEDGE
    if request.method == "POST" and _acknowledged(request, form, acknowledge, pk, permission):
        return redirect("operations:incidents")
    context = {"incident": found, "form": form}
    context |= _lost_commits(found, found.pause, request.user) if found.pause else {"facts": found.facts}
    return render(
        request, "operations/incident.html", context, status=422 if request.method == "POST" else 200
    )


def _lost_commits(found: Incident, pause: Pause, reader: User) -> dict[str, object]:
    """What the journal and the provider have of the lost time, and the database does not."""
    lost, since = _lost_attempts(found), _restored_moment(found, pause)
    evidence = found.evidence
    if isinstance(evidence, dict):
        evidence = {name: value for name, value in evidence.items() if name not in {"lost", "lost_count"}}
    context: dict[str, object] = {
        "facts": evidence_in_words(evidence),
        "lost_attempts": lost[:MOST_LOST_SHOWN],
        "lost_count": lost.count(),
        "lost_since": since,
    }
    if reader.has_perms(kept.REQUIRED_PERMISSIONS):
        compared_up_to = kept.compared_up_to()
        unclaimed = kept.unclaimed_between(since, found.at + Attempt.EXECUTION_WINDOW + Attempt.CLOCK_SKEW)
        context |= {
            "unclaimed": {"rows": unclaimed[:MOST_LOST_SHOWN]},
            "unclaimed_count": unclaimed.count(),
            "compared_up_to": compared_up_to,
            "is_compared": compared_up_to is not None and compared_up_to > found.at,
        }
    return context


def _lost_attempts(found: Incident) -> QuerySet[LostAttempt]:
    """The attempts that the incident names; one that was found before is kept with the earlier incident."""
    own = LostAttempt.objects.filter(Q(incident=found) | Q(started_at__in=lost_times(found.evidence)))
    # not joined: an operation may be missing, too
    return own.select_related("attempt__resolution").prefetch_related("operation")


def _restored_moment(found: Incident, pause: Pause) -> datetime:
    """From when on commits may be missing: the oldest lost attempt or the last entry of the restored audit log.

    Whichever is earlier, less the deviation of the provider's clock.
    """
    before = Entry.objects.filter(at__lt=min(found.at, pause.paused_at)).order_by("-at")
    moments = [
        *_lost_attempts(found).order_by("started_at").values_list("started_at", flat=True)[:1],
        *before.values_list("at", flat=True)[:1],
    ]
    return min(moments, default=found.at) - Attempt.CLOCK_SKEW


@require_http_methods(["GET", "HEAD", "POST"])
@permission_required(permissions.VIEW, raise_exception=True)
def break_glass(request: StaffRequest, pk: int) -> HttpResponse:
    """One change of an account by one person alone, and the form to acknowledge it."""
    changes = BreakGlassChange.objects.select_related("user", "invited_by", "acknowledged_by")
    found = get_object_or_404(changes, pk=pk)
    form = AcknowledgeForm(request.POST or None)
    acknowledge = incidents.acknowledge_break_glass
    permission = incidents.permission_to_acknowledge(request.user, found)
    if request.method == "POST" and _acknowledged(request, form, acknowledge, pk, permission):
        return redirect("operations:incidents")
    roles = found.roles if isinstance(found.roles, list) else []  # a forged row may hold something else
    context = {
        "change": found,
        "roles": [str(Role(name).label) for name in roles if name in Role],
        "form": form,
        "is_own": found.is_about(request.user),
        "may_acknowledge": request.user.has_perm(permission),
        "restriction": policy.restriction(request.user, permission),
    }
    return render(
        request, "operations/break_glass.html", context, status=422 if request.method == "POST" else 200
    )


def _acknowledged(
    request: StaffRequest, form: AcknowledgeForm, acknowledge: Callable[..., object], pk: int, permission: str
) -> bool:
    if not request.user.has_perm(permission):
        raise PermissionDenied
    if not form.is_valid():
        return False
    try:
        acknowledge(pk, actor=request.user, note=form.cleaned_data["note"])
    except OperationError as exc:
        form.add_error(None, str(exc))
        return False
    messages.success(request, gettext("Incident acknowledged."))
    return True
