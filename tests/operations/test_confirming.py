"""Closing what is open by what the service's own list shows."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import services
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services.confirming import CHECK_AFTER
from backoffice.operations.states import Outcome, Status
from tests import factories, stub_service
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


@pytest.fixture
def service(settings: Settings) -> Iterator[StubService]:
    with stub_service.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.records = json.dumps([record("OLD", createdAt="2026-01-01T08:00:00Z")])
        yield stub


def sent(service: StubService, maker: User, checker: User, status: int, body: str) -> Operation:
    service.answer_post = lambda: (status, body)
    operation = factories.approved(maker, checker)
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
    return sent(service, maker, checker, 502, "bad gateway")


@pytest.fixture
def processing(service: StubService, maker: User, checker: User) -> Operation:
    return sent(service, maker, checker, 200, '{"data": {"transactionId": "T-1"}}')


def confirmed(operation: Operation, service: StubService, *records: dict[str, object]) -> Operation:
    service.records = json.dumps([*records, record("OLD", createdAt="2026-01-01T08:00:00Z")])
    return services.confirm_operation(operation.pk)


@pytest.mark.parametrize(
    ("status", "ends"),
    [("fullfiled", Status.SUCCEEDED), ("failed", Status.FAILED), ("processing", Status.PROCESSING)],
)
def test_an_unknown_one_is_closed_by_the_one_transaction_that_matches(
    unknown: Operation, service: StubService, status: str, ends: Status
) -> None:
    assert confirmed(unknown, service, record("T-7", status)).status == ends
    assert Attempt.objects.get().service_transaction_id == "T-7"


@pytest.mark.parametrize(
    "other",
    [
        record("T-7", amount=250001),
        record("T-7", type="deposit"),
        record("T-7", currency="USD"),
        record("T-7", createdAt="2026-01-01T08:00:00Z"),
    ],
)
def test_a_transaction_that_differs_closes_nothing(
    unknown: Operation, service: StubService, other: dict[str, object]
) -> None:
    assert confirmed(unknown, service, other).status == Status.UNKNOWN
    assert Attempt.objects.get().outcome == Outcome.OPEN


def test_a_status_we_do_not_know_decides_nothing(unknown: Operation, service: StubService) -> None:
    assert confirmed(unknown, service, record("T-7", "on hold")).status == Status.UNKNOWN


def test_two_candidates_close_nothing(unknown: Operation, service: StubService) -> None:
    assert confirmed(unknown, service, record("T-7"), record("T-8")).status == Status.UNKNOWN
    assert Attempt.objects.get().service_transaction_id is None


def test_one_transaction_belongs_to_one_attempt(
    unknown: Operation, service: StubService, maker: User, checker: User
) -> None:
    twin = sent(service, maker, checker, 502, "bad gateway")
    assert confirmed(unknown, service, record("T-7")).status == Status.SUCCEEDED
    assert confirmed(twin, service, record("T-7")).status == Status.UNKNOWN


def test_a_processing_one_follows_its_own_transaction(processing: Operation, service: StubService) -> None:
    assert confirmed(processing, service, record("T-2")).status == Status.PROCESSING
    assert confirmed(processing, service, record("T-2"), record("T-1", "failed")).status == Status.FAILED


def test_absence_sends_nothing_and_ends_in_review_after_the_horizon(
    unknown: Operation, service: StubService
) -> None:
    for _ in CHECK_AFTER:
        assert services.confirm_operation(unknown.pk).status in {Status.UNKNOWN, Status.REVIEW}
    assert Operation.objects.get().status == Status.REVIEW
    assert sum(CHECK_AFTER, timedelta()) > timedelta(hours=24)
    assert len(service.posts) == 1
    assert Entry.objects.filter(action=Action.OPERATION_ESCALATED).count() == 1


def test_a_list_that_cannot_be_read_changes_nothing_and_is_read_again(
    unknown: Operation, service: StubService
) -> None:
    service.records = "nonsense"
    assert services.confirm_operation(unknown.pk).status == Status.UNKNOWN
    attempt = Attempt.objects.get()
    assert attempt.last_check.startswith("The list could not be read")
    assert attempt.next_check_at is not None


def test_a_closed_operation_is_not_changed_by_later_news(unknown: Operation, service: StubService) -> None:
    confirmed(unknown, service, record("T-7"))
    assert confirmed(unknown, service, record("T-7", "failed")).status == Status.SUCCEEDED


def test_the_sweeper_looks_when_it_is_time_and_one_sweeper_looks(
    unknown: Operation, service: StubService
) -> None:
    assert services.close_due() == 0
    service.records = json.dumps([record("T-7")])
    Attempt.objects.update(next_check_at=timezone.now())
    assert (services.close_due(), services.close_due()) == (1, 0)
    assert Operation.objects.get().status == Status.SUCCEEDED
