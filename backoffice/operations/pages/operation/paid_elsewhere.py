"""On the page of an approved operation: whether to offer its resolution as already paid, and the one that waits."""

from dataclasses import dataclass, replace

from django.utils.translation import gettext

from backoffice.accounts.models import User
from backoffice.accounts.roles import may_now
from backoffice.operations import permissions
from backoffice.operations.kinds.resolution.case import may_be_paid_elsewhere, pending_resolution
from backoffice.operations.lifecycle.pause import cached_pause
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reason_codes import PauseCause
from backoffice.operations.pages.operation.panel import DecisionPanel
from backoffice.operations.pages.operation.status import is_applied_locally, may_be_paid_already
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.refusals.sentences import sentence
from backoffice.operations.states import Status

_ATTEMPTS_MAY_BE_MISSING = {PauseCause.DATABASE_RESTORED, PauseCause.JOURNAL_LOST}


@dataclass(frozen=True)
class PaymentResolution:
    """`pending` waits for approval; `is_offered` if this user may propose one and there is a reason to."""

    pending: Operation | None = None
    is_offered: bool = False

    @property
    def fingerprint(self) -> str:
        """Part of the fingerprint of the page: changes when a resolution is prepared or decided."""
        return self.pending.reference if self.pending else ""


def payment_resolution(person: User, operation: Operation) -> PaymentResolution:
    """What the page shows of it; needs `selectors.operation_page`."""
    if operation.status != Status.APPROVED or is_applied_locally(operation):
        return PaymentResolution()
    if pending := pending_resolution(operation):
        return PaymentResolution(pending)
    pause = cached_pause()
    may_be_paid = may_be_paid_already(operation) or (
        pause is not None and pause.cause in _ATTEMPTS_MAY_BE_MISSING
    )
    is_offered = may_be_paid and may_now(person, permissions.RESOLVE)
    return PaymentResolution(is_offered=is_offered and may_be_paid_elsewhere(operation))


def with_resolution(panel: DecisionPanel, resolution: PaymentResolution) -> DecisionPanel:
    """The same without sending or cancelling while a resolution waits, which the services refuse."""
    if resolution.pending is None:
        return panel
    refusal = {"code": Refusal.RESOLUTION_PENDING, "resolution": resolution.pending.reference}
    title = gettext("Not sent: possibly paid already")
    return replace(panel, title=title, text=sentence(refusal), may_release=False, may_cancel=False)
