"""Two people, or two processes, in the same moment: one of them wins, and the record tells of one (faults 12 and 16).

Each race is run 20 times in the sample, 1,000 times in the whole campaign, or `RACE_ROUNDS` times.
"""

import itertools
import json
import os
import threading
import uuid
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.core import clock
from backoffice.operations import services
from backoffice.operations.kinds import KINDS
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.pause import is_paused
from backoffice.operations.services.confirming import settles_after
from backoffice.operations.states import Status
from tests import factories, stub_service
from tests.append_only.triggers import lifted
from tests.faults.conftest import SIZE
from tests.faults.figures import FIGURES
from tests.faults.racing import DONE, Act, Racers, assert_sent_once_at_most, broken_rules, debits_of
from tests.operations.cases import proposed, record, said, shows
from tests.operations.steps import status_of
from tests.stub_service import StubService

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]

ROUNDS = int(os.environ.get("RACE_ROUNDS", "1000" if SIZE == "whole" else "20"))
LARGE = Decimal("20000000.00")  # two people approve it
LOST = (502, "bad gateway")


@pytest.fixture
def service(settings: Settings) -> Iterator[StubService]:
    """A service that names a new transaction each time it is asked for one."""
    cache.clear()
    numbers = itertools.count(1)
    with stub_service.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        settings.CELERY_BROKER_URL = "memory://"
        stub.answer_post = lambda: (200, f'{{"data": {{"transactionId": "T-{next(numbers)}"}}}}')
        yield stub


class Races(Racers):
    """The rounds of one race, and what must hold after each and after all of them."""

    def __init__(self, service: StubService, name: str) -> None:
        super().__init__()
        self._service = service
        self._name = name
        self._all: list[Operation] = []

    def rounds(self) -> Iterator[int]:
        """So many rounds, each with a ledger of its own."""
        for number in range(ROUNDS):
            self._service.posts.clear()
            yield number
            FIGURES.cells[f"races: {self._name}"] += 1

    def are_well(self, *operations: Operation) -> None:
        """After a round: at most one debit each, and every move told once, along the table of states."""
        assert_sent_once_at_most(operations, self._service)
        assert broken_rules(operations, "unrecorded_move") == {}
        self._all.extend(operations)

    def ended_well(self) -> None:
        """After all rounds: everything that must always hold, and the whole log."""
        assert broken_rules(self._all) == {}


@pytest.fixture
def races(service: StubService, request: pytest.FixtureRequest) -> Iterator[Races]:
    with Races(service, request.node.name.removeprefix("test_").replace("_", " ")) as races:
        yield races


@pytest.fixture
def third_checker(db: None) -> User:
    return factories.person("Ngozi Eze", Role.APPROVER)


def approves(operation: Operation, person: User) -> Act:
    return lambda: services.approve_operation(
        operation.pk, actor=person, digest=operation.digest, second_factor_at=timezone.now()
    )


def once_the_list_is_read(service: StubService, act: Act, *, dawdling: int) -> Act:
    """Do it when the service has been asked twice, as before a claim or an end, and after so many looks at a row."""
    read, gets = threading.Event(), itertools.count(1)
    service.before_get = lambda: read.set() if next(gets) == 2 else None

    def late() -> None:
        assert read.wait(60)
        for _ in range(dawdling):
            Operation.objects.first()
        act()

    return late


def rejects(operation: Operation, person: User) -> Act:
    return lambda: services.reject_operation(
        operation.pk,
        actor=person,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        reason="The invoice is not ours.",
    )


def cancels(operation: Operation) -> Act:
    return lambda: services.cancel_operation(operation.pk, actor=operation.maker)


def gives_the_word(operation: Operation, person: User) -> Act:
    """Release it, and be the worker that is rung for it."""

    def act() -> None:
        factories.release(operation, person)
        services.send_operation(operation.pk)

    return act


def approves_and_sends(operation: Operation, person: User) -> Act:
    def act() -> None:
        services.approve_and_release_operation(
            operation.pk,
            actor=person,
            digest=operation.digest,
            second_factor_at=timezone.now(),
            token=SecretStr("123456"),
        )
        services.send_operation(operation.pk)

    return act


def sends(operation: Operation) -> Act:
    return lambda: services.send_operation(operation.pk)


def looks_for(operation: Operation) -> Act:
    return lambda: services.confirm_operation(operation.pk)


def countersigned_apart(maker: User, checker: User) -> Operation:
    return factories.countersigned(factories.prepared_apart(maker), checker)


def lost(service: StubService, maker: User, checker: User, *, age: timedelta) -> Operation:
    """One whose answer was lost so long ago."""
    shows(service)
    named, service.answer_post = service.answer_post, lambda: LOST
    operation = factories.release(countersigned_apart(maker, checker), checker)
    services.send_operation(operation.pk)
    service.answer_post = named
    assert status_of(operation) == Status.UNKNOWN
    grown_old(operation, age)
    return operation


def grown_old(operation: Operation, age: timedelta) -> None:
    Attempt.objects.filter(operation=operation).update(started_at=clock.now() - age)


def test_two_approvers_where_two_are_needed_both_count(
    races: Races, maker: User, checker: User, second_checker: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_apart(maker, amount=LARGE)
        assert races.race(approves(operation, checker), approves(operation, second_checker)) == [DONE, DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.APPROVED, 2)
        races.are_well(operation)
    races.ended_well()


def test_two_approvers_where_one_is_enough_one_moves_it(
    races: Races, maker: User, checker: User, second_checker: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_apart(maker)
        results = races.race(approves(operation, checker), approves(operation, second_checker))
        assert sorted(results) == ["WrongStatusError", DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.APPROVED, 1)
        races.are_well(operation)
    races.ended_well()


def test_one_person_twice_counts_once(races: Races, maker: User, checker: User) -> None:
    for _ in races.rounds():
        operation = factories.prepared_apart(maker, amount=LARGE)
        results = races.race(*[approves(operation, checker)] * 3)
        assert sorted(results) == ["AlreadyApprovedError", "AlreadyApprovedError", DONE]
        assert (status_of(operation), operation.approvals.count()) == (Status.PENDING, 1)
        races.are_well(operation)
    races.ended_well()


def test_two_words_to_send_are_one_debit(
    races: Races, service: StubService, maker: User, checker: User, second_checker: User
) -> None:
    for _ in races.rounds():
        operation = countersigned_apart(maker, checker)
        results = races.race(gives_the_word(operation, checker), gives_the_word(operation, second_checker))
        assert results.count(DONE) == 1
        assert set(results) <= {DONE, "AlreadyReleasedError", "WrongStatusError"}
        assert (status_of(operation), debits_of(operation, service)) == (Status.PROCESSING, 1)
        races.are_well(operation)
    races.ended_well()


def test_the_word_to_send_against_taking_it_back(
    races: Races, service: StubService, maker: User, checker: User
) -> None:
    for _ in races.rounds():
        operation = countersigned_apart(maker, checker)
        _, taken_back = races.race(gives_the_word(operation, checker), cancels(operation))
        ends = (Status.CANCELLED, 0) if taken_back == DONE else (Status.PROCESSING, 1)
        assert (status_of(operation), debits_of(operation, service)) == ends
        assert not Release.objects.exists()
        races.are_well(operation)
    races.ended_well()


def test_approving_against_rejecting_one_of_them_stands(
    races: Races, maker: User, checker: User, second_checker: User
) -> None:
    for _ in races.rounds():
        operation = factories.prepared_apart(maker)
        results = races.race(approves(operation, checker), rejects(operation, second_checker))
        assert sorted(results) == ["WrongStatusError", DONE]
        stands = Status.APPROVED if results[0] == DONE else Status.REJECTED
        assert (status_of(operation), operation.approvals.count()) == (stands, int(results[0] == DONE))
        races.are_well(operation)
    races.ended_well()


def test_approving_against_taking_it_back_it_is_taken_back(races: Races, maker: User, checker: User) -> None:
    for _ in races.rounds():
        operation = factories.prepared_apart(maker)
        approved, taken_back = races.race(approves(operation, checker), cancels(operation))
        assert taken_back == DONE
        assert (approved == DONE) == operation.approvals.exists()
        assert status_of(operation) == Status.CANCELLED
        races.are_well(operation)
    races.ended_well()


def test_approving_and_sending_against_its_last_moment(
    races: Races, service: StubService, maker: User, checker: User
) -> None:
    for number in races.rounds():
        operation = factories.prepared_apart(maker)
        last_moment = clock.now() + timedelta(milliseconds=number % 80)
        Operation.objects.filter(pk=operation.pk).update(expires_at=last_moment)
        approved, _ = races.race(approves_and_sends(operation, checker), expires(operation, last_moment))
        status = status_of(operation)
        assert (status, debits_of(operation, service)) in {(Status.EXPIRED, 0), (Status.PROCESSING, 1)}
        assert approved == DONE or status == Status.EXPIRED
        assert not Release.objects.exists()
        races.are_well(operation)
    races.ended_well()


def expires(operation: Operation, last_moment: object) -> Act:
    """The sweeper in the very moment in which the time has run out."""

    def act() -> None:
        while not Operation.objects.get(pk=operation.pk).is_past(clock.now()):
            pass
        services.expire_operation(operation.pk)

    return act


def test_sending_against_an_edit_of_the_row_sends_what_was_signed_or_nothing(
    races: Races, service: StubService, maker: User, checker: User
) -> None:
    """The triggers that forbid the edit are lifted: what is left is the digest."""
    with lifted(connection):
        for number in races.rounds():
            operation = factories.prepared_apart(maker)
            first, second = approves_and_sends(operation, checker), edits(operation)
            races.race(*((first, second) if number % 2 else (second, first)))
            left = debits_of(operation, service)
            assert (status_of(operation), left, len(service.posts)) in {
                (Status.PENDING, 0, 0),
                (Status.APPROVED, 0, 0),
                (Status.PROCESSING, 1, 1),
            }
            races.are_well(operation)


def edits(operation: Operation) -> Act:
    payload = {**operation.payload, "account_number": "9999999999"}
    return lambda: Operation.objects.filter(pk=operation.pk).update(payload=payload)


def test_a_claim_against_the_pause(
    races: Races, service: StubService, maker: User, checker: User, second_checker: User
) -> None:
    def pause() -> None:
        services.pause_sending(actor=second_checker, reason="A key has leaked")

    for number in races.rounds():
        operation = factories.release(countersigned_apart(maker, checker), checker)
        pauses = once_the_list_is_read(service, pause, dawdling=number % 20)
        assert races.race(sends(operation), pauses) == [DONE, DONE]
        left = debits_of(operation, service)
        assert is_paused()
        services.send_operation(operation.pk)
        assert debits_of(operation, service) == left
        assert (status_of(operation) == Status.PROCESSING) == (left == 1)
        races.are_well(operation, resumed(maker, checker))
        services.send_operation(operation.pk)
        races.are_well(operation)
    races.ended_well()


def resumed(maker: User, checker: User) -> Operation:
    form = KINDS["resume"].form_type({"reason": "The key was replaced"})
    assert form.is_valid(), form.errors
    return factories.countersigned(factories.of_kind("resume", form.payload(), maker), checker)


def test_a_resolution_against_the_reconciler_one_of_them_closes_it(
    races: Races, service: StubService, maker: User, checker: User, second_checker: User
) -> None:
    for number in races.rounds():
        operation = lost(service, maker, checker, age=settles_after())
        shows(service, record(f"R-{number}"))
        resolution = proposed(operation, maker, "happened", f"R-{number}")
        signs = once_the_list_is_read(service, approves(resolution, second_checker), dawdling=number % 20)
        signed, _ = races.race(signs, looks_for(operation))
        attempt = operation.attempts.get()
        assert (status_of(operation), attempt.service_transaction_id) == (Status.SUCCEEDED, f"R-{number}")
        assert (signed == DONE) == (attempt.resolution_id == resolution.pk)
        assert signed in {DONE, "CannotSettleError"}
        assert (status_of(resolution) == Status.SUCCEEDED) == (signed == DONE)
        races.are_well(operation)
    races.ended_well()


def test_of_two_resolutions_that_contradict_each_other_one_waits_and_is_applied_once(
    races: Races,
    service: StubService,
    maker: User,
    checker: User,
    second_checker: User,
    third_checker: User,
) -> None:
    for number in races.rounds():
        operation = lost(service, maker, checker, age=timedelta(hours=2))
        shows(service, record(f"R-{number}"))
        happened, absent = said(operation, "happened", f"R-{number}"), said(operation, "did_not_happen")
        assert happened.is_valid(), happened.errors
        assert absent.is_valid(), absent.errors
        results = races.race(proposes(happened.payload(), maker), proposes(absent.payload(), checker))
        assert sorted(results) == ["SameContentWaitsError", DONE]
        resolution = Operation.objects.get(kind="resolution", status=Status.PENDING)
        results = races.race(approves(resolution, second_checker), approves(resolution, third_checker))
        assert sorted(results) == ["WrongStatusError", DONE]
        said_so = Status.SUCCEEDED if resolution.payload["verdict"] == "happened" else Status.FAILED
        assert (status_of(operation), status_of(resolution)) == (said_so, Status.SUCCEEDED)
        races.are_well(operation)
    races.ended_well()


def proposes(payload: object, person: User) -> Act:
    return lambda: services.prepare_operation(
        uuid.uuid4(),
        actor=person,
        kind="resolution",
        payload=payload,  # type: ignore[arg-type]
    )


def test_two_claims_at_one_balance_one_leaves_and_the_other_when_the_first_is_settled(
    races: Races, service: StubService, maker: User, checker: User, second_checker: User
) -> None:
    named = service.answer_post
    for number in races.rounds():
        shows(service)
        pair = [countersigned_apart(maker, checker) for _ in range(2)]
        first, second = (factories.release(each, second_checker) for each in pair)
        service.answer_post = lambda: LOST
        assert races.race(sends(second), sends(first), sends(first)) == [DONE, DONE, DONE]
        service.answer_post = named
        assert (status_of(first), status_of(second)) == (Status.UNKNOWN, Status.APPROVED)
        grown_old(first, settles_after())
        shows(service, record(f"R-{number}"))
        services.confirm_operation(first.pk)
        services.send_operation(second.pk)
        assert (status_of(first), status_of(second)) == (Status.SUCCEEDED, Status.PROCESSING)
        order = [json.loads(body)["accountNumber"] for body in service.posts]
        assert order == [each.payload["account_number"] for each in (first, second)]
        races.are_well(first, second)
    races.ended_well()


def test_two_sweepers_and_two_workers_send_once_and_close_once(
    races: Races, service: StubService, maker: User, checker: User
) -> None:
    for _ in races.rounds():
        shows(service)
        operation = factories.release(countersigned_apart(maker, checker), checker)
        Release.objects.update(released_at=clock.now() - timedelta(seconds=2))
        races.race(sends(operation), services.send_due, sends(operation), services.send_due)
        attempt = Attempt.objects.get(operation=operation)
        assert debits_of(operation, service) == 1
        shows(service, record(attempt.service_transaction_id or ""))
        Attempt.objects.filter(pk=attempt.pk).update(next_check_at=clock.now())
        looks = [services.close_due, looks_for(operation)]
        races.race(*looks, *looks)
        assert status_of(operation) == Status.SUCCEEDED
        races.are_well(operation)
    races.ended_well()
