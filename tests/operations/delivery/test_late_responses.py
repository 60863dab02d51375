"""An answer that comes when the attempt is closed changes no end, and is put before people where it contradicts it."""

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.core import clock
from backoffice.operations.delivery import send
from backoffice.operations.delivery.record import SendResult, record_result
from backoffice.operations.matching import MatchResult, claim_transaction
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import ResponseCode, coded
from backoffice.operations.outcome import confirmation
from backoffice.operations.outcome.confirmation import listing_delay
from backoffice.operations.states import Outcome, Status
from payments_gateway import TransactionRecord
from tests import factories
from tests.operations.steps import let_pass, put, status_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

ACCEPTED = SendResult(
    Status.PROCESSING,
    Outcome.OPEN,
    Action.OPERATION_ACCEPTED,
    coded(ResponseCode.ACCEPTED),
    transaction_id="T-1",
)
REFUSED = SendResult(
    Status.FAILED,
    Outcome.REJECTED,
    Action.OPERATION_FAILED,
    coded(ResponseCode.ERROR, error="Insufficient funds"),
    http_status=422,
)


def closed_as(operation: Operation, status: Status, outcome: Outcome, transaction_id: str | None) -> Attempt:
    """Closed by a status check while the sender was frozen."""
    now = timezone.now()
    put(operation, Status.SENDING, Status.UNKNOWN)
    Operation.objects.filter(pk=operation.pk).update(status=status, closed_at=now)
    return Attempt.objects.create(
        operation=operation,
        number=1,
        released_by=operation.approvals.get().approver,
        digest=operation.digest,
        started_at=now,
        deadline_at=now,
        closed_at=now,
        outcome=outcome,
        provider_transaction_id=transaction_id,
    )


@pytest.mark.parametrize(
    ("status", "outcome", "transaction_id", "answer", "is_news"),
    [
        (Status.SUCCEEDED, Outcome.SUCCEEDED, "T-1", ACCEPTED, False),
        (Status.SUCCEEDED, Outcome.SUCCEEDED, "T-7", ACCEPTED, True),
        (Status.SUCCEEDED, Outcome.SUCCEEDED, "T-1", REFUSED, True),
        (Status.FAILED, Outcome.FAILED, None, ACCEPTED, True),
        (Status.FAILED, Outcome.FAILED, None, REFUSED, False),
    ],
)
def test_a_late_response_changes_nothing_and_raises_an_incident_on_contradiction(
    preparer: User,
    approver: User,
    status: Status,
    outcome: Outcome,
    transaction_id: str | None,
    answer: SendResult,
    is_news: bool,
) -> None:
    operation = factories.approved(preparer, approver)
    attempt = closed_as(operation, status, outcome, transaction_id)
    record_result(attempt, answer)
    attempt.refresh_from_db()
    assert (status_of(operation), attempt.outcome) == (status, outcome)
    assert Incident.objects.filter(operation=operation).exists() == is_news


class TestOpenAttempt:
    """The operation is `unknown`, or followed by a transaction that was taken for it; then the answer comes."""

    @pytest.fixture
    def followed(self, provider: StubProvider, preparer: User, approver: User) -> Attempt:
        """One whose answer is late, and for which the list showed another's transaction meanwhile."""
        provider.answer_post = lambda: (502, "bad gateway")
        operation = factories.release(factories.approved(preparer, approver), approver)
        send.send_operation(operation.pk)
        let_pass(listing_delay())
        attempt = Attempt.objects.get()
        claim_transaction(attempt, "T-OTHER")
        put(operation, Status.PROCESSING)
        return attempt

    def test_a_late_refusal_moves_it_to_review(self, followed: Attempt) -> None:
        record_result(followed, REFUSED)
        followed.refresh_from_db()
        assert (status_of(followed.operation), followed.next_check_at) == (Status.REVIEW, None)
        assert "Later: Insufficient funds" in followed.response
        assert Incident.objects.filter(operation=followed.operation).exists()

    def test_the_transaction_named_by_the_provider_replaces_the_matched_one(self, followed: Attempt) -> None:
        record_result(followed, ACCEPTED)
        followed.refresh_from_db()
        assert (status_of(followed.operation), followed.provider_transaction_id) == (Status.PROCESSING, "T-1")
        assert Incident.objects.filter(operation=followed.operation).exists()

    def test_a_status_check_from_before_the_response_does_not_close_by_another_transaction(
        self, provider: StubProvider, released: Operation
    ) -> None:
        """The list lagged and showed another's, which failed; ours was named before that check was recorded."""
        provider.answer_post = lambda: (502, "bad gateway")
        send.send_operation(released.pk)
        let_pass(Attempt.EXECUTION_WINDOW)
        others = TransactionRecord(transaction_id="T-OTHER", status="failed", currency="NGN", amount=250_000)
        seen = MatchResult(clock.now(), [others])
        attempt = Attempt.objects.get()
        record_result(attempt, ACCEPTED)
        confirmation._record_check(released.pk, attempt, seen, None)
        attempt.refresh_from_db()
        assert (status_of(released), attempt.provider_transaction_id) == (Status.PROCESSING, "T-1")

    def test_an_attempt_with_a_transaction_is_matched_to_no_other(self, followed: Attempt) -> None:
        assert not claim_transaction(Attempt.objects.get(), "T-2")
        assert claim_transaction(Attempt.objects.get(), "T-OTHER")
        assert Attempt.objects.get().provider_transaction_id == "T-OTHER"
