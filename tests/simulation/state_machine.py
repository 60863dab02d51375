"""Everything that can happen, in any order, to a few operations with equal amounts."""

import sys
from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backoffice.core import fault_points
from tests.simulation.actions import DECISIONS, KINDS, NO_OPERATION, HistoryActions
from tests.simulation.campaign import SimulationFigures
from tests.simulation.final_checks import check_the_end
from tests.simulation.payday import CHANGES, ROW_KINDS, Payday
from tests.simulation.request_outcomes import COURSES, SETTLEMENTS, Settlement
from tests.simulation.webhook_checks import TOLD
from tests.simulation.world import CAST, InjectedFault, SimulationStage

MOST = 6  # operations in one history


def seconds(*choices: int) -> st.SearchStrategy[timedelta]:
    return st.sampled_from(choices).map(lambda number: timedelta(seconds=number))


kinds = st.sampled_from(["withdrawal", *KINDS])
amounts = st.sampled_from([100, 100, 250])
people = st.sampled_from(list(CAST))
which = st.integers(0, MOST)
courses = st.sampled_from([*COURSES, "named", "unnamed"])
settlements = st.sampled_from([SETTLEMENTS[0], SETTLEMENTS[0], *SETTLEMENTS])
of_sending = {name for name in fault_points.NAMES if name.startswith(("send.", "confirm."))}
points = st.sampled_from(sorted(of_sending))
injected_faults = st.none() | st.none() | st.builds(InjectedFault, points, st.booleans(), st.booleans())


points_of_batches = st.sampled_from(["batch.chunk_created", "release.committed"])
faults_of_batches = st.none() | st.builds(InjectedFault, points_of_batches, st.booleans())


class HistoryMachine(RuleBasedStateMachine):
    """One history; at its end everything begun is run to completion."""

    stage: ClassVar[SimulationStage]
    figures: ClassVar[SimulationFigures]

    def __init__(self) -> None:
        super().__init__()
        self.office = HistoryActions(self.stage)
        self.world, self.provider = self.office.world, self.office.world.provider
        self.payday = Payday(self.office)
        self.steps = 0
        self.is_inspected = True

    @initialize(
        skew=seconds(0, 0, 170, -400, 86_400),
        wrong_date=seconds(0, 0, 0, 0, 4, -4, 60, 180, -180, 295, -295),
        page=st.sampled_from([100, 100, 3, 1]),
        named=st.booleans(),
        inspected=st.sampled_from([True, False, False, False]),
        managed=st.booleans(),
    )
    def begin(
        self,
        skew: timedelta,
        wrong_date: timedelta,
        page: int,
        named: bool,
        inspected: bool,
        managed: bool,
    ) -> None:
        self.is_inspected = inspected
        if managed:
            self.payday.store_secret()
        self.provider.clock_is_off, self.provider.date_is_off = skew, wrong_date
        self.provider.records_on_a_page, self.provider.names_receivers = page, named

    @invariant()
    def holds(self) -> None:
        self.steps += 1
        self.office.oracle.check()

    def has_room(self) -> bool:
        return len(self.office.prepared) < MOST

    def has_operations(self) -> bool:
        return bool(self.office.prepared)

    def has_batches(self) -> bool:
        return bool(self.payday.batches)

    def has_frozen(self) -> bool:
        return bool(self.world.frozen)

    @precondition(has_room)
    @rule(kind=kinds, amount=amounts, course=courses, settlement=settlements, injected_fault=injected_faults)
    def order_and_send(
        self,
        kind: str,
        amount: int,
        course: str,
        settlement: Settlement,
        injected_fault: InjectedFault | None,
    ) -> None:
        pk = self.office.order(kind, amount)
        self.provider.will(course, settlement)
        self.office.deliver(str(pk), injected_fault)

    @precondition(has_room)
    @rule(kind=kinds, amount=amounts, course=courses, web_dies=st.booleans())
    def order_twice(self, kind: str, amount: int, course: str, web_dies: bool) -> None:
        pk = self.office.order(kind, amount)
        self.world.web_dies = web_dies
        self.office.order(kind, amount)
        self.world.web_dies = False
        self.provider.will(course)
        self.office.deliver(str(pk))

    @precondition(has_room)
    @rule(kind=kinds, amount=amounts, preparer=people)
    def prepare(self, kind: str, amount: int, preparer: str) -> None:
        self.office.prepare(kind, amount, preparer)

    @precondition(has_operations)
    @rule(number=which, decision=st.sampled_from(sorted(DECISIONS)), person=people)
    def decide(self, number: int, decision: str, person: str) -> None:
        self.office.decide(self.operation(number), decision, person)

    @precondition(has_room)
    @rule(
        kind=st.sampled_from(ROW_KINDS),
        rows=st.lists(amounts, min_size=1, max_size=3),
        course=courses,
        injected_fault=faults_of_batches,
    )
    def pay_a_batch(
        self, kind: str, rows: list[int], course: str, injected_fault: InjectedFault | None
    ) -> None:
        self.provider.will(course)
        self.payday.pay(kind, rows, injected_fault)

    @precondition(has_room)
    @rule(kind=st.sampled_from(ROW_KINDS), rows=st.lists(amounts, min_size=1, max_size=3), preparer=people)
    def prepare_batch(self, kind: str, rows: list[int], preparer: str) -> None:
        self.payday.prepare_batch(kind, rows, preparer)

    @precondition(has_batches)
    @rule(number=which, injected_fault=faults_of_batches)
    def create_rows(self, number: int, injected_fault: InjectedFault | None) -> None:
        self.payday.create_rows(self.payday.batches[number % len(self.payday.batches)], injected_fault)

    @precondition(has_batches)
    @rule(number=which, change=st.sampled_from(sorted(CHANGES)), person=people)
    def change_batch(self, number: int, change: str, person: str) -> None:
        self.payday.change_batch(number, change, person)

    @precondition(has_operations)
    @rule(person=people, injected_fault=faults_of_batches)
    def release_many(self, person: str, injected_fault: InjectedFault | None) -> None:
        self.payday.release_many(person, injected_fault)

    @rule(course=courses, settlement=settlements, injected_fault=injected_faults)
    def work(self, course: str, settlement: Settlement, injected_fault: InjectedFault | None) -> None:
        self.provider.will(course, settlement)
        self.office.work(injected_fault)

    @rule(number=which, injected_fault=injected_faults)
    def deliver_again_or_out_of_order(self, number: int, injected_fault: InjectedFault | None) -> None:
        pk = NO_OPERATION if number >= len(self.office.prepared) else self.office.prepared[number]
        self.office.deliver(str(pk), injected_fault)

    @rule(course=courses, injected_fault=injected_faults)
    def sweep(self, course: str, injected_fault: InjectedFault | None) -> None:
        self.provider.will(course)
        self.office.sweep(injected_fault)
        self.payday.note_rows()

    @precondition(has_operations)
    @rule(number=which, person=st.none() | people, injected_fault=injected_faults)
    def check_status_of(self, number: int, person: str | None, injected_fault: InjectedFault | None) -> None:
        self.office.check_status_of(self.operation(number), person, injected_fault)

    @precondition(has_room)
    @rule(
        kind=kinds,
        amount=amounts,
        course=courses,
        settlement=settlements,
        time=seconds(1, 30, 4 * 3_600),
        accuracy=st.sampled_from(TOLD),
        injected_fault=injected_faults,
    )
    def order_and_receive_delivery(
        self,
        kind: str,
        amount: int,
        course: str,
        settlement: Settlement,
        time: timedelta,
        accuracy: str,
        injected_fault: InjectedFault | None,
    ) -> None:
        pk = self.office.order(kind, amount)
        self.provider.will(course, settlement)
        self.office.deliver(str(pk))
        self.world.wait(time)
        self.office.receive_delivery_of(0, accuracy)
        self.office.process_deliveries(injected_fault)

    @rule(
        number=which,
        accuracy=st.sampled_from(TOLD),
        is_enqueued=st.booleans(),
        injected_fault=injected_faults,
    )
    def a_delivery_arrives(
        self, number: int, accuracy: str, is_enqueued: bool, injected_fault: InjectedFault | None
    ) -> None:
        self.office.receive_delivery_of(number, accuracy)
        if is_enqueued:
            self.office.process_deliveries(injected_fault)

    @rule(injected_fault=injected_faults)
    def process_deliveries(self, injected_fault: InjectedFault | None) -> None:
        self.office.process_deliveries(injected_fault)

    @precondition(has_frozen)
    @rule(number=which)
    def thaw(self, number: int) -> None:
        self.office.thaw(self.world.frozen[number % len(self.world.frozen)])

    @rule(time=seconds(1, 1, 5, 5, 30, 30, 60, 60, 300, 300, 3_600, 86_400))
    def let_time_pass(self, time: timedelta) -> None:
        self.world.wait(time)

    @rule(step=seconds(1, -1))
    def step_our_clock(self, step: timedelta) -> None:
        self.world.ours_is_behind += step

    @rule(lag=seconds(0, 0, 8, 40), unreadable=st.sampled_from([0, 1, 3]), busy=st.sampled_from([0, 2, 5]))
    def make_reading_hard(self, lag: timedelta, unreadable: int, busy: int) -> None:
        self.provider.lag = lag
        self.provider.unreadable_calls, self.provider.busy_pages = unreadable, busy

    @rule(currency=st.sampled_from(["NGN", "USD", "USDT"]))
    def deposit(self, currency: str) -> None:
        self.provider.deposit(currency)

    @precondition(has_operations)
    @rule(number=which, settlement=settlements, at_once=st.booleans())
    def pay_the_same_by_another_channel(self, number: int, settlement: Settlement, at_once: bool) -> None:
        self.office.pay_by_another_channel(self.operation(number), settlement, is_shown_at_once=at_once)

    @rule(person=people, how=st.sampled_from(["gone", "without a role", "back", "back"]))
    def change_staff(self, person: str, how: str) -> None:
        self.office.change_staff(person, how)

    @precondition(has_operations)
    @rule(person=people, countersigner=st.sampled_from([None, *CAST]))
    def pause_or_resume_payments(self, person: str, countersigner: str | None) -> None:
        if self.office.is_paused:
            self.office.resume_by_two_people(person, countersigner)
        else:
            self.office.pause(person)

    @precondition(has_operations)
    @rule(number=which, person=people, countersigner=people)
    def settle(self, number: int, person: str, countersigner: str | None) -> None:
        self.office.settle(self.operation(number), person, countersigner)

    def operation(self, number: int) -> UUID:
        return self.office.prepared[number % len(self.office.prepared)]

    def teardown(self) -> None:
        try:
            if sys.exc_info()[0] is None:
                figures = check_the_end(self.office, steps=self.steps, is_inspected=self.is_inspected)
                self.figures.add(figures)
        finally:
            self.office.end_all_frozen()
