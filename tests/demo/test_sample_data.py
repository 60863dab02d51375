"""The demo's history: what is in progress ends as it would in life."""

from collections.abc import Callable

import pytest
from pydantic import SecretStr

from backoffice.demo.people import ensure_people
from backoffice.demo.sample_data import (
    SampleOperations,
    begin_reconciliation,
    make_sample_unknown_outcomes,
    new_sample_operations,
)
from backoffice.ledger.mirror import sync
from backoffice.ledger.models import Transaction
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.reconciliation import Comparison, ReconciliationResult
from backoffice.operations.outcome import confirmation
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.operations.states import Status
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)
AN_HOUR = 3600.0


@pytest.fixture
def history(sandbox: SandboxProcess) -> SampleOperations:
    """As `make demo` makes it: the provider settles at once, and accepts its code several times."""
    sandbox.options(token_reuse=True, settle_after=0)
    ensure_people()
    return new_sample_operations(lambda: SecretStr(sandbox.totp()))


def test_a_withdrawal_in_progress_succeeds_after_an_hour(
    sandbox: SandboxProcess, history: SampleOperations
) -> None:
    history.make_processing()
    operation = Operation.objects.get()
    assert operation.status == Status.PROCESSING
    sandbox.advance(AN_HOUR - 60)
    assert confirmation.confirm_operation(operation.pk).status == Status.PROCESSING
    sandbox.advance(120)
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED


def test_the_sample_history_of_the_provider_is_not_unrecognised(history: SampleOperations) -> None:
    """Though an operation of the demo is more than a day old."""
    begin_reconciliation()
    make_sample_unknown_outcomes(history)
    sync.load_all(lambda _progress: None)
    reconcile()
    assert Transaction.objects.exists()
    assert not Comparison.objects.filter(result=ReconciliationResult.UNRECOGNISED).exists()


def test_an_expired_operation_has_a_valid_seal(history: SampleOperations) -> None:
    history.make_expired()
    operation = Operation.objects.get()
    assert (operation.status, operation.is_genuine) == (Status.EXPIRED, True)


@pytest.mark.parametrize(
    ("make", "status"),
    [(SampleOperations.make_succeeded, Status.SUCCEEDED), (SampleOperations.make_failed, Status.FAILED)],
)
def test_what_has_ended_is_known_from_the_provider(
    history: SampleOperations, make: Callable[[SampleOperations], None], status: Status
) -> None:
    make(history)
    operation = Operation.objects.get()
    assert operation.status == status
    assert operation.attempts.get().provider_transaction_id
