"""Sign off an access review, in the transaction of the last approval."""

from backoffice.accounts.access_report import access_rows, stored_rows
from backoffice.accounts.models import AccessReview, User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations.kinds.access_review import AccessReviewPayload, check_report_unchanged
from backoffice.operations.models.operations import Operation


def sign_access_review(operation: Operation, payload: AccessReviewPayload, actor: User) -> None:
    """Store the report that both have seen. The caller holds `lock_staff`.

    Raises OperationError if the rights have changed since it was prepared.
    """
    check_report_unchanged(payload)
    review = AccessReview.objects.create(
        operation=operation.pk,
        signed_at=clock.now(),
        prepared_by=operation.preparer,
        approved_by=actor,
        digest=payload.digest,
        rows=stored_rows(access_rows()),
    )
    audit.record(
        Action.ACCESS_REVIEWED,
        actor=actor,
        target=review,
        operation=operation.reference,
        digest=payload.digest,
        findings=payload.findings,
    )
