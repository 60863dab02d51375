"""What the list shows and cannot be distinguished from ours, or from another's, closes nothing."""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger.mirror import sync
from backoffice.operations.delivery import send
from backoffice.operations.delivery.record import SendResult, record_result
from backoffice.operations.delivery.release import AnotherPayment
from backoffice.operations.kinds.transfer import TransferPayload
from backoffice.operations.matching import claim_transaction, find_match
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import CheckResult, IncidentKind, ResponseCode, coded
from backoffice.operations.outcome import confirmation
from backoffice.operations.outcome.confirmation import listing_delay
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.outcome.steps import BALANCE, HORIZON, ago, confirmed
from tests.operations.provider_list import record, sent, shows
from tests.operations.steps import let_pass
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

DOUBTFUL = [
    pytest.param(
        lambda: {"createdAt": ago(seconds=20), "prevBalance": BALANCE},
        "it is older than this attempt, and no response shows that the provider accepted it",
        id="before ours",
    ),
    pytest.param(
        lambda: {"prevBalance": BALANCE + 250_050},
        "the balance after it equals the balance before sending, so it is earlier",
        id="before the balance",
    ),
    pytest.param(
        lambda: {"prevBalance": BALANCE + 250_000, "fee": None},
        "the balance after it equals the balance before sending, so it is earlier",
        id="before the balance, without a fee",
    ),
    pytest.param(
        lambda: {"createdAt": "last week", "prevBalance": BALANCE}, "it has no time", id="without a time"
    ),
]


Changes = Callable[[], dict[str, Any]]


@pytest.mark.parametrize(("changes", "why"), DOUBTFUL)
def test_a_candidate_that_may_predate_the_attempt_is_rejected(
    unknown: Operation, provider: StubProvider, changes: Changes, why: str
) -> None:
    """Another channel may have paid it before, and list and balance have shown it only since: ours may not exist."""
    theirs = record("T-7", **changes())
    assert confirmed(unknown, provider, theirs).status == Status.UNKNOWN
    assert Attempt.objects.get().last_check == f"T-7 could match, but {why}"
    let_pass(HORIZON)
    assert confirmed(unknown, provider, theirs).status == Status.REVIEW


@pytest.mark.parametrize(("other_amount", "status"), [("", Status.SUCCEEDED), ("10", Status.UNKNOWN)])
def test_a_candidate_that_is_seconds_older_is_rejected_if_another_attempt_of_the_balance_was_open(
    provider: StubProvider, preparer: User, approver: User, other_amount: str, status: Status
) -> None:
    """The other attempt may have changed the balance since, so the balance does not show that it is older."""
    if other_amount:
        sent(provider, preparer, approver, (502, "bad gateway"), amount=Decimal(other_amount))
    operation = sent(provider, preparer, approver, (502, "bad gateway"))
    let_pass(listing_delay())
    attempt = operation.attempts.get()
    assert attempt.watermark_provider_time
    earlier = attempt.watermark_provider_time - timedelta(seconds=3)
    assert confirmed(operation, provider, record("T-7", createdAt=earlier.isoformat())).status == status


@pytest.mark.parametrize(("too_much", "status"), [(0, Status.SUCCEEDED), (1, Status.UNKNOWN)])
def test_beside_another_attempt_only_the_next_transaction_after_the_watermark_counts_as_newer(
    provider: StubProvider, preparer: User, approver: User, too_much: int, status: Status
) -> None:
    sent(provider, preparer, approver, (502, "bad gateway"), amount=Decimal(10))
    operation = sent(provider, preparer, approver, (502, "bad gateway"))
    let_pass(listing_delay())
    attempt = operation.attempts.get()
    assert attempt.watermark_provider_time
    earlier = (attempt.watermark_provider_time - timedelta(seconds=3)).isoformat()
    found = record("T-7", createdAt=earlier, prevBalance=BALANCE + too_much)
    assert confirmed(operation, provider, found).status == status


@pytest.mark.parametrize(("is_balance_read", "status"), [(True, Status.SUCCEEDED), (False, Status.UNKNOWN)])
def test_without_a_balance_the_same_holds_beside_an_attempt_that_was_closed_while_the_list_was_read(
    provider: StubProvider, preparer: User, approver: User, is_balance_read: bool, status: Status
) -> None:
    sent(provider, preparer, approver, (502, "bad gateway"), amount=Decimal(10))
    Attempt.objects.update(closed_at=timezone.now(), outcome=Outcome.FAILED, is_under_way=False)
    operation = sent(provider, preparer, approver, (502, "bad gateway"))
    if not is_balance_read:
        operation.attempts.update(watermark_balance=None)
    let_pass(listing_delay())
    attempt = operation.attempts.get()
    before = Attempt.objects.exclude(pk=attempt.pk)
    before.update(closed_at=attempt.started_at - timedelta(milliseconds=1))
    assert attempt.watermark_provider_time
    earlier = attempt.watermark_provider_time - timedelta(seconds=3)
    assert confirmed(operation, provider, record("T-7", createdAt=earlier.isoformat())).status == status


@pytest.mark.parametrize(
    ("name", "status"), [("", Status.SUCCEEDED), ("ada.obi", Status.SUCCEEDED), ("Ada.Obi", Status.UNKNOWN)]
)
def test_a_transfer_to_a_name_in_another_case_is_left_to_people(
    provider: StubProvider, preparer: User, approver: User, name: str, status: Status
) -> None:
    """It stops a second payment as a similar one (`look_alikes`), but may have been made to another user."""
    content = TransferPayload(receiver_username="ada.obi", currency="NGN", amount=Decimal(100), memo="")
    provider.answer_post = lambda: (502, "bad gateway")
    operation = factories.approve(factories.prepared_of_kind("transfer", content, preparer), approver)
    factories.release(operation, approver)
    send.send_operation(operation.pk)
    let_pass(listing_delay())
    found = record("T-7", type="transfer", amount=100, username=name)
    assert confirmed(operation, provider, found).status == status


def test_a_candidate_that_may_predate_an_accepted_attempt_is_rejected(
    accepted: Operation, provider: StubProvider
) -> None:
    theirs = record("T-7", prevBalance=BALANCE + 250_050)
    assert confirmed(accepted, provider, theirs).status == Status.PROCESSING
    assert confirmed(accepted, provider, record("T-8", prevBalance=BALANCE)).status == Status.SUCCEEDED


@pytest.mark.parametrize(("changes", "why"), DOUBTFUL)
def test_a_rejected_candidate_blocks_another_beside_it(
    unknown: Operation, provider: StubProvider, changes: Changes, why: str
) -> None:
    """Where the list's times are minutes off, it may be ours, and the other one another's."""
    found = [record("T-8"), record("T-7", **changes())]
    assert confirmed(unknown, provider, *found).status == Status.UNKNOWN
    assert confirmed(unknown, provider, *found[:1]).status == Status.SUCCEEDED


def test_an_unknown_status_closes_nothing(unknown: Operation, provider: StubProvider) -> None:
    assert confirmed(unknown, provider, record("T-7", "on hold")).status == Status.UNKNOWN


def test_two_candidates_close_nothing(unknown: Operation, provider: StubProvider) -> None:
    assert confirmed(unknown, provider, record("T-7"), record("T-8")).status == Status.UNKNOWN
    assert Attempt.objects.get().provider_transaction_id is None


def test_an_identical_transaction_of_another_channel_goes_to_review(
    unknown: Operation, provider: StubProvider
) -> None:
    assert confirmed(unknown, provider, record("T-7"), record("T-8")).status == Status.UNKNOWN
    let_pass(HORIZON)
    assert confirmed(unknown, provider, record("T-7"), record("T-8")).status == Status.REVIEW
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.provider_transaction_id) == (Outcome.OPEN, None)
    assert attempt.last_check == "2 transactions in the list could match"
    assert len(provider.posts) == 1


def test_candidates_are_rejected_without_the_providers_time(
    unknown: Operation, provider: StubProvider
) -> None:
    Attempt.objects.update(watermark_provider_time=None)
    assert confirmed(unknown, provider, record("T-7")).status == Status.UNKNOWN


def test_the_transaction_at_the_watermark_is_rejected(unknown: Operation, provider: StubProvider) -> None:
    """The last one before our request may be seconds old, and of the same content."""
    Attempt.objects.update(watermark_transaction_id="T-7")
    assert confirmed(unknown, provider, record("T-7")).status == Status.UNKNOWN


def test_a_transaction_listed_before_sending_is_rejected(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """Another channel may have paid the same a moment ago, and something else may be newer than that."""
    minutes_ago, undated = record("T-6", createdAt=ago(minutes=4)), record("T-5", createdAt="last week")
    shown = [record("T-8", type="deposit", amount=1), record("T-7"), minutes_ago, undated]
    provider.records = json.dumps(shown)
    provider.answer_post = lambda: (502, "bad gateway")
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    other = AnotherPayment(("T-7", "T-6", "T-5"), "Paid by card")
    send.send_operation(factories.release(operation, approver, statement=other).pk)
    assert set(Attempt.objects.get().watermark_seen_ids or ()) == {"T-7", "T-6", "T-5"}
    let_pass(listing_delay())
    assert confirmed(operation, provider, *shown).status == Status.UNKNOWN
    assert confirmed(operation, provider, record("T-9"), *shown).status == Status.SUCCEEDED
    assert Attempt.objects.get().provider_transaction_id == "T-9"


def test_a_failed_transaction_listed_before_sending_is_rejected(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """A failed payment of another channel does not stop the sending, and is not ours either."""
    shown = [record("T-8", type="deposit", amount=1), record("T-7", "failed")]
    provider.records = json.dumps(shown)
    operation = sent(provider, preparer, approver, (502, "bad gateway"))
    let_pass(listing_delay())
    assert confirmed(operation, provider, *shown).status == Status.UNKNOWN
    assert Attempt.objects.get().check_result == CheckResult.NOT_LISTED


def test_a_late_check_does_not_close_an_operation_in_review(
    unknown: Operation, provider: StubProvider
) -> None:
    def escalate() -> None:
        Operation.objects.filter(pk=unknown.pk).update(status=Status.REVIEW)
        connection.close()  # that of the thread that answers

    provider.before_get = escalate
    assert confirmed(unknown, provider, record("T-7")).status == Status.REVIEW
    assert Attempt.objects.get().provider_transaction_id is None


def test_a_transaction_claimed_by_another_since_the_check_closes_nothing(
    unknown: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    """Between the check and its record, which is no time at all unless two sweepers run."""
    other = sent(provider, preparer, approver, (502, "bad gateway"), currency="USD", amount=Decimal(300))
    provider.records = json.dumps([record("T-7")])
    attempt = Attempt.objects.get(operation=unknown)
    seen = find_match(unknown, attempt)
    assert claim_transaction(Attempt.objects.get(operation=other), "T-7")
    assert confirmation._record_check(unknown.pk, attempt, seen, None).status == Status.UNKNOWN
    assert Attempt.objects.get(operation=unknown).outcome == Outcome.OPEN


def test_an_identical_operation_with_a_named_transaction_does_not_block_it(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    sent(provider, preparer, approver, (200, '{"data": {"transactionId": "T-8"}}'))
    unknown = sent(provider, preparer, approver, (502, "bad gateway"))
    let_pass(listing_delay())
    assert confirmed(unknown, provider, record("T-7"), record("T-8")).status == Status.SUCCEEDED
    assert Attempt.objects.get(operation=unknown).provider_transaction_id == "T-7"


def test_one_transaction_belongs_to_one_attempt(
    unknown: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    assert confirmed(unknown, provider, record("T-7")).status == Status.SUCCEEDED
    twin = sent(provider, preparer, approver, (502, "bad gateway"))
    assert confirmed(twin, provider, record("T-7")).status == Status.UNKNOWN


def test_a_response_naming_anothers_transaction_proves_nothing_and_is_reported(
    unknown: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    confirmed(unknown, provider, record("T-7"))
    twin = sent(provider, preparer, approver, (200, '{"data": {"transactionId": "T-7"}}'))
    assert Operation.objects.get(pk=twin.pk).status == Status.UNKNOWN
    assert Entry.objects.filter(action=Action.OPERATION_CONTRADICTED, target_id=str(twin.pk)).exists()
    assert Incident.objects.get().kind == IncidentKind.ID_RECEIVED_FOR_ANOTHER


@pytest.mark.parametrize("status", ["fullfiled", "failed"])
def test_a_response_naming_a_transaction_from_before_the_request_proves_nothing(
    provider: StubProvider, preparer: User, approver: User, status: str
) -> None:
    """Nobody here has claimed it: it was made elsewhere. Our own is found in the list."""
    shows(provider, record("T-5", amount=80), record("T-4", status, amount=70))
    sync.load_all(lambda _: None)
    operation = sent(provider, preparer, approver, (200, '{"data": {"transactionId": "T-4"}}'))
    assert confirmed(operation, provider, record("T-4", status, amount=70)).status == Status.UNKNOWN
    attempt = Attempt.objects.get()
    assert (attempt.provider_transaction_id, attempt.id_received_at) == (None, None)
    assert "T-4, which it had listed before" in attempt.response
    let_pass(listing_delay())
    own = (record("T-6"), record("T-4", status, amount=70))
    assert confirmed(operation, provider, *own).status == Status.SUCCEEDED
    assert Attempt.objects.get().provider_transaction_id == "T-6"


def test_a_late_response_naming_a_transaction_from_before_the_request_claims_nothing(
    unknown: Operation, provider: StubProvider
) -> None:
    attempt = Attempt.objects.get()
    late = SendResult(
        Status.PROCESSING,
        Outcome.OPEN,
        Action.OPERATION_ACCEPTED,
        coded(ResponseCode.ACCEPTED),
        transaction_id="OLD",
    )
    assert attempt.watermark_transaction_id == "OLD"
    record_result(attempt, late)
    assert confirmed(unknown, provider).status == Status.UNKNOWN
    assert Attempt.objects.get().provider_transaction_id is None
