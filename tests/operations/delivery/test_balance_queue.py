"""One at a time leaves a balance, in the order of release; an unknown outcome holds back what has its amount."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import jobs
from backoffice.operations.delivery import restore_check, send
from backoffice.operations.delivery.balance_queue import is_next, queue_heads, queue_position
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.delivery.send import make_request
from backoffice.operations.kinds.base import MoneyKind
from backoffice.operations.kinds.conversion import ConversionPayload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import MatchField
from backoffice.operations.states import Outcome, Status
from payments_gateway import TransactionRecord
from tests import factories
from tests.core.test_background import messages
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import show, status_of, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

GOOD = (200, '{"data": {"transactionId": "T-1"}}')
LOST = (502, "bad gateway")


def released(preparer: User, approver: User, amount: int, currency: str = "NGN") -> Operation:
    """A released withdrawal; each to an account of its own."""
    account = f"{Operation.objects.count():010}"
    content = {"amount": Decimal(amount), "currency": currency, "account_number": account}
    return factories.release(factories.approved(preparer, approver, **content), approver, "123456")


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


def test_an_unknown_outcome_holds_back_what_has_its_amount(
    lost: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    second = released(preparer, approver, 100_000)
    send.send_operation(second.pk)
    jobs.send_due()
    assert (status_of(second), len(provider.posts)) == (Status.APPROVED, 1)
    assert Release.objects.filter(pk=second.pk).exists()


def test_what_has_another_amount_is_sent_before_what_is_held_back(
    lost: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    held, other = released(preparer, approver, 100_000), released(preparer, approver, 200_000)
    send.send_operation(other.pk)
    assert (status_of(held), status_of(other)) == (Status.APPROVED, Status.PROCESSING)


def test_an_attempt_of_unknown_amount_holds_back_its_whole_balance(
    lost: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    Attempt.objects.update(amount=None)
    second = released(preparer, approver, 200_000)
    send.send_operation(second.pk)
    assert (status_of(second), len(provider.posts)) == (Status.APPROVED, 1)


def test_the_strict_order_holds_back_the_whole_balance(
    settings: Settings, lost: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    settings.STRICT_BALANCE_ORDER = True
    second = released(preparer, approver, 200_000)
    send.send_operation(second.pk)
    jobs.send_due()
    assert (status_of(second), len(provider.posts)) == (Status.APPROVED, 1)


def test_nothing_is_sent_while_a_request_is_under_way(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    first, second = released(preparer, approver, 100_000), released(preparer, approver, 200_000)
    assert send.claim_operation(first.pk, send.preflight_read(Release.objects.get(pk=first.pk))) is not None
    send.send_operation(second.pk)
    assert (status_of(second), provider.posts) == (Status.APPROVED, [])
    # The claim alone would be refused by the unique constraint, at the cost of its reads.
    assert not is_next(Release.objects.get(pk=second.pk), timezone.now())


def test_the_next_amount_is_enqueued_once_the_outcome_is_unknown(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    answered(provider, LOST)
    first, second = released(preparer, approver, 100_000), released(preparer, approver, 200_000)
    before = len(messages(second.pk))
    send.send_operation(first.pk)
    assert (status_of(first), len(messages(second.pk))) == (Status.UNKNOWN, before + 1)


def test_the_head_of_a_queue_is_the_first_that_is_not_held_back(
    lost: Operation, preparer: User, approver: User
) -> None:
    released(preparer, approver, 100_000)
    first, _second = (released(preparer, approver, amount).pk for amount in (200_000, 300_000))
    assert list(queue_heads(timezone.now()).values_list("pk", flat=True)) == [first]


@pytest.mark.parametrize("amount", [Decimal("100000"), Decimal("100000.00")])
def test_the_amount_that_is_held_is_the_one_that_is_matched(
    lost: Operation, preparer: User, approver: User, amount: Decimal
) -> None:
    assert Attempt.objects.holding("NGN", amount).get().operation == lost
    assert not Attempt.objects.holding("NGN", amount + Decimal("0.01")).exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if isinstance(kind, MoneyKind)])
def test_every_kind_that_debits_a_balance_matches_exactly_the_amount_that_is_held(
    kind: MoneyKind[Any],
) -> None:
    """Otherwise a transaction with another amount could be taken for an attempt's, and nothing would hold it back."""
    content = SAMPLES[kind.name]
    debit = kind.debit(content)
    assert kind.exposure(content) == debit
    similar = record_of(kind, content)
    assert kind.is_match(content, similar)
    for change in ({"amount": debit.amount + Decimal("0.01")}, {"currency": "XXX"}, {"type": "other"}):
        assert not kind.is_match(content, similar.model_copy(update=change))


def record_of(kind: MoneyKind[Any], content: Any) -> TransactionRecord:
    """A transaction with the fields by which this kind is matched."""
    debit = kind.debit(content)
    blank = TransactionRecord.model_validate(
        {"transactionId": "T-1", "currency": debit.currency, "amount": str(debit.amount), "type": ""}
    )
    [type_] = [one for one in kind.match_fields(content, blank) if one.field == MatchField.TYPE]
    return blank.model_copy(update={"type": type_.local})


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


def test_the_database_allows_one_unknown_outcome_for_an_amount(
    lost: Operation, preparer: User, approver: User
) -> None:
    other = factories.approved(preparer, approver, amount=Decimal(5))
    with pytest.raises(IntegrityError, match="balance"):
        factories.attempt(other, balance="NGN", amount=Decimal("100000.0"))


def test_the_database_allows_one_request_under_way_for_a_balance(preparer: User, approver: User) -> None:
    first, second = (factories.approved(preparer, approver, amount=Decimal(each)) for each in (5, 6))
    factories.attempt(first, balance="NGN", amount=Decimal(5), is_under_way=True)
    with pytest.raises(IntegrityError, match="balance"):
        factories.attempt(second, balance="NGN", amount=Decimal(6), is_under_way=True)


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
        assert refusal.detail["refusal"] == {"code": "look_alike", "transactions": "T-7"}
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
        restore_check.compare_with_journals()  # a machine whose journal is missing sends nothing anyway
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
        third = released(preparer, approver, 100_000)
        factories.sign_in(client, approver)
        page = text_of(show(client, third))
        assert "Waiting in the queue" in page
        assert f"2 operations are ahead of this one for the NGN balance. {lost.reference} was sent" in page
        assert f'href="/operations/{lost.pk}/">View {lost.reference}</a>' in page

    def test_no_one_time_code_is_requested_while_the_balance_is_blocked(
        self, lost: Operation, preparer: User, approver: User, client: Client
    ) -> None:
        waiting = factories.approved(preparer, approver, amount=Decimal(100_000), account_number="0000000009")
        factories.sign_in(client, approver)
        page = text_of(show(client, waiting))
        assert f"{lost.reference} blocks payments of NGN 100,000.00" in page
        assert "1 operation is ahead of this one for the NGN balance" in page
        assert "a one-time code entered now would expire" in page
        assert "Ready to send" not in page
        assert ">Send<" not in page
        assert 'name="otp"' not in page

    def test_operations_without_a_one_time_code_can_be_released_while_the_balance_is_blocked(
        self, lost: Operation, preparer: User, approver: User, client: Client
    ) -> None:
        rate = {"known_rate": None, "from_currency": "NGN", "to_currency": "USD"}
        content = ConversionPayload(amount=Decimal(100_000), **rate)
        waiting = factories.approve(factories.prepared_of_kind("conversion", content, preparer), approver)
        factories.sign_in(client, approver)
        page = text_of(show(client, waiting))
        assert f"{lost.reference} blocks payments of NGN 100,000.00" in page
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
        assert "Expected wait: less than 1 min. The one-time code may expire first." in page.replace(
            "</p>", ""
        )
        assert ">Send<" in page

    def test_what_is_not_approved_yet_can_be_approved_and_sent_behind_an_unsent_operation(
        self, provider: StubProvider, preparer: User, approver: User, client: Client
    ) -> None:
        for amount in range(100_000, 100_040):
            released(preparer, approver, amount)
        waiting = factories.prepared(preparer, amount=Decimal(300_000))
        factories.sign_in(client, approver)
        page = text_of(show(client, waiting))
        assert "Expected wait: 1 min." in page
        assert "cannot be sent yet" not in page
        assert "Approve and send" in page

    def test_no_queue_position_is_shown_at_the_front(
        self, provider: StubProvider, preparer: User, approver: User
    ) -> None:
        turn = queue_position(Operation.objects.get(pk=released(preparer, approver, 100_000).pk))
        assert turn is not None
        assert (turn.is_next, str(turn)) == (True, "")
