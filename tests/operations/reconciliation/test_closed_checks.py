"""Looking again at what is closed: news that contradicts the end raises an incident and edits nothing."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.delivery.record import first_recheck_time
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.outcome import confirmation
from backoffice.operations.reconciliation import closed_checks
from backoffice.operations.reconciliation.closed_checks import recheck_closed_due
from backoffice.operations.states import Outcome, Status
from tests.operations.provider_list import NAMED, NAMELESS, REFUSED, TOKEN_REFUSED, record, sent, shows
from tests.stub_provider import Answer, StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def service(service: StubProvider) -> StubProvider:
    """One whose list has an old withdrawal only."""
    shows(service)
    return service


def closed_by_list(service: StubProvider, operation: Operation, *records: dict[str, object]) -> Operation:
    shows(service, *records)
    return confirmation.confirm_operation(operation.pk)


def watched(service: StubProvider, *records: dict[str, object]) -> set[str]:
    """The incidents after a look at such a list, when it is time."""
    shows(service, *records)
    Attempt.objects.filter(watch_next_at__isnull=False).update(watch_next_at=timezone.now())
    kept = list(Operation.objects.order_by("pk").values())
    recheck_closed_due()
    assert list(Operation.objects.order_by("pk").values()) == kept
    return set(Incident.objects.values_list("kind", flat=True))


@pytest.fixture
def succeeded(service: StubProvider, maker: User, checker: User) -> Operation:
    """Closed as succeeded by a transaction that the service named."""
    operation = closed_by_list(service, sent(service, maker, checker, NAMED), record("T-1"))
    assert operation.status == Status.SUCCEEDED
    return operation


def test_as_long_as_the_list_agrees_there_is_no_news(succeeded: Operation, service: StubProvider) -> None:
    assert watched(service, record("T-1")) == set()


def test_a_success_that_the_service_calls_failed_by_now_is_news(
    succeeded: Operation, service: StubProvider
) -> None:
    assert watched(service, record("T-1", "failed")) == {IncidentKind.NOW_FAILED}
    incident = Incident.objects.get()
    assert incident.operation == succeeded
    assert incident.evidence["on_record"] == {"attempt": 1, "outcome": "succeeded", "transaction": "T-1"}
    assert incident.evidence["in_list"]["transaction"] == "T-1"
    words = dict(incident.facts)
    assert words["on record"] == "Succeeded, attempt 1, transaction T-1"
    assert words["in the list"].startswith("T-1 of ")


def test_a_success_whose_transaction_is_gone_is_news(succeeded: Operation, service: StubProvider) -> None:
    assert watched(service) == {IncidentKind.NOT_LISTED}


def test_a_list_that_does_not_reach_that_far_proves_no_absence(
    succeeded: Operation, service: StubProvider
) -> None:
    service.records = json.dumps([record("T-9", amount=1)])
    Attempt.objects.update(watch_next_at=timezone.now())
    recheck_closed_due()
    assert not Incident.objects.exists()


@pytest.mark.parametrize("answer", [REFUSED, TOKEN_REFUSED])
def test_a_debit_of_what_is_on_record_as_not_executed_is_news(
    answer: Answer, service: StubProvider, maker: User, checker: User
) -> None:
    operation = sent(service, maker, checker, answer)
    assert operation.status in {Status.FAILED, Status.APPROVED}
    assert watched(service) == set()
    assert watched(service, record("T-7", amount=250001)) == set()
    assert watched(service, record("T-7", "failed")) == set()
    assert watched(service, record("T-7")) == {IncidentKind.EXECUTED_AFTER_ALL}


def test_a_debit_of_what_never_left_us_is_news(
    service: StubProvider, settings: Settings, maker: User, checker: User
) -> None:
    operation = sent(service, maker, checker, NAMED)
    Attempt.objects.update(
        outcome=Outcome.NOT_SENT,
        closed_at=timezone.now(),
        watch_next_at=timezone.now(),
        service_transaction_id=None,
    )
    assert watched(service, record("T-7")) == {IncidentKind.EXECUTED_AFTER_ALL}
    assert Incident.objects.get().operation == operation


def test_a_debit_that_is_anothers_is_no_news(
    service: StubProvider, succeeded: Operation, maker: User, checker: User
) -> None:
    sent(service, maker, checker, REFUSED)
    assert watched(service, record("T-1")) == set()


def test_what_may_belong_to_one_whose_outcome_is_open_waits(
    service: StubProvider, maker: User, checker: User
) -> None:
    sent(service, maker, checker, REFUSED)
    doubtful = sent(service, maker, checker, (502, "bad gateway"))
    assert watched(service, record("T-7")) == set()
    assert Attempt.objects.filter(closed_at__isnull=False, watch_next_at__gt=timezone.now()).exists()
    Attempt.objects.filter(operation=doubtful).update(
        closed_at=timezone.now(), outcome=Outcome.SUCCEEDED, service_transaction_id="T-6"
    )
    assert IncidentKind.EXECUTED_AFTER_ALL in watched(service, record("T-7"), record("T-6"))


def test_a_failure_that_the_service_calls_executed_by_now_is_news(
    service: StubProvider, maker: User, checker: User
) -> None:
    operation = closed_by_list(service, sent(service, maker, checker, NAMED), record("T-1", "failed"))
    assert operation.status == Status.FAILED
    assert watched(service, record("T-1", "failed")) == set()
    assert watched(service, record("T-1")) == {IncidentKind.NOW_EXECUTED}


def test_a_second_candidate_is_news_where_the_first_was_taken_from_the_list(
    service: StubProvider, maker: User, checker: User
) -> None:
    operation = closed_by_list(service, sent(service, maker, checker, NAMELESS), record("T-7"))
    assert operation.status == Status.SUCCEEDED
    assert watched(service, record("T-8"), record("T-7")) == {IncidentKind.SECOND_DEBIT}


def test_a_second_debit_is_news_also_where_the_service_named_the_first(
    succeeded: Operation, service: StubProvider
) -> None:
    assert watched(service, record("T-2"), record("T-1")) == {IncidentKind.SECOND_DEBIT}
    incident = Incident.objects.get()
    assert incident.operation == succeeded
    assert incident.evidence["in_list"]["transaction"] == "T-2"


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "failed"},
        {"amount": 250001},
        {"createdAt": "2126-01-02T08:00:00Z"},
        {"createdAt": "2026-01-02T08:00:00Z"},
    ],
    ids=["failed", "of another amount", "too late to be caused by it", "from before"],
)
def test_what_debits_nothing_more_or_cannot_be_caused_by_it_is_no_news(
    succeeded: Operation, service: StubProvider, changes: dict[str, object]
) -> None:
    assert watched(service, record("T-2") | changes, record("T-1")) == set()


def test_another_of_ours_with_the_same_content_is_no_second_debit(
    succeeded: Operation, service: StubProvider, maker: User, checker: User
) -> None:
    """Neither while it is on its way and nobody knows its transaction, nor when it has claimed it."""
    other = sent(service, maker, checker, NAMELESS, memo="the next one")
    both = (record("T-2"), record("T-1"))
    assert watched(service, *both) == set()
    assert closed_by_list(service, other, *both).status == Status.SUCCEEDED
    assert watched(service, *both) == set()
    assert watched(service, record("T-3"), *both) == {IncidentKind.SECOND_DEBIT}


def test_each_further_debit_reaches_people_who_had_taken_note_of_the_one_before(
    succeeded: Operation, service: StubProvider, checker: User
) -> None:
    first, second = record("T-1"), record("T-2")  # with another time they would be further evidence
    watched(service, second, first)
    incidents.acknowledge_incident(Incident.objects.get().pk, actor=checker, note="Asked the service")
    watched(service, record("T-3"), second, first)
    further = Incident.objects.get(seen_at=None)
    assert further.evidence["in_list"]["transaction"] == "T-3"
    assert further.further_to == Incident.objects.exclude(seen_at=None).get()


def test_an_unknown_one_is_not_watched_before_its_end(
    service: StubProvider, maker: User, checker: User
) -> None:
    sent(service, maker, checker, (502, "bad gateway"))
    assert Attempt.objects.get().watch_next_at is None
    assert recheck_closed_due() == 0


def stopped_at(moment: datetime) -> datetime:
    return moment


def test_it_is_looked_at_three_times_within_a_day(succeeded: Operation, service: StubProvider) -> None:
    closed_at = Attempt.objects.get().closed_at
    assert closed_at is not None
    looks: list[timedelta] = []
    while (next_at := Attempt.objects.get().watch_next_at) is not None:
        with clock.use_clock(partial(stopped_at, next_at)):
            assert recheck_closed_due() == 1
            assert recheck_closed_due() == 0
        looks.append(next_at - closed_at)
    minutes = timedelta(minutes=1)
    assert 10 * minutes <= looks[0] <= 11 * minutes
    assert 65 * minutes <= looks[1] <= 80 * minutes
    assert 24 * 60 * minutes <= looks[2] <= 25 * 60 * minutes
    assert len(looks) == 3


def test_a_service_that_cannot_be_read_is_asked_again_later(
    succeeded: Operation, service: StubProvider, settings: Settings
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    Attempt.objects.update(watch_next_at=timezone.now())
    recheck_closed_due()
    next_at = Attempt.objects.get().watch_next_at
    assert next_at is not None
    assert timedelta(minutes=14) < next_at - timezone.now() <= timedelta(minutes=15)
    assert not Incident.objects.exists()


def test_of_two_processes_one_looks(succeeded: Operation, service: StubProvider) -> None:
    Attempt.objects.update(watch_next_at=timezone.now())
    seen = Attempt.objects.get()
    Attempt.objects.update(watch_next_at=timezone.now() + timedelta(minutes=10))
    assert not closed_checks._lease_recheck(seen)


def test_the_first_look_is_ten_minutes_after_the_end_on_a_full_minute() -> None:
    closed_at = datetime(2026, 3, 1, 9, 30, 1, tzinfo=UTC)
    assert first_recheck_time(closed_at) == datetime(2026, 3, 1, 9, 41, tzinfo=UTC)
