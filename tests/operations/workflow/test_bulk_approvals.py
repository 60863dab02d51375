"""Deciding several operations by the service: at the same moment, and with a database that fails for one."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations.models.operations import Approval
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow.approvals import BulkOutcome, BulkResult, SelectedOperation
from tests import factories
from tests.operations.steps import status_of


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("decide", "typed", "action", "status"),
    [
        (approvals.approve_operations, {}, Action.OPERATION_APPROVED, "approved"),
        (approvals.reject_operations, {"reason": "Not ours"}, Action.OPERATION_REJECTED, "rejected"),
    ],
)
def test_concurrent_submissions_decide_each_operation_once(
    preparer: User,
    approver: User,
    decide: Callable[..., list[BulkResult]],
    typed: dict[str, str],
    action: Action,
    status: str,
) -> None:
    operations = [factories.prepared_to_another_account(preparer) for _ in range(5)]
    choices = [SelectedOperation(operation, operation.digest) for operation in operations]
    barrier, lines = threading.Barrier(3), list[BulkResult]()

    def run() -> None:
        barrier.wait(120)
        lines.extend(decide(choices, actor=approver, second_factor_at=timezone.now(), **typed))
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert Counter(line.result for line in lines) == {BulkOutcome.DONE: 5, BulkOutcome.DONE_BEFORE: 10}
    assert Entry.objects.filter(action=action).count() == 5
    assert {status_of(operation) for operation in operations} == {status}


@pytest.mark.django_db
def test_a_database_error_for_one_is_reported_and_does_not_stop_the_others(
    preparer: User, approver: User
) -> None:
    first, second, third = [factories.prepared_to_another_account(preparer) for _ in range(3)]

    written = {second.pk, second.pk.hex}  # as PostgreSQL and SQLite are configured

    def fail_for_the_second(execute: Callable[..., Any], sql: str, params: Any, *rest: Any) -> Any:
        if sql.startswith('INSERT INTO "operations_approval"') and written & set(params):
            raise OperationalError("disk I/O error")
        return execute(sql, params, *rest)

    with connection.execute_wrapper(fail_for_the_second):
        lines = approvals.approve_operations(
            [SelectedOperation(operation, operation.digest) for operation in (first, second, third)],
            actor=approver,
            second_factor_at=timezone.now(),
        )
    assert [line.result for line in lines] == [BulkOutcome.DONE, BulkOutcome.REFUSED, BulkOutcome.DONE]
    assert "Check the operation before you try again" in lines[1].text
    assert [status_of(one) for one in (first, second, third)] == ["approved", "pending", "approved"]
    assert not Approval.objects.filter(operation=second).exists()
