"""An operation whose payment a later batch retries is not prepared again as well: its page names that batch."""

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.batches import checking, control, submission
from backoffice.operations.errors import RetriedInBatchError
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Operation, content_digest
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow.prepare import prepare_operation
from tests import factories
from tests.operations import steps
from tests.operations.batches import payouts
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

# Another amount to another account, so that only the copied operation shows that it is the same payment.
CORRECTED = {"currency": "NGN", "amount": "999.00", "receiver_username": "person.22", "memo": "week 47"}


@pytest.fixture
def failed(preparer: User, approver: User, provider: StubProvider) -> Operation:
    """The operation of the second row of a batch, which failed."""
    first, second = payouts.row_operations(payouts.applied(preparer, approver, payouts.transfers(2)))
    steps.put(first, Status.SENDING, Status.SUCCEEDED)
    return steps.put(second, Status.SENDING, Status.FAILED)


def retry(operation: Operation, person: User) -> Operation:
    """A pending batch of the rows that can be retried in the batch of this operation's row."""
    assert operation.prepared_from_id
    file = control.retry_rows(operation.prepared_from_id, actor=person, language="en")
    assert checking.check_file(file.pk, seconds=60)
    return submission.submit_file(file.pk, actor=person)


def shown(client: Client, operation: Operation) -> str:
    return client.get(operation.get_absolute_url()).content.decode()


def submit(client: Client, copied: Operation) -> Any:
    """Submit a corrected copy as the last step of the form does."""
    pk, kind = uuid4(), copied.kind
    content = corrected(copied)
    address = f"/operations/prepare/{kind}/?copy={copied.pk}&submission={pk}"
    filled = {**CORRECTED, "submission": str(pk), "step": "prepare"}
    return client.post(address, {**filled, "digest": content_digest(pk, kind, content.stored())})


def corrected(copied: Operation) -> Payload:
    """Its content with the values of CORRECTED."""
    content: Payload = read_content(copied)[1]
    return content.model_copy(update={**CORRECTED, "amount": Decimal(CORRECTED["amount"])})


def copies(operation: Operation) -> int:
    return Operation.objects.filter(prepared_from=operation).count()


def is_offered(page: str) -> bool:
    return "Prepare again" in page


def test_the_page_links_the_batch_that_retries_it_and_then_the_operation_of_that_row(
    as_preparer: Client, preparer: User, approver: User, failed: Operation
) -> None:
    assert is_offered(shown(as_preparer, failed))
    batch = retry(failed, preparer)
    page = shown(as_preparer, failed)
    assert not is_offered(page)
    assert "prepare it again" not in page
    assert f'retried as <a href="{batch.get_absolute_url()}">{batch.reference}</a>' in page
    payouts.created(payouts.approve(batch, approver))
    [again] = payouts.row_operations(batch)
    assert f'retried as <a href="{again.get_absolute_url()}">{again.reference}</a>' in shown(
        as_preparer, failed
    )
    steps.put(again, Status.SENDING, Status.FAILED)
    assert [is_offered(shown(as_preparer, one)) for one in (failed, again)] == [False, True]


def test_its_form_is_not_opened(as_preparer: Client, preparer: User, failed: Operation) -> None:
    batch = retry(failed, preparer)
    answer = as_preparer.get(f"/operations/prepare/transfer/?copy={failed.pk}", follow=True)
    assert answer.redirect_chain[-1][0] == failed.get_absolute_url()
    assert f"already retried as {batch.reference}. Nothing was prepared." in answer.content.decode()


@pytest.mark.parametrize("step", ["", "prepare"])
def test_a_form_that_was_open_is_refused_with_the_batch(
    as_preparer: Client, preparer: User, failed: Operation, step: str
) -> None:
    batch = retry(failed, preparer)
    if step:
        answer = submit(as_preparer, failed)
    else:
        answer = as_preparer.post(f"/operations/prepare/transfer/?copy={failed.pk}", CORRECTED)
    assert answer.status_code == 422
    html = answer.content.decode()
    assert f"already retried as {batch.reference}. Nothing was prepared." in html
    assert f'<a href="{batch.get_absolute_url()}">View operation</a>' in html
    assert copies(failed) == 0


def test_a_batch_that_retries_it_after_the_review_refuses_the_copy(preparer: User, failed: Operation) -> None:
    """Under the lock that the batch takes alone, so that the two cannot both be prepared at the same time."""
    batch = retry(failed, preparer)
    content = corrected(failed)
    with pytest.raises(RetriedInBatchError) as refused:
        prepare_operation(uuid4(), actor=preparer, kind="transfer", payload=content, prepared_from=failed.pk)
    assert (refused.value.duplicate_id, copies(failed)) == (batch.pk, 0)


def test_a_copy_that_failed_too_is_not_copied_once_its_row_is_retried(
    as_preparer: Client, preparer: User, failed: Operation
) -> None:
    content = read_content(failed)[1]
    copy = prepare_operation(
        uuid4(), actor=preparer, kind="transfer", payload=content, prepared_from=failed.pk
    )
    approvals.cancel_operation(copy.pk, actor=preparer)
    assert is_offered(shown(as_preparer, copy))
    batch = retry(failed, preparer)
    page = shown(as_preparer, copy)
    assert (is_offered(page), f"{batch.reference}</a>" in page) == (False, True)


def test_the_equal_operation_of_a_row_is_not_copied_once_the_row_is_retried(
    as_preparer: Client, preparer: User, approver: User, provider: StubProvider
) -> None:
    batch = payouts.prepared(preparer, [f"{payouts.transfers(1)[0]}Bonus", *payouts.transfers(1, first=2)])
    row = batch.rows.get(number=2)
    content = read_content(Operation(kind=row.kind, payload=row.payload))[1]
    equal = factories.prepared_of_kind(row.kind, content, preparer)
    payouts.created(payouts.approve(batch, approver))
    approvals.cancel_operation(equal.pk, actor=preparer)
    assert is_offered(shown(as_preparer, equal))
    file = control.retry_rows(batch.pk, actor=preparer, language="en")
    assert checking.check_file(file.pk, seconds=60)
    again = submission.submit_file(file.pk, actor=preparer)
    page = shown(as_preparer, equal)
    assert (is_offered(page), f"{again.reference}</a>" in page) == (False, True)


def test_a_retry_that_was_not_approved_lets_it_be_prepared_again(
    as_preparer: Client, preparer: User, failed: Operation
) -> None:
    approvals.cancel_operation(retry(failed, preparer).pk, actor=preparer)
    assert is_offered(shown(as_preparer, failed))
    content = read_content(failed)[1]
    prepare_operation(uuid4(), actor=preparer, kind="transfer", payload=content, prepared_from=failed.pk)
    assert copies(failed) == 1
