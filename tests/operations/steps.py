"""Actions on the page of an operation."""

import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import AuthenticatorDevice, User
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import CLOSED, Outcome, Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES


def show(client: Client, operation: Operation, part: str = "", **query: str) -> Any:
    return client.get(f"/operations/{operation.pk}/{part}", query)


def do(client: Client, operation: Operation, action: str, **values: str) -> Any:
    return client.post(f"/operations/{operation.pk}/{action}/", {"digest": operation.digest, **values})


def text_of(answer: Any) -> str:
    return str(answer.content.decode())


def status_of(operation: Operation) -> str:
    return Operation.objects.get(pk=operation.pk).status


def reloaded(operation: Operation) -> Operation:
    return Operation.objects.get(pk=operation.pk)


def put(operation: Operation, *statuses: str) -> Operation:
    """Move the row along the table of states, past the services."""
    for status in statuses:
        closed = {"closed_at": timezone.now()} if status in CLOSED else {}
        Operation.objects.filter(pk=operation.pk).update(status=status, **closed)
    return Operation.objects.get(pk=operation.pk)


def charge(kind: str, preparer: User, fee: str | None, *, days_ago: int = 0, **changes: Any) -> Operation:
    """An operation of this kind succeeded so many days ago, and the provider charged this fee."""
    content = SAMPLES[kind].model_copy(update={"duplicate_reason": str(uuid.uuid4()), **changes})
    operation = factories.prepared_of_kind(kind, content, preparer)
    sent = timezone.now() - timedelta(days=days_ago)
    factories.attempt(
        operation,
        started_at=sent,
        closed_at=sent,
        outcome=Outcome.SUCCEEDED,
        fee=None if fee is None else Decimal(fee),
    )
    return put(operation, Status.APPROVED, Status.SENDING, Status.SUCCEEDED)


def let_second_factor_age(client: Client) -> None:
    session: Any = client.session
    session["second_factor_at"] = (timezone.now() - timedelta(minutes=6)).isoformat()
    session.save()


def code_of(user: User) -> str:
    return f"{AuthenticatorDevice.objects.get(user=user).totp().token():06d}"


def let_pass(passed: timedelta) -> None:
    """Let so much time have passed since every attempt began, by our clock."""
    for attempt in Attempt.objects.all():
        Attempt.objects.filter(pk=attempt.pk).update(started_at=attempt.started_at - passed)


def unreadable(preparer: User, **changes: Any) -> Operation:
    """A pending operation as an earlier or a later release may have stored it: this one cannot read its content."""
    operation = factories.prepared(preparer)
    operation.pk, operation.reference, operation.payload = uuid.uuid4(), "X-UNREAD", {"lottery": "ticket"}
    operation.content_key = operation.pk.hex
    for name, value in changes.items():
        setattr(operation, name, value)
    operation.save(force_insert=True)
    return operation


@contextmanager
def before_the_log(act: Callable[[], object], *, after: str = "") -> Iterator[None]:
    """Let another connection commit this just before the block first locks the audit log, after such a statement.

    For PostgreSQL only: SQLite has one writer at a time.
    """
    read = [] if after else [""]

    def acted() -> None:
        with closing(connection):
            act()

    def execute_after(execute: Callable[..., Any], sql: str, *values: Any) -> Any:
        if read == [""] and "FROM audit_chainhead" in sql and "FOR UPDATE" in sql:
            read.append("done")
            with ThreadPoolExecutor(1) as thread:
                thread.submit(acted).result(60)
        if not read and after in sql:
            read.append("")
        return execute(sql, *values)

    with connection.execute_wrapper(execute_after):
        yield
    assert read[-1] == "done"
