"""Closing what is open by what the service's own list shows."""

import itertools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import services
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services import confirming
from backoffice.operations.services.confirming import SOON, settles_after
from backoffice.operations.services.looking import WINDOW, look
from backoffice.operations.services.recording import LOOK_AFTER, bind_transaction
from backoffice.operations.states import Outcome, Status
from tests import factories, stub_service
from tests.append_only.triggers import lifted
from tests.operations.steps import let_pass
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)


def record(transaction_id: str, status: str = "fullfiled", **changes: object) -> dict[str, object]:
    return {
        "transactionId": transaction_id,
        "currency": "NGN",
        "type": "withdrawal",
        "status": status,
        "amount": 250000,
        "fee": 50,
        "createdAt": datetime.now(UTC).isoformat(),
        **changes,
    }


BALANCE = 5_000_000  # as the service tells it just before


def ago(**passed: float) -> str:
    return (datetime.now(UTC) - timedelta(**passed)).isoformat()


@pytest.fixture
def service(settings: Settings) -> Iterator[StubService]:
    with stub_service.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.records = json.dumps([record("OLD", createdAt="2026-01-01T08:00:00Z")])
        yield stub


HORIZON = LOOK_AFTER[-1]


def sent(
    service: StubService, maker: User, checker: User, status: int, body: str, **changes: object
) -> Operation:
    service.answer_post = lambda: (status, body)
    operation = factories.approved(maker, checker, **changes)
    services.release_operation(
        operation.pk,
        actor=checker,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        token=SecretStr("123456"),
    )
    services.send_operation(operation.pk)
    return operation


@pytest.fixture
def unknown(service: StubService, maker: User, checker: User) -> Operation:
    """One whose answer was lost long enough ago for every transaction that could be meant to be in the list."""
    operation = sent(service, maker, checker, 502, "bad gateway")
    let_pass(settles_after())
    return operation


@pytest.fixture
def accepted(service: StubService, maker: User, checker: User) -> Operation:
    """One that the service accepted without a name as long ago."""
    operation = sent(service, maker, checker, 200, '{"data": {}}')
    let_pass(settles_after())
    return operation


@pytest.fixture
def processing(service: StubService, maker: User, checker: User) -> Operation:
    return sent(service, maker, checker, 200, '{"data": {"transactionId": "T-1"}}')


def confirmed(operation: Operation, service: StubService, *records: dict[str, object]) -> Operation:
    service.records = json.dumps([*records, record("OLD", createdAt="2026-01-01T08:00:00Z")])
    return services.confirm_operation(operation.pk)


def test_an_unknown_one_is_closed_by_the_one_transaction_that_matches(
    unknown: Operation, service: StubService
) -> None:
    assert confirmed(unknown, service, record("T-7")).status == Status.SUCCEEDED
    assert Attempt.objects.get().service_transaction_id == "T-7"


def test_what_could_be_anothers_is_taken_only_when_ours_has_had_the_time_to_be_there(
    service: StubService, maker: User, checker: User
) -> None:
    """The list may lag: another of the same amount may stand in it before ours does."""
    fresh = sent(service, maker, checker, 502, "bad gateway")
    assert confirmed(fresh, service, record("T-7")).status == Status.UNKNOWN
    let_pass(settles_after())
    assert confirmed(fresh, service, record("T-7"), record("T-8")).status == Status.UNKNOWN
    assert confirmed(fresh, service, record("T-8")).status == Status.SUCCEEDED


def test_what_the_service_accepted_without_a_name_takes_the_only_one_at_once(
    service: StubService, maker: User, checker: User
) -> None:
    accepted = sent(service, maker, checker, 200, '{"data": {}}')
    assert confirmed(accepted, service, record("T-7")).status == Status.SUCCEEDED


def test_it_does_not_at_once_where_something_moved_the_balance_in_between(
    service: StubService, maker: User, checker: User
) -> None:
    """Ours may not be in the list yet, and this one another's."""
    accepted = sent(service, maker, checker, 200, '{"data": {}}')
    balance = Attempt.objects.get().watermark_balance
    other = record("T-7", prevBalance=float(balance - 250_000))
    assert confirmed(accepted, service, other).status == Status.PROCESSING
    assert confirmed(accepted, service, record("T-8", prevBalance=float(balance))).status == Status.SUCCEEDED


def test_it_does_once_ours_has_had_the_time_to_be_there(
    service: StubService, maker: User, checker: User
) -> None:
    accepted = sent(service, maker, checker, 200, '{"data": {}}')
    let_pass(settles_after())
    assert confirmed(accepted, service, record("T-7", prevBalance=1)).status == Status.SUCCEEDED


def test_a_transaction_under_way_is_not_taken_while_ours_may_come_and_it_may_fail(
    unknown: Operation, service: StubService
) -> None:
    """It would hide ours, if it was another's and failed, and ours was executed after it."""
    assert confirmed(unknown, service, record("T-7", "processing")).status == Status.UNKNOWN
    assert confirmed(unknown, service, record("T-8"), record("T-7", "failed")).status == Status.UNKNOWN
    assert Attempt.objects.get().service_transaction_id is None


@pytest.mark.parametrize("records", [[("T-7", "processing")], None], ids=["a candidate", "a problem"])
def test_while_the_balance_is_held_the_next_look_is_near(
    unknown: Operation, service: StubService, records: list[tuple[str, str]] | None
) -> None:
    """The pause before the next look grows to hours, and the next look may free it."""
    let_pass(timedelta(minutes=20))
    service.records = json.dumps([record(*each) for each in records]) if records else "nonsense"
    services.confirm_operation(unknown.pk)
    next_look = Attempt.objects.get().next_check_at
    assert next_look is not None
    assert next_look <= timezone.now() + SOON


def test_where_nothing_is_to_be_taken_the_pauses_grow(unknown: Operation) -> None:
    let_pass(timedelta(minutes=20))
    services.confirm_operation(unknown.pk)
    attempt = Attempt.objects.get()
    assert attempt.next_check_at == attempt.started_at + timedelta(hours=1)


def test_staff_read_until_when_it_is_not_taken(unknown: Operation, service: StubService) -> None:
    confirmed(unknown, service, record("T-7", "processing"))
    attempt = Attempt.objects.get()
    assert attempt.last_check == (
        f"Found as T-7: processing; not taken before {attempt.may_come_until.astimezone(UTC):%H:%M} UTC, "
        "since ours may come yet"
    )


def test_a_transaction_under_way_is_known_by_its_id_from_then_on(
    unknown: Operation, service: StubService
) -> None:
    let_pass(WINDOW)
    assert confirmed(unknown, service, record("T-7", "processing")).status == Status.PROCESSING
    assert Attempt.objects.get().service_transaction_id == "T-7"
    assert confirmed(unknown, service, record("T-8"), record("T-7", "failed")).status == Status.FAILED


def test_a_list_that_changes_at_every_look_proves_nothing(unknown: Operation, service: StubService) -> None:
    numbers = itertools.count()
    service.before_get = lambda: setattr(service, "records", json.dumps([record(f"T-{next(numbers)}")]))
    assert services.confirm_operation(unknown.pk).status == Status.UNKNOWN
    assert Attempt.objects.get().last_check == "The service's list changed each time it was read"


def test_two_passes_that_agree_are_believed(unknown: Operation, service: StubService) -> None:
    lists = iter([[], [record("T-7")]])
    service.before_get = lambda: setattr(service, "records", json.dumps(next(lists, [record("T-7")])))
    assert services.confirm_operation(unknown.pk).status == Status.SUCCEEDED


def test_a_failed_one_proves_failure_only_when_ours_cannot_come_any_more(
    unknown: Operation, service: StubService
) -> None:
    assert confirmed(unknown, service, record("T-7", "failed")).status == Status.UNKNOWN
    let_pass(WINDOW)
    assert confirmed(unknown, service, record("T-7", "failed")).status == Status.FAILED


@pytest.mark.parametrize(
    "other",
    [
        record("T-7", amount=250001),
        record("T-7", type="deposit"),
        record("T-7", currency="USD"),
        record("T-7", createdAt="2026-01-01T08:00:00Z"),
        record("T-7", createdAt=ago(minutes=6), prevBalance=BALANCE),
        record("T-7", createdAt=ago(hours=-2)),
    ],
)
def test_a_transaction_that_differs_closes_nothing_and_keeps_no_other_from_it(
    unknown: Operation, service: StubService, other: dict[str, object]
) -> None:
    assert confirmed(unknown, service, other).status == Status.UNKNOWN
    assert Attempt.objects.get().outcome == Outcome.OPEN
    assert confirmed(unknown, service, record("T-8"), other).status == Status.SUCCEEDED


@pytest.mark.parametrize("minutes", [4, -64], ids=["behind", "ahead"])
def test_a_list_whose_times_are_minutes_off_the_services_own_clock_shows_ours(
    accepted: Operation, service: StubService, minutes: int
) -> None:
    ours = record("T-7", createdAt=ago(minutes=minutes), prevBalance=BALANCE)
    assert confirmed(accepted, service, ours).status == Status.SUCCEEDED


@pytest.mark.parametrize("traits", [{}, {"prevBalance": BALANCE + 7}], ids=["not told", "another"])
def test_what_was_accepted_takes_an_older_one_only_by_the_balance_before_it(
    accepted: Operation, service: StubService, traits: dict[str, Any]
) -> None:
    older = record("T-7", createdAt=ago(minutes=1), **traits)
    assert confirmed(accepted, service, older).status == Status.PROCESSING
    assert Attempt.objects.get().last_check == (
        "T-7 could be this one, but by its time it was before ours, and the balance before it is not the one we saw"
    )
    let_pass(HORIZON)
    assert confirmed(accepted, service, older).status == Status.REVIEW


DOUBTFUL = [
    pytest.param(
        lambda: {"createdAt": ago(seconds=20), "prevBalance": BALANCE},
        "by its time it was before ours, and nothing says that ours was accepted",
        id="before ours",
    ),
    pytest.param(
        lambda: {"prevBalance": BALANCE + 250_050},
        "the balance after it is the one we saw, so it was before ours",
        id="before the balance",
    ),
    pytest.param(
        lambda: {"prevBalance": BALANCE + 250_000, "fee": None},
        "the balance after it is the one we saw, so it was before ours",
        id="before the balance, without a fee",
    ),
    pytest.param(
        lambda: {"createdAt": "last week", "prevBalance": BALANCE}, "it tells no time", id="without a time"
    ),
]
Traits = Callable[[], dict[str, Any]]


@pytest.mark.parametrize(("traits", "why"), DOUBTFUL)
def test_what_may_have_been_there_before_ours_is_never_taken(
    unknown: Operation, service: StubService, traits: Traits, why: str
) -> None:
    """Another channel may have paid it before, and list and balance have shown it only since: ours may not exist."""
    theirs = record("T-7", **traits())
    assert confirmed(unknown, service, theirs).status == Status.UNKNOWN
    assert Attempt.objects.get().last_check == f"T-7 could be this one, but {why}"
    let_pass(HORIZON)
    assert confirmed(unknown, service, theirs).status == Status.REVIEW


def test_nor_is_it_where_ours_was_accepted(accepted: Operation, service: StubService) -> None:
    theirs = record("T-7", prevBalance=BALANCE + 250_050)
    assert confirmed(accepted, service, theirs).status == Status.PROCESSING
    assert confirmed(accepted, service, record("T-8", prevBalance=BALANCE)).status == Status.SUCCEEDED


@pytest.mark.parametrize(("traits", "why"), DOUBTFUL)
def test_nor_is_another_beside_it(unknown: Operation, service: StubService, traits: Traits, why: str) -> None:
    """Where the list's times are minutes off, it may be ours, and the other one another's."""
    found = [record("T-8"), record("T-7", **traits())]
    assert confirmed(unknown, service, *found).status == Status.UNKNOWN
    assert confirmed(unknown, service, *found[:1]).status == Status.SUCCEEDED


def test_a_status_we_do_not_know_decides_nothing(unknown: Operation, service: StubService) -> None:
    assert confirmed(unknown, service, record("T-7", "on hold")).status == Status.UNKNOWN


def test_two_candidates_close_nothing(unknown: Operation, service: StubService) -> None:
    assert confirmed(unknown, service, record("T-7"), record("T-8")).status == Status.UNKNOWN
    assert Attempt.objects.get().service_transaction_id is None


def test_an_equal_twin_by_another_channel_is_left_to_people(unknown: Operation, service: StubService) -> None:
    assert confirmed(unknown, service, record("T-7"), record("T-8")).status == Status.UNKNOWN
    let_pass(HORIZON)
    assert confirmed(unknown, service, record("T-7"), record("T-8")).status == Status.REVIEW
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.service_transaction_id) == (Outcome.OPEN, None)
    assert attempt.last_check == "2 transactions in the list could be this one"
    assert len(service.posts) == 1


def test_without_the_services_own_time_nothing_tells_new_from_old(
    unknown: Operation, service: StubService
) -> None:
    Attempt.objects.update(watermark_service_time=None)
    assert confirmed(unknown, service, record("T-7")).status == Status.UNKNOWN


def test_the_transaction_at_the_watermark_is_never_ours(unknown: Operation, service: StubService) -> None:
    """The last one before our request may be seconds old, and of the same content."""
    Attempt.objects.update(watermark_transaction_id="T-7")
    assert confirmed(unknown, service, record("T-7")).status == Status.UNKNOWN


def test_what_the_service_showed_before_we_sent_is_never_ours(
    service: StubService, maker: User, checker: User
) -> None:
    """Another channel may have paid the same a moment ago, and something else may be newer than that."""
    minutes_ago, undated = record("T-6", createdAt=ago(minutes=4)), record("T-5", createdAt="last week")
    shown = [record("T-8", type="deposit", amount=1), record("T-7"), minutes_ago, undated]
    service.records = json.dumps(shown)
    operation = sent(service, maker, checker, 502, "bad gateway")
    assert Attempt.objects.get().watermark_shown == ["T-7", "T-6", "T-5"]
    let_pass(settles_after())
    assert confirmed(operation, service, *shown).status == Status.UNKNOWN
    assert confirmed(operation, service, record("T-9"), *shown).status == Status.SUCCEEDED
    assert Attempt.objects.get().service_transaction_id == "T-9"


def test_a_look_that_comes_late_leaves_to_people_what_is_theirs_by_now(
    unknown: Operation, service: StubService
) -> None:
    def escalate() -> None:
        Operation.objects.filter(pk=unknown.pk).update(status=Status.REVIEW)
        connection.close()  # that of the thread that answers

    service.before_get = escalate
    assert confirmed(unknown, service, record("T-7")).status == Status.REVIEW
    assert Attempt.objects.get().service_transaction_id is None


def test_a_transaction_that_another_took_since_we_looked_closes_nothing(
    unknown: Operation, service: StubService, maker: User, checker: User
) -> None:
    """Between the look and its record, which is no time at all unless two sweepers run."""
    other = sent(service, maker, checker, 502, "bad gateway", currency="USD", amount=Decimal(300))
    service.records = json.dumps([record("T-7")])
    attempt = Attempt.objects.get(operation=unknown)
    seen = look(unknown, attempt)
    assert bind_transaction(Attempt.objects.get(operation=other), "T-7")
    assert confirming._note(unknown.pk, attempt.pk, seen, None).status == Status.UNKNOWN
    assert Attempt.objects.get(operation=unknown).outcome == Outcome.OPEN


def test_a_twin_whose_transaction_was_named_does_not_stand_in_the_way(
    service: StubService, maker: User, checker: User
) -> None:
    sent(service, maker, checker, 200, '{"data": {"transactionId": "T-8"}}')
    unknown = sent(service, maker, checker, 502, "bad gateway")
    let_pass(settles_after())
    assert confirmed(unknown, service, record("T-7"), record("T-8")).status == Status.SUCCEEDED
    assert Attempt.objects.get(operation=unknown).service_transaction_id == "T-7"


def test_one_transaction_belongs_to_one_attempt(
    unknown: Operation, service: StubService, maker: User, checker: User
) -> None:
    assert confirmed(unknown, service, record("T-7")).status == Status.SUCCEEDED
    twin = sent(service, maker, checker, 502, "bad gateway")
    assert confirmed(twin, service, record("T-7")).status == Status.UNKNOWN


def test_an_answer_that_names_anothers_transaction_proves_nothing_and_says_so(
    unknown: Operation, service: StubService, maker: User, checker: User
) -> None:
    confirmed(unknown, service, record("T-7"))
    twin = sent(service, maker, checker, 200, '{"data": {"transactionId": "T-7"}}')
    assert Operation.objects.get(pk=twin.pk).status == Status.UNKNOWN
    assert Entry.objects.filter(action=Action.OPERATION_CONTRADICTED, target_id=str(twin.pk)).exists()


def test_a_processing_one_follows_its_own_transaction(processing: Operation, service: StubService) -> None:
    assert confirmed(processing, service, record("T-2")).status == Status.PROCESSING
    assert confirmed(processing, service, record("T-2"), record("T-1", "failed")).status == Status.FAILED
    assert Operation.objects.get().reason == "The service reports this transaction as failed."


def test_a_named_transaction_is_found_whatever_its_time_says(
    processing: Operation, service: StubService
) -> None:
    old = (datetime.now(UTC) - timedelta(hours=3)).isoformat()
    assert confirmed(processing, service, record("T-1", createdAt=old)).status == Status.SUCCEEDED


def test_a_named_transaction_under_way_is_waited_for_beyond_the_horizon(
    processing: Operation, service: StubService
) -> None:
    let_pass(HORIZON)
    assert confirmed(processing, service, record("T-1", "processing")).status == Status.PROCESSING
    assert confirmed(processing, service, record("T-1")).status == Status.SUCCEEDED


def test_a_named_transaction_that_ends_in_words_we_do_not_know_goes_to_people(
    processing: Operation, service: StubService
) -> None:
    assert confirmed(processing, service, record("T-1", "reversed")).status == Status.PROCESSING
    let_pass(HORIZON)
    assert confirmed(processing, service, record("T-1", "reversed")).status == Status.REVIEW


def test_looking_often_does_not_bring_review_nearer(unknown: Operation, service: StubService) -> None:
    for _ in range(30):
        assert services.confirm_operation(unknown.pk).status == Status.UNKNOWN


def test_absence_sends_nothing_and_ends_in_review_after_a_day(
    unknown: Operation, service: StubService
) -> None:
    let_pass(HORIZON)
    assert services.confirm_operation(unknown.pk).status == Status.REVIEW
    assert len(service.posts) == 1
    assert Entry.objects.filter(action=Action.OPERATION_ESCALATED).count() == 1


@pytest.mark.parametrize("passed", [timedelta(), HORIZON])
def test_a_list_that_cannot_be_read_changes_nothing_and_is_read_again(
    unknown: Operation, service: StubService, passed: timedelta
) -> None:
    let_pass(passed)
    service.records = "nonsense"
    assert services.confirm_operation(unknown.pk).status == Status.UNKNOWN
    attempt = Attempt.objects.get()
    assert attempt.last_check.startswith("The service could not be read")
    assert attempt.next_check_at is not None


def test_content_that_cannot_be_read_stops_nobody_else(
    unknown: Operation, service: StubService, maker: User, checker: User
) -> None:
    dollars = {"currency": "USD", "amount": Decimal(300)}
    other = sent(service, maker, checker, 200, '{"data": {"transactionId": "T-9"}}', **dollars)
    with lifted(connection):
        Operation.objects.filter(pk=unknown.pk).update(kind="from another release")
    service.records = json.dumps([record("T-9")])
    Attempt.objects.update(next_check_at=timezone.now())
    assert services.close_due() == 2
    assert Operation.objects.get(pk=other.pk).status == Status.SUCCEEDED
    assert "cannot be read" in Attempt.objects.get(operation=unknown).last_check


def test_a_closed_operation_is_not_changed_by_later_news(unknown: Operation, service: StubService) -> None:
    confirmed(unknown, service, record("T-7"))
    assert confirmed(unknown, service, record("T-7", "failed")).status == Status.SUCCEEDED


def test_the_sweeper_looks_when_it_is_time_and_one_sweeper_looks(
    unknown: Operation, service: StubService
) -> None:
    Attempt.objects.update(next_check_at=timezone.now() + timedelta(minutes=1))
    assert services.close_due() == 0
    service.records = json.dumps([record("T-7")])
    Attempt.objects.update(next_check_at=timezone.now())
    assert (services.close_due(), services.close_due()) == (1, 0)
    assert Operation.objects.get().status == Status.SUCCEEDED
