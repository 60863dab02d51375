"""The sandbox delivers to the receiver over real HTTP: honest, late, often, out of order and forged."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import requests
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.operations.delivery import send
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from backoffice.webhooks.deliveries import deliveries_with_transaction
from backoffice.webhooks.models import Delivery
from backoffice.webhooks.processing import process_due_deliveries
from tests import factories
from tests.sandbox.webhook_receiver import eventually, in_state, point_to, tried
from tests.sandbox_process import SandboxProcess
from tests.webhooks.conftest import UseKeys
from tests.webhooks.steps import ADDRESS, SECRET

pytestmark = pytest.mark.django_db(transaction=True)


def pems(provider: SandboxProcess) -> list[str]:
    """The provider's public keys, as it would give them to a merchant."""
    answer = requests.get(f"{provider.control}/webhooks/keys", timeout=30).json()
    return [str(key["pem"]) for key in answer["keys"]]


@pytest.fixture
def provider(
    sandbox: SandboxProcess, settings: Settings, use_keys: UseKeys, live_server: Any
) -> Iterator[SandboxProcess]:
    """The provider, which knows our address, and whose withdrawals settle on request.

    It delivers in its own time, and repeats what was refused: nothing may be on its way when the test is over, since it
    would be kept among the rows of the next one. It delivers one after the other.
    """
    settings.WEBHOOK_SECRET = SECRET
    use_keys(*pems(sandbox))
    point_to(sandbox, f"{live_server.url}{ADDRESS}")
    sandbox.options(settle_after=None)
    yield sandbox
    settings.WEBHOOK_SECRET = ""
    sandbox.reset()
    point_to(sandbox, f"{live_server.url}/hooks/of-nobody/")
    sandbox.deposit("NGN", "1")
    tried(sandbox)
    sandbox.reset()


@pytest.fixture
def processing(provider: SandboxProcess, preparer: User, approver: User) -> Operation:
    """A withdrawal that was sent and accepted, and is not due for a check for hours."""
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver, provider.totp())
    send.send_operation(operation.pk)
    confirmation.confirm_operation(operation.pk)
    taken(1)
    Delivery.objects.all().delete()
    Attempt.objects.update(next_check_at=clock.now() + timedelta(hours=5))
    operation.refresh_from_db()
    assert operation.status == Status.PROCESSING
    return operation


def taken(count: int) -> list[Delivery]:
    """What has arrived, the oldest first, once there is so much of it."""
    eventually(lambda: Delivery.objects.count() >= count)
    return list(Delivery.objects.order_by("pk"))


def state() -> tuple[object, ...]:
    """All that could have been moved."""
    return (
        list(Operation.objects.order_by("pk").values()),
        list(Attempt.objects.order_by("pk").values()),
        Entry.objects.count(),
    )


def test_a_valid_delivery_closes_the_operation_before_its_scheduled_check(
    processing: Operation, provider: SandboxProcess
) -> None:
    provider.settle()
    (delivery,) = taken(1)
    assert (delivery.verdict, delivery.transaction_id) == (
        "valid",
        Attempt.objects.get().provider_transaction_id,
    )
    assert process_due_deliveries() == 1
    processing.refresh_from_db()
    assert processing.status == Status.SUCCEEDED
    in_state(provider, "delivered", len(provider.deliveries()))


def test_an_unknown_outcome_is_closed_when_its_delivery_arrives(
    provider: SandboxProcess, preparer: User, approver: User
) -> None:
    provider.fault("balances.withdraw", "drop", when="after_execution")
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver, provider.totp())
    send.send_operation(operation.pk)
    operation.refresh_from_db()
    assert operation.status == Status.UNKNOWN
    Attempt.objects.update(
        started_at=clock.now() - timedelta(minutes=5), next_check_at=clock.now() + timedelta(hours=5)
    )
    provider.settle()
    taken(2)
    assert process_due_deliveries() >= 1
    operation.refresh_from_db()
    assert operation.status == Status.SUCCEEDED


def test_a_hundred_identical_deliveries_are_one_row_and_one_read(
    processing: Operation, provider: SandboxProcess
) -> None:
    provider.webhook_fault("duplicate", copies=99)
    provider.settle()
    eventually(lambda: Delivery.objects.filter(received_count=100).exists())
    assert Delivery.objects.count() == 1
    assert process_due_deliveries() == 1
    assert not Delivery.objects.filter(check_due_at__isnull=False).exists()


def test_deliveries_out_of_order_give_the_same_result(
    processing: Operation, provider: SandboxProcess
) -> None:
    provider.webhook_fault("reorder", deliveries=3)
    provider.deposit("NGN", "1")
    provider.settle()
    provider.deposit("NGN", "2")
    amounts = [delivery.transaction_id for delivery in taken(3)]
    assert len(set(amounts)) == 3
    process_due_deliveries()
    processing.refresh_from_db()
    assert processing.status == Status.SUCCEEDED


def test_states_of_a_transaction_that_arrive_in_reverse_are_marked(
    provider: SandboxProcess, preparer: User, approver: User
) -> None:
    provider.webhook_fault("reorder", deliveries=2)
    operation = factories.approved(preparer, approver)
    factories.release(operation, approver, provider.totp())
    send.send_operation(operation.pk)
    provider.settle()
    taken(2)
    settled, accepted = deliveries_with_transaction().order_by("pk")
    assert settled.transaction_id == accepted.transaction_id
    assert [vars(one)["is_out_of_order"] for one in (settled, accepted)] == [False, True]


@pytest.mark.parametrize(
    ("forgery", "verdict"),
    [
        ("wrong_signature", "invalid"),
        ("stranger", "invalid"),
        ("unsigned", "unsigned"),
        ("malformed", "malformed"),
        ("tampered_data", "invalid"),
    ],
)
def test_a_forged_delivery_is_stored_with_its_verdict_and_changes_nothing(
    processing: Operation, provider: SandboxProcess, forgery: str, verdict: str
) -> None:
    before = state()
    provider.webhook_fault("forge", forgery=forgery)
    provider.settle()
    (delivery,) = taken(1)
    assert (delivery.verdict, delivery.problem != "", delivery.check_due_at) == (verdict, True, None)
    assert process_due_deliveries() == 0
    assert state() == before


def test_a_changed_event_name_only_triggers_a_status_check(
    processing: Operation, provider: SandboxProcess
) -> None:
    """The signature does not cover it, and nothing goes by it: the provider is read."""
    provider.webhook_fault("forge", forgery="tampered_event")
    provider.deposit("NGN", "1")
    (delivery,) = taken(1)
    assert (delivery.verdict, delivery.event) == ("valid", "Payment updated")
    before = Operation.objects.values().get()
    process_due_deliveries()
    assert Operation.objects.values().get() == before


def test_both_keys_are_valid_after_a_key_change_until_the_old_one_is_removed(
    processing: Operation, provider: SandboxProcess, use_keys: UseKeys
) -> None:
    requests.post(f"{provider.control}/webhooks/keys", timeout=30).raise_for_status()
    new, old = pems(provider)
    use_keys(new, old)
    for amount in ("1", "2"):
        provider.deposit("NGN", amount)
    assert {delivery.verdict for delivery in taken(2)} == {"valid"}
    assert Delivery.objects.values("key").distinct().count() == 2
    use_keys(new)
    for amount in ("3", "4"):
        provider.deposit("NGN", amount)
    assert sorted(delivery.verdict for delivery in taken(4)[2:]) == ["invalid", "valid"]
