"""At most one debit per operation, whatever is clicked, delivered or run at once."""

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest
from django.db import connection, transaction
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.ledger.accounts import resolve_account_holder
from backoffice.operations.delivery import release, send
from backoffice.operations.errors import OperationError
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow.prepare import prepare_operation
from tests import factories
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(number: int, act: Callable[[], object]) -> list[str]:
    """Run it in so many threads released by one barrier; "done", or the name of the refusal, for each."""
    barrier, results = threading.Barrier(number), list[str]()

    def run() -> None:
        barrier.wait(120)
        try:
            act()
            results.append("done")
        except OperationError as exc:
            results.append(type(exc).__name__)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results


@pytest.fixture
def approved(sandbox: SandboxProcess, preparer: User, approver: User) -> Operation:
    holder = resolve_account_holder("0123456789", "044").account_name
    return factories.approved(preparer, approver, account_name=holder, typed_name=holder)


def test_fifty_concurrent_releases_make_one_debit(
    sandbox: SandboxProcess, approved: Operation, approver: User
) -> None:
    otp = SecretStr(sandbox.totp())

    def release_and_send() -> None:
        release.release_operation(
            approved.pk, actor=approver, digest=approved.digest, second_factor_at=timezone.now(), otp=otp
        )
        send.send_operation(approved.pk)

    results = at_once(50, release_and_send)
    assert results.count("done") == 1
    # As the sweeper does, if the winner could not claim it within five seconds.
    send.send_operation(approved.pk)
    assert_one_debit(sandbox, approved)


def test_a_task_delivered_a_hundred_times_makes_one_debit(
    sandbox: SandboxProcess, approved: Operation, approver: User
) -> None:
    sandbox.options(token_reuse=True)
    release.release_operation(
        approved.pk,
        actor=approver,
        digest=approved.digest,
        second_factor_at=timezone.now(),
        otp=SecretStr(sandbox.totp()),
    )

    def deliver_five_times() -> None:
        for _ in range(5):
            send.send_operation(approved.pk)

    results = at_once(20, deliver_five_times)
    assert results.count("done") == 20
    assert_one_debit(sandbox, approved)


def test_two_concurrent_approvals_by_one_person_count_once(preparer: User, approver: User) -> None:
    operation = factories.prepared(preparer, amount=Decimal("20000000.00"))

    def approve() -> None:
        approvals.approve_operation(
            operation.pk, actor=approver, digest=operation.digest, second_factor_at=timezone.now()
        )

    assert sorted(at_once(8, approve)) == ["AlreadyApprovedError"] * 7 + ["done"]
    assert operation.approvals.count() == 1


def test_ten_concurrent_submissions_of_a_form_make_one_operation(preparer: User) -> None:
    operation_id = uuid.uuid4()

    def prepare() -> None:
        prepare_operation(operation_id, actor=preparer, kind="withdrawal", payload=factories.payload())

    assert set(at_once(10, prepare)) == {"done"}
    assert Operation.objects.count() == 1


def assert_one_debit(sandbox: SandboxProcess, operation: Operation) -> None:
    confirmation.confirm_operation(operation.pk)
    [withdrawal] = sandbox.ledger()["withdrawals"]
    assert Decimal(withdrawal["amount"]) == operation.amount
    assert sandbox.ledger()["differences"] == []
    assert Attempt.objects.count() == 1
    assert Operation.objects.get(pk=operation.pk).status == Status.SUCCEEDED


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no row locks")
def test_a_locked_operation_does_not_block_what_refers_to_it(approved: Operation) -> None:
    """Else two senders can deadlock: one locked the operation and waits for the audit log, which the other has."""

    def refer() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '2s'")
                incidents.raise_incident(
                    approved, kind=IncidentKind.EXECUTED_DESPITE_PROOF, evidence={"attempt": 1}
                )
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        Operation.objects.get_locked(approved.pk)
        pool.submit(refer).result()
    assert approved.incidents.count() == 1
