"""The oracle detects every possible difference between our record and the provider's ledger."""

import pytest
import requests

from backoffice.accounts.models import User
from backoffice.ledger.accounts import resolve_account_holder
from backoffice.operations.delivery.send import send_operation
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.oracle import assert_accounted_for, disagreements
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sent(sandbox: SandboxProcess, preparer: User, approver: User) -> Operation:
    """A withdrawal that the provider accepted and executed."""
    sandbox.options(token_reuse=True)
    return send(sandbox, preparer, approver)


def send(sandbox: SandboxProcess, preparer: User, approver: User) -> Operation:
    holder = resolve_account_holder("0123456789", "044").account_name
    operation = factories.approved(preparer, approver, account_name=holder, typed_name=holder)
    factories.release(operation, approver, sandbox.totp())
    send_operation(operation.pk)
    return confirmation.confirm_operation(operation.pk)


def withdraw_elsewhere(sandbox: SandboxProcess, operation: Operation) -> str:
    """The same withdrawal through another channel; its transaction id."""
    payload = operation.payload
    body = {
        "currency": payload["currency"],
        "amount": payload["amount"],
        "accountNumber": payload["account_number"],
        "accountName": payload["account_name"],
        "bank": payload["bank"],
        "bankCode": payload["bank_code"],
        "otpType": "totp",
        "token": sandbox.totp(),
    }
    answer = requests.post(f"{sandbox.url}/balance/withdraw", json=body, headers=sandbox.headers, timeout=30)
    answer.raise_for_status()
    return str(sandbox.ledger()["orders"][-1]["transactionId"])


def found(sandbox: SandboxProcess) -> str:
    return "\n".join(disagreements(sandbox.ledger()))


@pytest.mark.parametrize("kind", ["withdrawal", "conversion", "transfer", "wallet_transfer", "payment"])
def test_an_operation_sent_once_is_accounted_for(
    kind: str, sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    if kind == "withdrawal":
        send(sandbox, preparer, approver)
    else:
        operation = factories.approve(factories.prepared_of_kind(kind, SAMPLES[kind], preparer), approver)
        factories.release(operation, approver, sandbox.totp())
        send_operation(operation.pk)
        confirmation.confirm_operation(operation.pk)
    assert Operation.objects.get().status == "succeeded"
    assert_accounted_for(sandbox)


def test_a_double_debit_is_reported(sandbox: SandboxProcess, sent: Operation) -> None:
    twin = withdraw_elsewhere(sandbox, sent)
    assert f"The debit {twin}" in found(sandbox)
    with pytest.raises(AssertionError, match="belongs to no operation"):
        assert_accounted_for(sandbox)
    assert_accounted_for(sandbox, by_others=[twin])


def test_a_claimed_foreign_debit_is_reported(sandbox: SandboxProcess, sent: Operation) -> None:
    [named] = sent.attempts.values_list("provider_transaction_id", flat=True)
    with pytest.raises(AssertionError, match="somebody else"):
        assert_accounted_for(sandbox, by_others=[named or ""])


def test_an_unapproved_amount_is_reported(sandbox: SandboxProcess, sent: Operation) -> None:
    ledger = sandbox.ledger()
    ledger["orders"][0]["amount"] = "250000.01"
    assert "was approved as" in "\n".join(disagreements(ledger))


def test_a_debit_of_a_failed_operation_is_reported(sandbox: SandboxProcess, sent: Operation) -> None:
    Attempt.objects.update(outcome=Outcome.REJECTED, provider_transaction_id=None)
    shown = found(sandbox)
    assert "belongs to no operation" in shown
    assert "names no transaction" in shown


def test_a_success_without_a_debit_is_reported(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    sandbox.options(settle_after=None)
    operation = send(sandbox, preparer, approver)
    assert operation.status == "processing"
    assert_accounted_for(sandbox)
    sandbox.settle("failed")
    Operation.objects.update(status="succeeded", closed_at=operation.prepared_at)
    assert "failed at the service" in found(sandbox)


def test_an_unresolved_lost_response_is_accounted_for_once(
    sandbox: SandboxProcess, preparer: User, approver: User
) -> None:
    sandbox.fault("balances.withdraw", "drop", when="after_execution")
    sandbox.options(token_reuse=True)
    operation = send(sandbox, preparer, approver)
    assert operation.status == "unknown"
    assert_accounted_for(sandbox)
    withdraw_elsewhere(sandbox, operation)
    assert "belongs to no operation" in found(sandbox)
