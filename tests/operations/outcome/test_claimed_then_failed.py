"""A transaction that was taken for ours, and that the provider did not name, may be another's after all."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import TRANSACTION_ID_LENGTH, Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.provider_list import shows
from tests.operations.steps import let_pass, status_of
from tests.operations.unknown_outcomes import record, resolution_form, resolved
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def taken(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """The provider said yes without a name; what it works on by now was taken for ours, as T-1."""
    shows(provider)
    provider.answer_post = lambda: (200, '{"data": {}}')
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    shows(provider, record("T-1", "processing"))
    confirmation.confirm_operation(operation.pk)
    assert Attempt.objects.get().provider_transaction_id == "T-1"
    return operation


def confirmed(operation: Operation, provider: StubProvider, *records: dict[str, object]) -> str:
    shows(provider, *records)
    return confirmation.confirm_operation(operation.pk).status


@pytest.mark.parametrize(("answer", "named"), [({"transactionId": "T-1"}, "T-1"), ({}, None)])
def test_the_attempt_and_the_audit_log_record_whether_the_provider_named_it(
    provider: StubProvider, preparer: User, approver: User, answer: dict[str, str], named: str | None
) -> None:
    shows(provider)
    provider.answer_post = lambda: (200, json.dumps({"data": answer}))
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    shows(provider, record("T-1", "processing"))
    confirmation.confirm_operation(operation.pk)
    attempt = Attempt.objects.get()
    assert attempt.provider_transaction_id == "T-1"
    assert (attempt.id_received_at is not None) == (named is not None)
    assert attempt.id_received_at is None or attempt.started_at <= attempt.id_received_at <= timezone.now()
    entries = Entry.objects.filter(target_id=str(operation.pk), detail__has_key="response_transaction_id")
    assert [entry.detail["response_transaction_id"] for entry in entries] == [named]


def test_a_failed_candidate_proves_nothing_while_another_may_appear(
    taken: Operation, provider: StubProvider
) -> None:
    assert confirmed(taken, provider, record("T-1", "failed")) == Status.PROCESSING
    assert "because another transaction may still appear" in Attempt.objects.get().last_check
    let_pass(Attempt.EXECUTION_WINDOW)
    assert confirmed(taken, provider, record("T-1", "failed")) == Status.FAILED


def test_a_candidate_that_succeeds_closes_the_operation(taken: Operation, provider: StubProvider) -> None:
    assert confirmed(taken, provider, record("T-1")) == Status.SUCCEEDED


def test_the_failure_of_a_named_transaction_closes_at_once(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    shows(provider)
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-1"}}')
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    assert confirmed(operation, provider, record("T-1", "failed"), record("T-2")) == Status.FAILED


def test_a_second_candidate_sends_it_to_review(
    taken: Operation, provider: StubProvider, preparer: User, approver: User
) -> None:
    both = (record("T-1", "failed"), record("T-2"))
    assert confirmed(taken, provider, *both) == Status.PROCESSING
    let_pass(Attempt.EXECUTION_WINDOW + timedelta(minutes=1))
    shows(provider, *both)
    assert confirmed(taken, provider, *both) == Status.REVIEW
    assert resolved(taken, preparer, approver, "executed", "T-2").status == Status.SUCCEEDED
    assert Attempt.objects.get().provider_transaction_id == "T-2"


def test_a_resolution_cannot_choose_another_than_the_named_transaction(
    taken: Operation, provider: StubProvider, preparer: User
) -> None:
    attempt = Attempt.objects.get()
    Attempt.objects.update(id_received_at=attempt.started_at)
    let_pass(Attempt.EXECUTION_WINDOW + timedelta(minutes=1))
    Operation.objects.update(status=Status.REVIEW)
    shows(provider, record("T-1", "failed"), record("T-2"))
    form = resolution_form(taken, "executed", "T-2")
    assert "reported transaction T-1" in str(form.errors["transaction_id"])


@pytest.mark.parametrize(
    "named", [{}, {"transactionId": "T" * (TRANSACTION_ID_LENGTH + 1)}], ids=["listed", "named"]
)
def test_a_transaction_id_too_long_to_store_goes_to_review(
    provider: StubProvider, preparer: User, approver: User, named: dict[str, str]
) -> None:
    shows(provider)
    provider.answer_post = lambda: (200, json.dumps({"data": named}))
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    assert status_of(operation) == Status.PROCESSING
    assert confirmed(operation, provider, record("T" * (TRANSACTION_ID_LENGTH + 1))) == Status.PROCESSING
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.provider_transaction_id) == (Outcome.OPEN, None)
    assert "its ID is too long to store" in attempt.last_check
