"""Real workers, killed or frozen at every fault point, with every kind that moves money (faults 1 to 3)."""

import pytest

from backoffice.operations import jobs
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.states import Status
from tests.faults.harness.figures import FIGURES, compare_with_provider, records_of
from tests.faults.harness.operations import ONE_PER_BALANCE
from tests.faults.harness.stage import FaultStage, came_back, is_left_open, statuses
from tests.operations.steps import status_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.stack, pytest.mark.faults]

ONE_OF_EACH = pytest.mark.parametrize(
    "kinds", [pytest.param(ONE_PER_BALANCE, id="apart"), pytest.param(("conversion",), id="conversion")]
)
NOT_BEGUN = ("send.claimed", "send.before_request", "send.connected")
BEGUN = ("send.begun",)
LEFT = ("send.response_received", "send.recorded")
LOOKING = ("confirm.seen", "confirm.closed")
WHAT_A_LOOK_WRITES = (
    "outcome",
    "closed_at",
    "provider_transaction_id",
    "checks",
    "check_result",
    "check_parameters",
    "next_check_at",
)


@ONE_OF_EACH
def test_a_sender_killed_before_the_claim_is_replaced_and_sends_once(
    stage: FaultStage, kinds: tuple[str, ...]
) -> None:
    operations = stage.released(*kinds)
    for operation in operations:
        stage.strike("send.before_claim", operation)
    assert statuses(operations) == {Status.APPROVED}
    assert stage.provider.ledger()["orders"] == []
    stage.sweep_until_settled(operations)
    assert statuses(operations) == {Status.SUCCEEDED}
    compare_with_provider(stage.provider, "killed at send.before_claim")


@ONE_OF_EACH
@pytest.mark.parametrize("point", NOT_BEGUN)
def test_a_sender_killed_before_its_request_begins_leaves_it_approved_and_unsent(
    stage: FaultStage, kinds: tuple[str, ...], point: str
) -> None:
    operations = stage.released(*kinds)
    for operation in operations:
        stage.strike(point, operation)
    assert statuses(operations) == {Status.SENDING}
    stage.enqueue(*operations)
    stage.sweep_until(lambda: all(map(came_back, operations)), "they are returned")
    assert not Release.objects.exists()
    stage.assert_never_sent(operations)
    compare_with_provider(stage.provider, f"killed at {point}")


@ONE_OF_EACH
@pytest.mark.parametrize("point", BEGUN)
def test_a_sender_killed_after_its_request_began_leaves_it_unknown_and_unsent(
    stage: FaultStage, kinds: tuple[str, ...], point: str
) -> None:
    operations = stage.released(*kinds)
    for operation in operations:
        stage.strike(point, operation)
    assert statuses(operations) == {Status.SENDING}
    stage.enqueue(*operations)
    stage.sweep_until(lambda: all(map(is_left_open, operations)), "the silence is noticed")
    stage.assert_never_sent(operations)
    compare_with_provider(stage.provider, f"killed at {point}")


@ONE_OF_EACH
@pytest.mark.parametrize("point", LEFT)
def test_a_sender_killed_after_the_response_leaves_it_to_a_status_check(
    stage: FaultStage, kinds: tuple[str, ...], point: str
) -> None:
    operations = stage.released(*kinds)
    for operation in operations:
        stage.strike(point, operation)
    stage.sweep_until_settled(operations)
    for operation in operations:
        assert len(records_of(operation, stage.provider.ledger())) == 1
    compare_with_provider(stage.provider, f"killed at {point}")


@ONE_OF_EACH
@pytest.mark.parametrize("point", LOOKING)
def test_a_status_check_killed_midway_is_repeated(
    stage: FaultStage, kinds: tuple[str, ...], point: str
) -> None:
    operations = processing(stage, kinds)
    stage.provider.settle()
    for operation in operations:
        check_is_due(operation)
        stage.kill_at(point, "sweep")
    FIGURES.recovered(f"killed at {point}", stage.sweep_until_settled(operations, patiently=True))
    compare_with_provider(stage.provider, f"killed at {point}")


@ONE_OF_EACH
@pytest.mark.parametrize("point", LOOKING)
def test_a_frozen_status_check_changes_nothing_already_closed(
    stage: FaultStage, kinds: tuple[str, ...], point: str
) -> None:
    operations, frozen = processing(stage, kinds), []
    for operation in operations:
        check_is_due(operation)
        frozen.append(stage.freeze_at(point, "sweep"))
    stage.provider.settle()
    FIGURES.recovered(f"frozen at {point}", stage.sweep_until_settled(operations, patiently=True))
    closed = list(Attempt.objects.order_by("pk").values_list(*WHAT_A_LOOK_WRITES))
    for child in frozen:
        stage.thaw(child)
    assert statuses(operations) == {Status.SUCCEEDED}
    assert list(Attempt.objects.order_by("pk").values_list(*WHAT_A_LOOK_WRITES)) == closed
    compare_with_provider(stage.provider, f"frozen at {point}")


def processing(stage: FaultStage, kinds: tuple[str, ...]) -> list[Operation]:
    """Sent operations of those kinds that the provider keeps pending until it settles them."""
    stage.provider.options(settle_after=None)
    operations = [one for one in stage.released(*kinds) if one.kind != "payment"]
    stage.enqueue(*operations)
    assert statuses(operations) <= {Status.PROCESSING, Status.SUCCEEDED}
    waiting = [one for one in operations if status_of(one) == Status.PROCESSING]
    assert waiting
    return waiting


def check_is_due(operation: Operation) -> None:
    """Make the next status check due."""
    attempts = Attempt.objects.filter(operation=operation, closed_at__isnull=True)
    attempts.update(next_check_at=attempts.get().started_at)


@ONE_OF_EACH
@pytest.mark.parametrize("point", ["send.before_claim", *NOT_BEGUN, *BEGUN, *LEFT])
def test_a_sender_frozen_briefly_continues_and_sends_once(
    stage: FaultStage, kinds: tuple[str, ...], point: str
) -> None:
    operations = stage.released(*kinds)
    frozen = [stage.freeze(point, operation) for operation in operations]
    jobs.send_due()
    for child in frozen:
        stage.thaw(child)
    stage.sweep_until_settled(operations)
    compare_with_provider(stage.provider, f"frozen at {point}")
