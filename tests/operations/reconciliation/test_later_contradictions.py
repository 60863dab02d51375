"""What the provider shows after the end and contradicts it raises an incident, and edits nothing."""

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.ledger import provider_list
from backoffice.ledger.mirror.merge import merge_records
from backoffice.ledger.models import Transaction
from backoffice.operations.delivery import send
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.transfer import TransferPayload
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.models.reconciliation import Comparison, ReconciliationResult, ReconciliationState
from backoffice.operations.outcome import confirmation
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow import prepare
from tests import factories
from tests.operations.provider_list import NAMED, NAMELESS, OTP_REJECTED, REFUSED, record, sent, shows
from tests.operations.reconciliation.steps import AMOUNT, listed, on_record, reported_again
from tests.operations.reconciliation.steps import sent as closed_attempt
from tests.stub_provider import Answer, StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

ABOUT_OPERATIONS = {"operation__isnull": False}


@pytest.fixture
def provider(provider: StubProvider) -> StubProvider:
    """One whose list has an old withdrawal only."""
    shows(provider)
    return provider


def closed_by_list(provider: StubProvider, operation: Operation, *records: dict[str, object]) -> Operation:
    shows(provider, *records)
    return confirmation.confirm_operation(operation.pk)


def found(provider: StubProvider, *records: dict[str, object]) -> set[str]:
    """The incidents about operations after such a list was mirrored and compared."""
    shows(provider, *records)
    kept = list(Operation.objects.order_by("pk").values())
    with transaction.atomic():
        merge_records(provider_list.recent_transactions("NGN", back_to=timezone.now() - timedelta(days=1)))
    reconcile()
    assert list(Operation.objects.order_by("pk").values()) == kept
    return set(Incident.objects.filter(**ABOUT_OPERATIONS).values_list("kind", flat=True))


@pytest.fixture
def succeeded(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """Closed as succeeded by a transaction that the provider named."""
    operation = closed_by_list(provider, sent(provider, preparer, approver, NAMED), record("T-1"))
    assert operation.status == Status.SUCCEEDED
    return operation


def test_no_incident_is_raised_while_the_list_agrees(succeeded: Operation, provider: StubProvider) -> None:
    assert found(provider, record("T-1")) == set()


def test_a_success_later_reported_failed_raises_an_incident(
    succeeded: Operation, provider: StubProvider
) -> None:
    assert found(provider, record("T-1", "failed")) == {IncidentKind.NOW_FAILED}
    incident = Incident.objects.get()
    assert incident.operation == succeeded
    assert incident.evidence["on_record"] == {"attempt": 1, "outcome": "succeeded", "transaction": "T-1"}
    assert incident.evidence["in_list"]["transaction"] == "T-1"
    words = dict(incident.facts)
    assert words["recorded outcome"] == "Succeeded, attempt 1, transaction T-1"
    assert words["provider's list"].startswith("T-1 of ")


def test_a_failure_later_reported_executed_raises_an_incident(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = closed_by_list(provider, sent(provider, preparer, approver, NAMED), record("T-1", "failed"))
    assert operation.status == Status.FAILED
    assert found(provider, record("T-1", "failed")) == set()
    assert found(provider, record("T-1")) == {IncidentKind.NOW_EXECUTED}


@pytest.mark.parametrize("is_copy", [False, True], ids=["same payment", "copy of another amount"])
def test_a_payment_that_failed_and_is_executed_after_all_is_not_paid_again(
    provider: StubProvider, preparer: User, approver: User, *, is_copy: bool
) -> None:
    """The second one is released before the provider corrects the status, and again before anybody compared them."""
    failed = closed_by_list(provider, sent(provider, preparer, approver, NAMED), record("T-1", "failed"))
    content = factories.payload(**({"amount": Decimal(250_001)} if is_copy else {}))
    again = prepare.prepare_operation(
        uuid4(),
        actor=preparer,
        kind="withdrawal",
        payload=content,
        prepared_from=failed.pk if is_copy else None,
    )
    factories.release(factories.approve(again, approver), approver)
    assert found(provider, record("T-1")) == {IncidentKind.NOW_EXECUTED}
    provider.posts.clear()
    send.send_operation(again.pk)
    assert (provider.posts, Release.objects.count()) == ([], 0)
    with pytest.raises(OperationError, match=f"{failed.reference} may have been executed"):
        factories.release(again, approver)
    incidents.acknowledge_incident(
        Incident.objects.get(**ABOUT_OPERATIONS).pk, actor=approver, note="Paid once more"
    )
    factories.release(again, approver)
    send.send_operation(again.pk)
    assert len(provider.posts) == 1


@pytest.mark.parametrize("answer", [REFUSED, OTP_REJECTED])
def test_a_debit_of_an_operation_resolved_not_executed_raises_an_incident(
    answer: Answer, provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = sent(provider, preparer, approver, answer)
    assert operation.status in {Status.FAILED, Status.APPROVED}
    assert found(provider) == set()
    assert found(provider, record("T-6", amount=250001)) == set()
    assert found(provider, record("T-7", "failed")) == set()
    assert found(provider, record("T-7")) == {IncidentKind.EXECUTED_AFTER_ALL}
    about = Incident.objects.get(**ABOUT_OPERATIONS)
    assert about.operation == operation
    assert about.evidence["in_list"]["transaction"] == "T-7"


def test_a_debit_of_an_unsent_operation_raises_an_incident(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = sent(provider, preparer, approver, NAMED)
    Attempt.objects.update(
        outcome=Outcome.NOT_SENT, closed_at=timezone.now(), provider_transaction_id=None, id_received_at=None
    )
    assert found(provider, record("T-7")) == {IncidentKind.EXECUTED_AFTER_ALL}
    assert Incident.objects.get(**ABOUT_OPERATIONS).operation == operation


def test_a_debit_of_another_operation_is_not_attributed_to_a_refused_one(
    provider: StubProvider, succeeded: Operation, preparer: User, approver: User
) -> None:
    sent(provider, preparer, approver, REFUSED)
    assert found(provider, record("T-1")) == set()


def test_a_debit_that_may_belong_to_an_unknown_outcome_waits(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    refused = sent(provider, preparer, approver, REFUSED)
    doubtful = sent(provider, preparer, approver, (502, "bad gateway"))
    assert found(provider, record("T-7")) == set()
    on_record(
        doubtful.attempts.get(),
        closed_at=timezone.now(),
        outcome=Outcome.SUCCEEDED,
        provider_transaction_id="T-6",
    )
    assert found(provider, record("T-7"), record("T-6")) >= {IncidentKind.EXECUTED_AFTER_ALL}
    assert Incident.objects.get(kind=IncidentKind.EXECUTED_AFTER_ALL).operation == refused


def test_a_second_candidate_after_a_list_match_raises_an_incident(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = closed_by_list(provider, sent(provider, preparer, approver, NAMELESS), record("T-7"))
    assert operation.status == Status.SUCCEEDED
    assert found(provider, record("T-8"), record("T-7")) == {IncidentKind.SECOND_DEBIT}


def test_a_second_debit_after_a_named_transaction_raises_an_incident(
    succeeded: Operation, provider: StubProvider
) -> None:
    assert found(provider, record("T-2"), record("T-1")) == {IncidentKind.SECOND_DEBIT}
    incident = Incident.objects.get(**ABOUT_OPERATIONS)
    assert incident.operation == succeeded
    assert incident.evidence["in_list"]["transaction"] == "T-2"


def test_a_second_debit_listed_before_closing_raises_an_incident(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """The transaction is compared while the operation is processing; its end makes it a second debit."""
    operation = sent(provider, preparer, approver, NAMED)
    both = record("T-2"), record("T-1", "processing")
    assert found(provider, *both) == set()
    records = (both[0], both[1] | {"status": "fullfiled"})
    assert closed_by_list(provider, operation, *records).status == Status.SUCCEEDED
    assert found(provider, *records) == {IncidentKind.SECOND_DEBIT}


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "failed"},
        {"amount": 250001},
        {"createdAt": "2126-01-02T08:00:00Z"},
        {"createdAt": "2026-01-02T08:00:00Z"},
        {"type": "sent"},
    ],
    ids=["failed", "of another amount", "too late to be caused by it", "from before", "of another type"],
)
def test_reversals_and_unrelated_debits_raise_no_incident(
    succeeded: Operation, provider: StubProvider, changes: dict[str, object]
) -> None:
    assert found(provider, record("T-2") | changes, record("T-1")) == set()


def test_an_identical_operation_of_ours_is_not_a_second_debit(
    succeeded: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    """Neither while it is on its way and nobody knows its transaction, nor when it has claimed it."""
    other = sent(provider, preparer, approver, NAMELESS, memo="the next one")
    both = (record("T-2"), record("T-1"))
    assert found(provider, *both) == set()
    assert closed_by_list(provider, other, *both).status == Status.SUCCEEDED
    assert found(provider, *both) == set()
    assert found(provider, record("T-3"), *both) == {IncidentKind.SECOND_DEBIT}


def test_each_further_debit_raises_an_incident_after_an_acknowledgement(
    succeeded: Operation, provider: StubProvider, approver: User
) -> None:
    first, second = record("T-1"), record("T-2")
    found(provider, second, first)
    noted = Incident.objects.get(**ABOUT_OPERATIONS)
    incidents.acknowledge_incident(noted.pk, actor=approver, note="Asked the service")
    found(provider, record("T-3"), second, first)
    further = Incident.objects.get(**ABOUT_OPERATIONS, acknowledged_at=None)
    assert further.evidence["in_list"]["transaction"] == "T-3"
    assert further.further_to == noted


def test_a_second_debit_that_completes_raises_no_further_incident(
    succeeded: Operation, provider: StubProvider
) -> None:
    first, second = record("T-1"), record("T-2", "processing")
    assert found(provider, second, first) == {IncidentKind.SECOND_DEBIT}
    found(provider, second | {"status": "fullfiled"}, first)
    assert Incident.objects.get(**ABOUT_OPERATIONS).evidence["in_list"]["status"] == "processing"


def executed_after_all() -> set[str]:
    return set(Incident.objects.filter(**ABOUT_OPERATIONS).values_list("kind", flat=True))


def rejected(preparer: User, **changes: Any) -> Attempt:
    now = timezone.now()
    return closed_attempt(preparer, None, outcome=Outcome.REJECTED, watermark_provider_time=now, **changes)


def test_an_open_operation_of_another_kind_does_not_explain_a_debit(preparer: User) -> None:
    """It keeps the transaction from being unrecognised, but not from contradicting the closed one."""
    rejected(preparer)
    to_emeka = TransferPayload(receiver_username="emeka", currency="NGN", amount=AMOUNT, memo="")
    factories.attempt(
        factories.prepared_of_kind("transfer", to_emeka, preparer),
        balance="NGN",
        watermark_provider_time=timezone.now(),
    )
    listed("T-7")
    reconcile()
    assert Comparison.objects.get(transaction__isnull=False).result == ReconciliationResult.PENDING
    assert executed_after_all() == {IncidentKind.EXECUTED_AFTER_ALL}
    assert not Incident.objects.filter(transaction__isnull=False).exists()


def test_a_debit_that_left_the_list_raises_no_incident(preparer: User) -> None:
    rejected(preparer)
    row = listed("T-7", status="failed")
    reported_again(row, missing_since=timezone.now(), status="fulfilled")
    reconcile()
    assert executed_after_all() == set()
    reported_again(row, missing_since=None)
    reconcile()
    assert executed_after_all() == {IncidentKind.EXECUTED_AFTER_ALL}


def test_no_debit_is_compared_without_the_providers_time_at_sending(preparer: User) -> None:
    closed_attempt(preparer, None, outcome=Outcome.REJECTED)
    listed("T-7")
    reconcile()
    assert executed_after_all() == set()


def test_a_slow_provider_clock_hides_no_debit(preparer: User) -> None:
    """By its times, the debit is older than the first operation here."""
    earlier = timezone.now() - timedelta(hours=3)
    attempt = rejected(preparer)
    Attempt.objects.filter(pk=attempt.pk).update(watermark_provider_time=earlier)
    reconcile()
    listed("T-6", occurred_at=earlier, amount=AMOUNT + 1)
    listed("T-7", occurred_at=earlier)
    reconcile()
    assert executed_after_all() == {IncidentKind.EXECUTED_AFTER_ALL}
    assert not Incident.objects.filter(transaction__transaction_id="T-6").exists()


def test_the_daily_pass_finds_debits_missed_by_the_feeds(preparer: User) -> None:
    rejected(preparer)
    reconcile()
    row = listed("T-7", status="failed")
    reconcile()
    Transaction.objects.filter(pk=row.pk).update(status="fulfilled")  # by no merge, so nothing was recorded
    reconcile()
    assert executed_after_all() == set()
    ReconciliationState.objects.update(full_pass_begun_at=timezone.now() - timedelta(days=1))
    reconcile()
    assert executed_after_all() == {IncidentKind.EXECUTED_AFTER_ALL}
