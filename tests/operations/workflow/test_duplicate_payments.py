"""The same amount for the same recipient again: what counts as the same, how long, and two people at once."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Status
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import put
from tests.stub_provider import StubProvider
from tests.tools.test_brokers import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
A_DAY = timedelta(hours=24)
A_MOMENT = timedelta(minutes=5)


def again(preparer: User) -> Operation:
    """The same withdrawal once more, with another memo and no reason."""
    return factories.prepared(preparer, duplicate_reason="", memo="once more")


def age(operation: Operation, *, prepared: timedelta) -> None:
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(prepared_at=timezone.now() - prepared)


def test_what_still_waits_counts_however_long_ago_it_was_prepared(preparer: User) -> None:
    age(factories.prepared(preparer, duplicate_reason=""), prepared=timedelta(hours=71))
    with pytest.raises(errors.DuplicatePaymentError):
        again(preparer)


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.REVIEW])
def test_unknown_outcomes_count_as_repeated_at_any_age(
    provider: StubProvider, released: Operation, preparer: User, status: Status
) -> None:
    provider.answer_post = lambda: (500, "")
    send.send_operation(released.pk)
    put(released, *([] if status == Status.UNKNOWN else [status]))
    Attempt.objects.update(started_at=timezone.now() - 3 * A_DAY)
    with pytest.raises(errors.DuplicateUnknownError):
        again(preparer)


@pytest.mark.parametrize(
    ("sent", "counts"),
    [(A_MOMENT, True), (A_DAY - A_MOMENT, True), (A_DAY + A_MOMENT, False)],
    ids=["just now", "almost a day ago", "more than a day ago"],
)
@pytest.mark.parametrize("prepared", [A_MOMENT, 3 * A_DAY], ids=["prepared lately", "prepared long ago"])
def test_executed_payments_count_as_repeated_for_a_day_after_sending(
    provider: StubProvider,
    released: Operation,
    preparer: User,
    sent: timedelta,
    prepared: timedelta,
    counts: bool,
) -> None:
    send.send_operation(released.pk)
    Operation.objects.filter(pk=released.pk).update(status=Status.SUCCEEDED, closed_at=timezone.now())
    Attempt.objects.update(started_at=timezone.now() - sent)
    age(released, prepared=prepared)
    if counts:
        with pytest.raises(errors.DuplicatePaymentError):
            again(preparer)
    else:
        assert again(preparer).status == Status.PENDING


def test_the_second_of_two_concurrent_payments_needs_a_reason(preparer: User) -> None:
    """The first has stored it and not committed it yet when the second one asks what there is."""
    colleague, outcome = factories.person("Kemi Balogun", Role.PREPARER), list[str]()
    asks = threading.Event()

    def prepare_too() -> None:
        asks.set()
        try:
            outcome.append(again(colleague).status)
        except errors.OperationError as exc:
            outcome.append(type(exc).__name__)
        finally:
            connection.close()

    second = threading.Thread(target=prepare_too)
    with transaction.atomic():
        factories.prepared(preparer, duplicate_reason="")
        second.start()
        assert asks.wait(30)
        wait_until(lambda: bool(outcome) or somebody_waits())
    second.join(60)
    assert outcome == ["DuplicatePaymentError"]
    assert Operation.objects.count() == 1


def somebody_waits() -> bool:
    """Whether another connection waits for its turn. SQLite does not show it, and lets nobody in before the commit."""
    if connection.vendor == "sqlite":
        return True
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database "
            "WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
        )
        return cursor.fetchone() is not None


@pytest.mark.parametrize(
    ("kind", "member"), [("transfer", "receiver_username"), ("payment", "service_username")]
)
def test_usernames_compare_case_insensitively_and_are_sent_as_typed(
    preparer: User, kind: str, member: str
) -> None:
    to_a_user = {"payment_type": "profile"} if kind == "payment" else {}
    first = SAMPLES[kind].model_copy(update={**to_a_user, member: "ngozi.eze"})
    factories.prepared_of_kind(kind, first, preparer)
    second = first.model_copy(update={member: "Ngozi.Eze"})
    with pytest.raises(errors.DuplicatePaymentError):
        factories.prepared_of_kind(kind, second, preparer)
    another = {"reference": "INV-2"} if kind == "payment" else {}
    meant = second.model_copy(update={"duplicate_reason": "Second part", **another})
    assert factories.prepared_of_kind(kind, meant, preparer).payload[member] == "Ngozi.Eze"
