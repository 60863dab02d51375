"""Fixed histories: each was found by the simulation, or shows one of its cases in a few steps."""

import itertools
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.reason_codes import IncidentKind
from tests.simulation.actions import HistoryActions
from tests.simulation.final_checks import check_the_end
from tests.simulation.payday import Payday
from tests.simulation.request_outcomes import Settlement
from tests.simulation.world import InjectedFault, SimulationStage

A_MINUTE = timedelta(seconds=61)


@pytest.fixture
def office(stage: SimulationStage) -> Iterator[HistoryActions]:
    made = HistoryActions(stage)
    yield made
    made.end_all_frozen()


def two_equal_orders(office: HistoryActions) -> tuple[UUID, UUID]:
    """Two orders of the same amount from the same balance, one second apart."""
    first = office.order("withdrawal", 100)
    office.world.wait(timedelta(seconds=1))
    return first, office.order("withdrawal", 100)


def release_despite_look_alike(office: HistoryActions, pk: UUID) -> None:
    """The release is stopped by a look-alike; a person declares it another payment."""
    office.work()
    assert (office.status(pk), office.oracle.debits_of(pk)) == ("approved", [])
    office.decide(pk, "release", "Amara")


@pytest.mark.parametrize("records_on_a_page", [100, 1])
def test_a_similar_transaction_listed_before_sending_is_never_matched(
    office: HistoryActions, records_on_a_page: int
) -> None:
    office.world.provider.records_on_a_page = records_on_a_page
    ours = office.order("withdrawal", 100)
    office.pay_by_another_channel(ours)
    office.world.provider.deposit("NGN")
    release_despite_look_alike(office, ours)
    office.world.provider.will("lost")
    office.work()
    office.world.wait(A_MINUTE)
    office.check_status_of(ours, None)
    assert office.status(ours) == "unknown"
    check_the_end(office)
    assert office.status(ours) == "review"


def test_a_similar_transaction_listed_before_sending_does_not_hide_ours(
    office: HistoryActions,
) -> None:
    ours = office.order("withdrawal", 100)
    office.pay_by_another_channel(ours)
    office.world.provider.deposit("NGN")
    release_despite_look_alike(office, ours)
    office.world.provider.will("cut")
    office.work()
    office.world.wait(A_MINUTE)
    office.check_status_of(ours, None)
    assert office.status(ours) == "succeeded"
    check_the_end(office)


NOT_BEGUN = ("send.claimed", "send.before_request", "send.connected")


@pytest.mark.parametrize("is_standstill", [False, True])
@pytest.mark.parametrize("point", NOT_BEGUN)
def test_a_worker_that_resumes_after_its_operation_was_returned_sends_nothing(
    office: HistoryActions, point: str, is_standstill: bool
) -> None:
    ours = office.order("withdrawal", 100)
    office.work(InjectedFault(point, is_kill=False, is_standstill=is_standstill))
    office.world.wait(timedelta(seconds=11))
    office.sweep()
    assert office.status(ours) == "approved"
    office.thaw(office.world.frozen[0])
    assert (office.status(ours), office.oracle.debits_of(ours)) == ("approved", [])
    office.decide(ours, "release", "Amara")
    office.work()
    assert len(office.oracle.debits_of(ours)) == 1
    check_the_end(office)


@pytest.mark.parametrize("point", NOT_BEGUN)
def test_a_worker_that_resumes_while_its_operation_is_sent_again_sends_nothing(
    office: HistoryActions, point: str
) -> None:
    ours = office.order("withdrawal", 100)
    office.work(InjectedFault(point, is_kill=False, is_standstill=True))
    office.world.wait(timedelta(seconds=11))
    office.sweep()
    office.decide(ours, "release", "Amara")
    office.work(InjectedFault("send.begun", is_kill=False))
    office.thaw(office.world.frozen[0])
    assert (office.status(ours), office.oracle.debits_of(ours)) == ("sending", [])
    office.thaw(office.world.frozen[0])
    assert len(office.oracle.debits_of(ours)) == 1
    check_the_end(office)


@pytest.mark.parametrize("point", NOT_BEGUN)
def test_an_operation_whose_worker_died_before_its_request_began_is_returned(
    office: HistoryActions, point: str
) -> None:
    ours = office.order("withdrawal", 100)
    office.work(InjectedFault(point, is_kill=True))
    assert office.status(ours) == "sending"
    office.world.wait(timedelta(seconds=11))
    office.sweep()
    assert (office.status(ours), office.oracle.debits_of(ours)) == ("approved", [])
    check_the_end(office)


@pytest.mark.parametrize("is_kill", [False, True])
def test_a_request_that_began_and_was_not_heard_of_is_unknown(office: HistoryActions, is_kill: bool) -> None:
    ours = office.order("withdrawal", 100)
    office.work(InjectedFault("send.begun", is_kill))
    office.world.wait(timedelta(seconds=41))
    office.sweep()
    assert office.status(ours) == "unknown"
    for frozen in list(office.world.frozen):
        office.thaw(frozen)
        assert office.status(ours) == "failed"
    assert office.oracle.debits_of(ours) == []
    check_the_end(office)


def test_a_response_lost_with_its_worker_is_found_in_the_list(office: HistoryActions) -> None:
    ours = office.order("wallet_transfer", 100)
    office.work(InjectedFault("send.response_received", is_kill=True))
    assert office.status(ours) == "sending"
    check_the_end(office)
    assert office.status(ours) == "succeeded"


def test_an_indistinguishable_transaction_of_another_channel_goes_to_review(
    office: HistoryActions,
) -> None:
    ours = office.order("withdrawal", 100)
    office.world.provider.will("cut")
    office.work()
    office.pay_by_another_channel(ours)
    check_the_end(office)
    assert office.status(ours) == "review"


def test_an_identical_operation_is_sent_only_after_the_first_is_settled(office: HistoryActions) -> None:
    first, second = two_equal_orders(office)
    office.world.provider.will("10 minutes late")
    office.work()
    office.work()
    assert [office.status(first), office.status(second)] == ["unknown", "approved"]
    office.world.wait(timedelta(minutes=10))
    office.sweep()
    assert office.status(first) == "succeeded"
    check_the_end(office)
    assert office.oracle.debits_of(second) == []


def test_a_frozen_status_check_does_not_close_again(office: HistoryActions) -> None:
    ours = office.order("conversion", 100)
    office.world.provider.will("cut")
    office.work()
    office.world.wait(A_MINUTE)
    office.check_status_of(ours, None, InjectedFault("confirm.seen", is_kill=False))
    office.check_status_of(ours, "Amara")
    assert office.status(ours) == "succeeded"
    office.thaw(office.world.frozen[0])
    office.oracle.check()
    check_the_end(office)


def test_two_people_resolve_an_operation_that_is_not_listed(office: HistoryActions) -> None:
    ours = office.order("withdrawal", 100)
    office.world.provider.will("lost")
    office.work()
    office.run_to_the_horizon()
    assert office.status(ours) == "review"
    office.settle(ours, "Tunde", "Amara")
    assert office.status(ours) == "failed"
    check_the_end(office)


def test_nothing_is_sent_during_a_pause_and_everything_after_it(office: HistoryActions) -> None:
    ours = office.order("conversion", 100)
    office.pause("Bola")
    office.work()
    assert office.status(ours) == "approved"
    office.resume_by_two_people("Bola", "Amara")
    office.sweep()
    office.world.wait(timedelta(seconds=5))
    office.sweep()
    assert len(office.oracle.debits_of(ours)) == 1
    check_the_end(office)


@pytest.mark.parametrize("course", ["unnamed", "cut"])
def test_an_identical_transaction_listed_first_by_a_lagging_list_is_not_matched(
    office: HistoryActions, course: str
) -> None:
    ours = office.order("withdrawal", 100)
    office.world.provider.lag = timedelta(seconds=40)
    office.world.provider.will(course)
    office.work()
    office.pay_by_another_channel(ours, is_shown_at_once=True)
    office.world.wait(timedelta(seconds=6))
    office.check_status_of(ours, "Amara")
    office.oracle.check()
    check_the_end(office)
    assert office.status(ours) == "review"


def test_a_late_success_response_after_a_listed_failure_raises_no_incident(office: HistoryActions) -> None:
    ours = office.order("withdrawal", 100)
    office.world.provider.will("unnamed", Settlement("failed", timedelta(seconds=20)))
    office.work(InjectedFault("send.response_received", is_kill=False))
    office.world.wait(timedelta(hours=2))
    office.sweep()
    assert office.status(ours) == "failed"
    office.thaw(office.world.frozen[0])
    check_the_end(office)


def test_an_operation_being_sent_cannot_be_approved(office: HistoryActions) -> None:
    ours = office.order("wallet_transfer", 100)
    office.work(InjectedFault("send.claimed", is_kill=False))
    office.decide(ours, "approve", "Ngozi")
    assert office.status(ours) == "sending"
    office.thaw(office.world.frozen[0])
    check_the_end(office)
    assert office.status(ours) == "succeeded"


def test_an_identical_operation_of_ours_is_not_a_second_debit(office: HistoryActions) -> None:
    first, second = two_equal_orders(office)
    office.world.provider.will("named")
    office.work()
    office.world.provider.will("cut")
    office.work()
    office.run_to_the_horizon()
    assert [office.status(first), office.status(second)] == ["succeeded", "succeeded"]
    office.reconcile_at_the_end()
    assert not Incident.objects.exists()


@pytest.mark.parametrize("course", ["named", "unnamed", "cut"])
def test_each_further_debit_raises_an_incident(office: HistoryActions, course: str) -> None:
    ours = office.order("withdrawal", 100)
    office.world.provider.will(course)
    office.work()
    office.run_to_the_horizon()
    assert office.status(ours) == "succeeded"
    for _ in range(2):
        office.pay_by_another_channel(ours)
    check_the_end(office)
    raised = sorted(Incident.objects.values_list("kind", flat=True))
    assert raised == [IncidentKind.SECOND_DEBIT] * 2 + [IncidentKind.UNRECOGNISED] * 2


def test_an_earlier_check_does_not_postpone_the_one_requested_by_a_delivery(office: HistoryActions) -> None:
    ours = office.order("withdrawal", 100)
    office.world.provider.will("named", Settlement("fulfilled", timedelta(hours=3)))
    office.work()
    office.world.wait(timedelta(hours=2))
    office.sweep()
    office.check_status_of(ours, None, InjectedFault("confirm.seen", is_kill=False))
    office.world.wait(timedelta(hours=1))
    office.receive_delivery_of(0, "as it is")
    office.process_deliveries(InjectedFault("confirm.seen", is_kill=True))
    office.thaw(office.world.frozen[0])
    assert office.status(ours) == "processing"
    office.world.wait(timedelta(seconds=11))
    office.sweep()
    assert office.status(ours) == "succeeded"
    check_the_end(office)


@pytest.mark.parametrize("is_managed", [False, True])
@pytest.mark.parametrize("point", ["batch.chunk_created", "release.committed"])
def test_a_batch_whose_worker_is_killed_pays_each_row_once(
    office: HistoryActions, point: str, is_managed: bool
) -> None:
    payday = Payday(office)
    if is_managed:
        payday.store_secret()
    batch = payday.pay("transfer", [100, 100, 250], InjectedFault(point, is_kill=True))
    assert batch is not None
    office.world.wait(timedelta(seconds=31))  # the lease of the worker has ended
    office.sweep()
    payday.note_rows()
    payday.release_many("Amara")
    check_the_end(office)
    rows = [pk for pk in office.prepared if pk != batch]
    assert [len(office.oracle.debits_of(pk)) for pk in rows] == [1, 1, 1]
    assert {office.status(pk) for pk in rows} == {"succeeded"}


def test_each_payment_has_a_code_of_its_own(office: HistoryActions) -> None:
    payday = Payday(office)
    payday.store_secret()
    for _ in range(3):
        office.order("transfer", 100)
    check_the_end(office)
    times = [moment for _, moment in office.world.codes]
    assert len({code for code, _ in office.world.codes}) == len(times) == 3
    assert all(after - before >= timedelta(seconds=25) for before, after in itertools.pairwise(times))


def test_no_row_of_a_paused_batch_is_sent(office: HistoryActions) -> None:
    payday = Payday(office)
    batch = payday.prepare_batch("transfer", [100, 100])
    assert batch is not None
    office.decide(batch, "approve", "Amara")
    payday.create_rows(batch)
    payday.release_many("Amara")
    payday.change_batch(0, "pause", "Chidi")
    check_the_end(office)
    assert office.world.provider.ledger == []
