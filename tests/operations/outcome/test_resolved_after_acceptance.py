"""What the provider accepted without naming a transaction, and no check can match: people resolve it later."""

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from tests import factories
from tests.operations.provider_list import shows
from tests.operations.steps import let_pass, reloaded, show, text_of
from tests.operations.unknown_outcomes import proposed, record, resolution_form, resolved
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
DESK = "/reconciliation/unknown/"


@pytest.fixture
def accepted(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """Accepted without a name, with two transactions in the list that could be it: the balance is held."""
    shows(provider)
    provider.answer_post = lambda: (200, '{"data": {}}')
    operation = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(operation.pk)
    shows(provider, record("T-7"), record("T-8"))
    return confirmation.confirm_operation(operation.pk)


def test_an_accepted_operation_is_resolved_only_after_the_execution_deadline(
    accepted: Operation, preparer: User, approver: User
) -> None:
    assert accepted.status == Status.PROCESSING
    assert "no unknown outcome" in resolution_form(accepted, "executed", "T-7").errors["__all__"][0]
    let_pass(Attempt.EXECUTION_WINDOW)
    assert resolved(accepted, preparer, approver, "executed", "T-7").status == Status.SUCCEEDED
    assert not Attempt.objects.unmatched("NGN").exists()


def test_both_pages_offer_the_resolution_after_the_deadline(accepted: Operation, as_preparer: Client) -> None:
    settle = f"/operations/prepare/resolution/?operation={accepted.pk}"
    assert settle not in text_of(show(as_preparer, accepted)) + text_of(as_preparer.get(DESK))
    assert "View evidence" not in text_of(show(as_preparer, accepted))
    let_pass(Attempt.EXECUTION_WINDOW)
    assert settle in text_of(as_preparer.get(DESK))
    assert "View evidence and resolve" in text_of(show(as_preparer, accepted))


def test_it_can_be_resolved_while_the_provider_stays_unreadable(
    provider: StubProvider, accepted: Operation, preparer: User, approver: User
) -> None:
    let_pass(Attempt.EXECUTION_WINDOW)
    provider.records = '"no list at all"'
    assert confirmation.confirm_operation(accepted.pk).status == Status.PROCESSING
    assert resolved(accepted, preparer, approver, "not_executed").status == Status.FAILED


def test_one_with_a_known_transaction_cannot_be_resolved(
    accepted: Operation, preparer: User, approver: User
) -> None:
    """Status checks follow it by its id, even if it was named after the proposal."""
    let_pass(Attempt.EXECUTION_WINDOW)
    resolution = proposed(accepted, preparer, "not_executed")
    Attempt.objects.update(provider_transaction_id="T-7")
    assert "no unknown outcome" in resolution_form(accepted, "executed", "T-7").errors["__all__"][0]
    with pytest.raises(errors.CannotResolveError, match="is already “Processing”"):
        factories.approve(resolution, approver)
    assert reloaded(accepted).status == Status.PROCESSING
