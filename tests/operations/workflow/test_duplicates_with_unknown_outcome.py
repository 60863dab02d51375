"""Identical content is not prepared again while its outcome is unknown."""

import pytest
from django.db import connection
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.kinds.samples import SAMPLES
from tests.operations.provider_list import shows
from tests.operations.steps import text_of
from tests.operations.unknown_outcomes import in_review, record, resolved
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_next_operation_of_the_balance_is_sent_once_settled(
    review: Operation, preparer: User, approver: User
) -> None:
    assert Attempt.objects.unmatched("NGN").exists()
    resolved(review, preparer, approver, "not_executed")
    assert not Attempt.objects.unmatched("NGN").exists()


# The same again


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.REVIEW, Status.SENDING])
def test_identical_content_is_refused_during_an_unknown_outcome(
    unknown: Operation, preparer: User, status: str
) -> None:
    if status == Status.REVIEW:
        in_review(unknown)
    elif status == Status.SENDING:
        put_past_the_rules(unknown, status)
    with pytest.raises(
        errors.DuplicateUnknownError, match=f"{unknown.reference} with the same content was sent"
    ):
        factories.prepared(preparer, memo="another memo")
    assert Operation.objects.count() == 1


def test_the_form_links_to_the_identical_unknown_outcome(
    provider: StubProvider, as_preparer: Client, preparer: User, approver: User
) -> None:
    provider.answer_post = lambda: (502, "bad gateway")
    pending = factories.prepared_of_kind("transfer", SAMPLES["transfer"], preparer)
    operation = factories.release(factories.approve(pending, approver), approver)
    send.send_operation(operation.pk)
    form = {"receiver_username": "ngozi.eze", "currency": "NGN", "amount": "60000.00", "memo": "week 47"}
    answer = as_preparer.post("/operations/prepare/transfer/", {**form, "step": "review"})
    assert answer.status_code == 422
    assert f'<a href="/operations/{operation.pk}/">View operation</a>' in text_of(answer)


def test_another_amount_or_recipient_is_not_the_same(unknown: Operation, preparer: User) -> None:
    factories.prepared(preparer, amount="250000.01")
    factories.prepared(preparer, account_number="9876543210")
    assert Operation.objects.count() == 3


def test_after_settlement_a_new_operation_names_the_previous_one(
    review: Operation, preparer: User, approver: User, provider: StubProvider
) -> None:
    resolved(review, preparer, approver, "not_executed")
    anew = factories.prepared(preparer)
    assert anew.prepared_from == review
    approvals.cancel_operation(anew.pk, actor=preparer)
    again = factories.approved(preparer, approver)
    assert again.prepared_from == review
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-9"}}')
    send.send_operation(factories.release(again, approver).pk)
    assert factories.prepared(preparer).prepared_from is None


def test_an_executed_payment_is_not_named_by_a_further_one(
    provider: StubProvider, unknown: Operation, preparer: User, approver: User
) -> None:
    shows(provider, record("T-7"))
    resolved(unknown, preparer, approver, "executed", "T-7")
    assert factories.prepared(preparer).prepared_from is None


def put_past_the_rules(operation: Operation, status: str) -> None:
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(status=status)
