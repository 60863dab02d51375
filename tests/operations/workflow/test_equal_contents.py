"""One operation with the same content at a time until it is sent: what is being sent may return to approved."""

from importlib import import_module
from types import SimpleNamespace
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.management import CommandError
from django.db import IntegrityError, connection, transaction

from backoffice.accounts.models import User
from backoffice.operations import errors
from backoffice.operations.batches import creation
from backoffice.operations.delivery import send
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import BEFORE_SENDING, Status
from backoffice.operations.workflow import prepare
from tests import factories
from tests.operations.batches import payouts
from tests.operations.steps import put, reloaded
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db
_MIGRATION = import_module("backoffice.operations.migrations.0025_one_content_to_send")
BONUS = f"{payouts.transfers(1)[0]}Bonus"


@pytest.fixture
def batch(preparer: User) -> Operation:
    """A pending batch of two rows."""
    return payouts.prepared(preparer, [BONUS, *payouts.transfers(1, first=2)])


@pytest.fixture
def equal(batch: Operation, preparer: User, approver: User) -> Operation:
    """An approved operation with the content of its first row."""
    row = batch.rows.order_by("number")[0]
    content = read_content(Operation(kind=row.kind, payload=row.payload))[1]
    return factories.approve(factories.prepared_of_kind(row.kind, content, preparer), approver)


def test_a_row_equal_to_what_is_being_sent_becomes_no_second_operation(
    batch: Operation, equal: Operation, approver: User
) -> None:
    put(equal, Status.SENDING)
    payouts.created(payouts.approve(batch, approver))
    row = batch.rows.order_by("number")[0]
    assert (row.operation, row.duplicate_of) == (None, equal)
    assert len(payouts.row_operations(batch)) == 1


@pytest.mark.django_db(transaction=True)
def test_what_was_not_sent_returns_to_approved_beside_an_equal_row(
    provider: StubProvider, batch: Operation, equal: Operation, approver: User
) -> None:
    def refuse_the_code() -> tuple[int, str]:
        payouts.approve(batch, approver)
        creation.create_due()
        connection.close()  # of the thread that answers
        return 400, '{"success": false, "message": "Invalid 2FA token"}'

    provider.answer_post = refuse_the_code
    send.send_operation(factories.release(equal, approver).pk)
    assert len(provider.posts) == 1
    assert reloaded(batch).status == Status.SUCCEEDED
    assert reloaded(equal).status == Status.APPROVED
    assert not Release.objects.filter(operation=equal).exists()


def test_what_is_claimed_between_check_and_insert_is_named(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = factories.approved(preparer, approver, duplicate_reason="Bonus")
    check = prepare._check_not_duplicate

    def check_and_claim(*args: object) -> None:
        check(*args)  # type: ignore[arg-type]
        put(first, Status.SENDING)

    monkeypatch.setattr(prepare, "_check_not_duplicate", check_and_claim)
    with pytest.raises(errors.DuplicateUnknownError, match=first.reference):
        factories.prepared(preparer, duplicate_reason="Bonus")


@pytest.mark.parametrize("status", sorted(BEFORE_SENDING))
def test_the_database_has_no_equal_operation_beside_what_is_being_sent(
    preparer: User, approver: User, status: str
) -> None:
    first = put(factories.approved(preparer, approver), Status.SENDING)
    second = factories.prepared_to_another_account(preparer)
    second.pk, second.reference, second.content_key = uuid4(), "W-SECOND", first.content_key
    second.status = status
    with pytest.raises(IntegrityError), transaction.atomic():
        second.save(force_insert=True)
    put(first, Status.APPROVED)


def test_a_migration_names_the_equal_operations_that_it_rules_out(preparer: User, approver: User) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX operation_content_pending_once")
    sent, other = (factories.approved(preparer, approver) for _ in range(2))
    put(sent, Status.SENDING)
    check = _MIGRATION.check_no_pair
    check(apps, SimpleNamespace(connection=connection))
    third = factories.prepared_to_another_account(preparer)
    third.pk, third.reference, third.content_key = uuid4(), "W-THIRD", sent.content_key
    third.save(force_insert=True)
    with pytest.raises(CommandError, match="same content") as refused:
        check(apps, SimpleNamespace(connection=connection))
    message = str(refused.value)
    assert sent.reference in message
    assert "W-THIRD" in message
    assert other.reference not in message
    put(sent, Status.APPROVED, Status.SENDING, Status.FAILED)
    check(apps, SimpleNamespace(connection=connection))
