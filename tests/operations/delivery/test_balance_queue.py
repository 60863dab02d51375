"""One at a time leaves a balance, in the order of release."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import jobs
from backoffice.operations.delivery import send
from backoffice.operations.delivery.balance_queue import queue_position
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.delivery.send import make_request
from backoffice.operations.kinds.conversion import ConversionPayload
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.steps import show, status_of, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = (200, '{"data": {"transactionId": "T-1"}}')
LOST = (502, "bad gateway")


def released(preparer: User, approver: User, amount: int, currency: str = "NGN") -> Operation:
    operation = factories.approved(preparer, approver, amount=Decimal(amount), currency=currency)
    return factories.release(operation, approver, "123456")


def answered(provider: StubProvider, *answers: tuple[int, str]) -> None:
    """Let the requests be answered one after the other."""
    queue = list(answers)
    provider.answer_post = lambda: queue.pop(0)


def settle(operation: Operation) -> None:
    Attempt.objects.filter(operation=operation).update(
        closed_at=timezone.now(), outcome=Outcome.FAILED, next_check_at=None
    )


@pytest.fixture
def lost(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """The first one at the NGN balance, whose answer was lost."""
    answered(provider, LOST, GOOD, GOOD)
    operation = released(preparer, approver, 100_000)
    send.send_operation(operation.pk)
    assert status_of(operation) == Status.UNKNOWN
    return operation


def test_an_unknown_outcome_blocks_its_balance(
    lost: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    second = released(preparer, approver, 200_000)
    send.send_operation(second.pk)
    jobs.send_due()
    assert (status_of(second), len(provider.posts)) == (Status.APPROVED, 1)
    assert Release.objects.filter(pk=second.pk).exists()


def test_an_unknown_outcome_does_not_block_another_balance(
    lost: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    dollars = released(preparer, approver, 200, "USD")
    send.send_operation(dollars.pk)
    assert status_of(dollars) == Status.PROCESSING


def test_the_next_operation_is_sent_once_the_first_is_settled(
    lost: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    second = released(preparer, approver, 200_000)
    settle(lost)
    send.send_operation(second.pk)
    assert (status_of(second), len(provider.posts)) == (Status.PROCESSING, 2)


def test_an_operation_with_a_transaction_id_does_not_block_its_balance(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    answered(provider, GOOD, (200, '{"data": {"transactionId": "T-2"}}'))
    for operation in (released(preparer, approver, 100_000), released(preparer, approver, 200_000)):
        send.send_operation(operation.pk)
        assert status_of(operation) == Status.PROCESSING


def test_operations_of_a_balance_are_sent_in_order(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    first, second = released(preparer, approver, 100_000), released(preparer, approver, 200_000)
    send.send_operation(second.pk)
    assert (status_of(second), provider.posts) == (Status.APPROVED, [])
    send.send_operation(first.pk)
    send.send_operation(second.pk)
    assert [json.loads(body)["amount"] for body in provider.posts] == ["100000", "200000"]


def test_an_operation_that_may_no_longer_be_sent_frees_the_queue(
    provider: StubProvider, preparer: User, approver: User, second_approver: User
) -> None:
    first = factories.approved(preparer, approver, amount=Decimal(100_000))
    factories.release(first, second_approver, "123456")
    second = released(preparer, approver, 200_000)
    User.objects.filter(pk=second_approver.pk).update(is_active=False)
    send.send_operation(first.pk)
    send.send_operation(second.pk)
    assert (status_of(first), status_of(second)) == (Status.APPROVED, Status.PROCESSING)


def test_the_database_allows_one_unknown_outcome_for_a_balance(
    lost: Operation, preparer: User, approver: User
) -> None:
    other = factories.approved(preparer, approver, amount=Decimal(5))
    doubt = {"released_by": approver, "digest": other.digest, "balance": "NGN", "number": 1}
    now = timezone.now()
    with pytest.raises(IntegrityError):
        Attempt.objects.create(operation=other, started_at=now, deadline_at=now, **doubt)


def test_a_claim_that_loses_the_race_for_the_balance_waits(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """What was read before another attempt of this balance is no watermark for this one."""
    first, second = released(preparer, approver, 100_000), released(preparer, approver, 200_000)
    seen = send.preflight_read(Release.objects.get(pk=second.pk))
    send.send_operation(first.pk)
    assert send.claim_operation(second.pk, seen) is None
    assert Release.objects.filter(pk=second.pk).exists()


def test_a_read_older_than_seconds_is_no_watermark(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = released(preparer, approver, 100_000)
    seen = send.preflight_read(Release.objects.get())
    assert (
        send.claim_operation(operation.pk, replace(seen, read_at=seen.read_at - timedelta(seconds=5))) is None
    )
    assert send.claim_operation(operation.pk, seen) is not None


def test_without_a_one_time_code_the_release_lasts_a_quarter_of_an_hour(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    rate = {"known_rate": None, "from_currency": "USD", "to_currency": "NGN"}
    conversion = factories.prepared_of_kind(
        "conversion", ConversionPayload(amount=Decimal(5), **rate), preparer
    )
    factories.approve(conversion, approver)
    release_operation(
        conversion.pk, actor=approver, digest=conversion.digest, second_factor_at=timezone.now()
    )
    release = Release.objects.get()
    assert (release.balance, release.expires_at - release.released_at) == ("USD", timedelta(minutes=15))


class TestSimilarTransactionListed:
    @pytest.fixture
    def refused(self, provider: StubProvider, preparer: User, approver: User) -> Operation:
        """One whose one-time code was refused, released again."""
        answered(provider, (400, '{"message": "Invalid OTP token"}'), GOOD)
        operation = released(preparer, approver, 250_000)
        send.send_operation(operation.pk)
        assert status_of(operation) == Status.APPROVED
        return factories.release(Operation.objects.get(pk=operation.pk), approver, "654321")

    def test_an_operation_is_sent_if_the_list_has_no_similar_transaction(
        self, refused: Operation, provider: StubProvider
    ) -> None:
        send.send_operation(refused.pk)
        assert status_of(refused) == Status.PROCESSING

    def test_a_similar_transaction_in_the_list_blocks_sending_with_a_reason(
        self, refused: Operation, provider: StubProvider
    ) -> None:
        provider.records = json.dumps([debit("T-7", 250_000)])
        send.send_operation(refused.pk)
        assert (status_of(refused), len(provider.posts)) == (Status.APPROVED, 1)
        assert not Release.objects.exists()
        refusal = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).get()
        assert refusal.detail["refusal"] == {"code": "possibly_executed", "transactions": "T-7"}
        assert Entry.objects.filter(action=Action.INCIDENT_RAISED, target_id=str(refused.pk)).exists()


def debit(transaction_id: str, amount: int) -> dict[str, Any]:
    return {
        "transactionId": transaction_id,
        "currency": "NGN",
        "type": "withdrawal",
        "status": "fullfiled",
        "amount": amount,
        "createdAt": datetime.now(UTC).isoformat(),
    }


class TestPaused:
    def test_the_release_is_kept_during_a_pause(
        self, provider: StubProvider, preparer: User, approver: User
    ) -> None:
        operation = released(preparer, approver, 100_000)
        pause.pause_payments(actor=approver, reason="A supplier's mailbox was taken over.")
        send.send_operation(operation.pk)
        jobs.send_due()
        assert (status_of(operation), provider.posts) == (Status.APPROVED, [])
        assert Release.objects.filter(pk=operation.pk).exists()

    def test_a_claimed_operation_is_not_sent_during_a_pause(
        self, provider: StubProvider, preparer: User, approver: User
    ) -> None:
        operation = released(preparer, approver, 100_000)
        claim = send.claim_operation(operation.pk, send.preflight_read(Release.objects.get(pk=operation.pk)))
        assert claim is not None
        pause.pause_payments(actor=approver, reason="A supplier's mailbox was taken over.")
        assert (make_request(claim).outcome, provider.posts) == (Outcome.NOT_SENT, [])


class TestOnThePage:
    def test_a_waiting_operation_shows_its_queue_position_and_reason(
        self, lost: Operation, preparer: User, approver: User, client: Client
    ) -> None:
        released(preparer, approver, 200_000)
        third = released(preparer, approver, 300_000)
        factories.sign_in(client, approver)
        page = text_of(show(client, third))
        assert "Waiting in the queue" in page
        assert f"2 operations are ahead of this one for the NGN balance. {lost.reference} was sent" in page
        assert f'href="/operations/{lost.pk}/">View {lost.reference}</a>' in page

    def test_no_one_time_code_is_requested_while_the_balance_is_blocked(
        self, lost: Operation, preparer: User, approver: User, client: Client
    ) -> None:
        waiting = factories.approved(preparer, approver, amount=Decimal(300_000))
        factories.sign_in(client, approver)
        page = text_of(show(client, waiting))
        assert f"{lost.reference} blocks the NGN balance" in page
        assert "1 operation is ahead of this one for the NGN balance" in page
        assert "a one-time code entered now would expire" in page
        assert "Ready to send" not in page
        assert ">Send<" not in page
        assert 'name="otp"' not in page

    def test_operations_without_a_one_time_code_can_be_released_while_the_balance_is_blocked(
        self, lost: Operation, preparer: User, approver: User, client: Client
    ) -> None:
        rate = {"known_rate": None, "from_currency": "NGN", "to_currency": "USD"}
        content = ConversionPayload(amount=Decimal(5_000), **rate)
        waiting = factories.approve(factories.prepared_of_kind("conversion", content, preparer), approver)
        factories.sign_in(client, approver)
        page = text_of(show(client, waiting))
        assert f"{lost.reference} blocks the NGN balance" in page
        assert "within 15 minutes" in page
        assert ">Send<" in page

    def test_a_one_time_code_can_be_entered_behind_an_unsent_operation(
        self, provider: StubProvider, preparer: User, approver: User, client: Client
    ) -> None:
        released(preparer, approver, 100_000)
        waiting = factories.approved(preparer, approver, amount=Decimal(300_000))
        factories.sign_in(client, approver)
        page = text_of(show(client, waiting))
        assert "1 operation is ahead of this one for the NGN balance" in page
        assert "and the one-time code may expire first" in page
        assert ">Send<" in page

    def test_no_queue_position_is_shown_at_the_front(
        self, provider: StubProvider, preparer: User, approver: User
    ) -> None:
        turn = queue_position(Operation.objects.get(pk=released(preparer, approver, 100_000).pk))
        assert turn is not None
        assert (turn.is_next, str(turn)) == (True, "")
