"""My account, Delegations: who stands in for whom, and the way to propose and to end one."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext, pgettext
from django.views.decorators.http import require_POST, require_safe

from backoffice.accounts.sessions import StaffRequest
from backoffice.core.web.formatting import last_day, local_time
from backoffice.operations.errors import OperationError, PermissionMissingError
from backoffice.operations.kinds.delegation import DelegationKind
from backoffice.operations.lifecycle.delegation import end_delegation
from backoffice.operations.permissions import VIEW
from backoffice.operations.selectors import visible_operations
from backoffice.operations.states import Status
from backoffice.policies.delegations import Delegation

SHOWN = 50


@require_safe
@permission_required(VIEW, raise_exception=True)
def delegations(request: StaffRequest) -> HttpResponse:
    """The person's own delegations, those as stand-in, and those of others that last or begin later; newest first."""
    now = timezone.now()
    mine = Q(person=request.user) | Q(stand_in=request.user)
    lasting = Q(ends_at__gt=now, ended_at__isnull=True)
    found = Delegation.objects.filter(mine | lasting).select_related(
        "person", "stand_in", "group", "ended_by"
    )
    waiting = visible_operations(request.user).filter(
        kind=DelegationKind.name, status=Status.PENDING, preparer=request.user
    )
    rows = [
        {
            "delegation": one,
            "state": _state(one),
            "until": _until(one),
            "lasts": one.starts_at <= now < one.ends,
            "may_end": now < one.ends and request.user.pk in {one.person_id, one.stand_in_id},
        }
        for one in found[:SHOWN]
    ]
    return render(request, "governance/delegations.html", {"rows": rows, "waiting": waiting})


def _until(delegation: Delegation) -> str:
    """The last day; the time if it ended early, or if that day ends at another time for the reader."""
    if delegation.ends < delegation.ends_at:
        return local_time(delegation.ends)
    return last_day(delegation.ends_at)


def _state(delegation: Delegation) -> str:
    now = timezone.now()
    if now >= delegation.ends:
        return gettext("Ended early") if delegation.ended_at else pgettext("delegation", "Ended")
    if now < delegation.starts_at:
        return gettext("Begins later")
    return gettext("In effect") if now >= delegation.acts_from else gettext("Waiting time for new rights")


@require_POST
@permission_required(VIEW, raise_exception=True)
def end(request: StaffRequest, pk: int) -> HttpResponse:
    """End a delegation early; 404 for anybody but its two people."""
    try:
        ended = end_delegation(pk, actor=request.user)
    except (Delegation.DoesNotExist, PermissionMissingError) as exc:
        raise Http404 from exc
    except OperationError as exc:
        messages.info(request, str(exc))
    else:
        messages.success(request, gettext("Delegation ended: {delegation}.").format(delegation=ended))
    return redirect("governance:delegations")
