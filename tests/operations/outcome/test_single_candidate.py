"""Closing what is open by the one transaction in the provider's list that matches."""

import itertools
import json
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.outcome.confirmation import RECHECK_SOON, listing_delay
from backoffice.operations.states import Outcome, Status
from tests.operations.outcome.steps import BALANCE, HORIZON, ago, confirmed
from tests.operations.provider_list import record, sent
from tests.operations.steps import let_pass
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_unknown_outcome_is_closed_by_its_only_candidate(
    unknown: Operation, provider: StubProvider
) -> None:
    assert confirmed(unknown, provider, record("T-7")).status == Status.SUCCEEDED
    assert Attempt.objects.get().provider_transaction_id == "T-7"


def test_an_uncertain_candidate_is_accepted_only_after_the_listing_delay(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """The list may lag: another of the same amount may be listed before ours."""
    fresh = sent(provider, preparer, approver, (502, "bad gateway"))
    assert confirmed(fresh, provider, record("T-7")).status == Status.UNKNOWN
    let_pass(listing_delay())
    assert confirmed(fresh, provider, record("T-7"), record("T-8")).status == Status.UNKNOWN
    assert confirmed(fresh, provider, record("T-8")).status == Status.SUCCEEDED


def test_an_accepted_attempt_without_an_id_takes_its_only_candidate_at_once(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    accepted = sent(provider, preparer, approver, (200, '{"data": {}}'))
    assert confirmed(accepted, provider, record("T-7")).status == Status.SUCCEEDED


def test_the_only_candidate_waits_if_the_balance_moved_in_between(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    """Ours may not be in the list yet, and this one another's."""
    accepted = sent(provider, preparer, approver, (200, '{"data": {}}'))
    balance = Attempt.objects.get().watermark_balance
    other = record("T-7", prevBalance=float(balance - 250_000))
    assert confirmed(accepted, provider, other).status == Status.PROCESSING
    assert confirmed(accepted, provider, record("T-8", prevBalance=float(balance))).status == Status.SUCCEEDED


def test_the_only_candidate_is_accepted_after_the_listing_delay(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    accepted = sent(provider, preparer, approver, (200, '{"data": {}}'))
    let_pass(listing_delay())
    assert confirmed(accepted, provider, record("T-7", prevBalance=1)).status == Status.SUCCEEDED


def test_a_processing_candidate_is_not_accepted_while_another_may_appear(
    unknown: Operation, provider: StubProvider
) -> None:
    """It would hide ours, if it was another's and failed, and ours was executed after it."""
    assert confirmed(unknown, provider, record("T-7", "processing")).status == Status.UNKNOWN
    assert confirmed(unknown, provider, record("T-8"), record("T-7", "failed")).status == Status.UNKNOWN
    assert Attempt.objects.get().provider_transaction_id is None


@pytest.mark.parametrize("records", [[("T-7", "processing")], None], ids=["a candidate", "a problem"])
def test_checks_are_frequent_while_the_balance_is_blocked(
    unknown: Operation, provider: StubProvider, records: list[tuple[str, str]] | None
) -> None:
    """The pause before the next check grows to hours, and the next check may free it."""
    let_pass(timedelta(minutes=20))
    provider.records = json.dumps([record(*each) for each in records]) if records else "nonsense"
    confirmation.confirm_operation(unknown.pk)
    next_look = Attempt.objects.get().next_check_at
    assert next_look is not None
    assert next_look <= timezone.now() + RECHECK_SOON


def test_check_intervals_grow_without_a_candidate(unknown: Operation) -> None:
    let_pass(timedelta(minutes=20))
    confirmation.confirm_operation(unknown.pk)
    attempt = Attempt.objects.get()
    assert attempt.next_check_at == attempt.started_at + timedelta(hours=1)


def test_the_page_shows_when_the_candidate_can_be_accepted(
    unknown: Operation, provider: StubProvider
) -> None:
    confirmed(unknown, provider, record("T-7", "processing"))
    attempt = Attempt.objects.get()
    earliest = f"{attempt.execution_deadline.astimezone(UTC):%-d %b %Y, %H:%M} UTC"
    assert attempt.last_check == (
        f"Possible match T-7: Processing; not matched before {earliest}, because another transaction may still appear"
    )


def test_a_processing_transaction_is_followed_by_its_id(unknown: Operation, provider: StubProvider) -> None:
    let_pass(Attempt.EXECUTION_WINDOW)
    assert confirmed(unknown, provider, record("T-7", "processing")).status == Status.PROCESSING
    assert Attempt.objects.get().provider_transaction_id == "T-7"
    assert (
        confirmed(unknown, provider, record("T-8", amount=1), record("T-7", "failed")).status == Status.FAILED
    )


def test_an_unstable_list_closes_nothing(unknown: Operation, provider: StubProvider) -> None:
    numbers = itertools.count()
    provider.before_get = lambda: setattr(provider, "records", json.dumps([record(f"T-{next(numbers)}")]))
    assert confirmation.confirm_operation(unknown.pk).status == Status.UNKNOWN
    assert Attempt.objects.get().last_check == "The provider's list changed during every read"


def test_two_passes_that_agree_are_accepted(unknown: Operation, provider: StubProvider) -> None:
    lists = iter([[], [record("T-7")]])
    provider.before_get = lambda: setattr(provider, "records", json.dumps(next(lists, [record("T-7")])))
    assert confirmation.confirm_operation(unknown.pk).status == Status.SUCCEEDED


def test_a_failed_candidate_closes_only_after_the_execution_deadline(
    unknown: Operation, provider: StubProvider
) -> None:
    assert confirmed(unknown, provider, record("T-7", "failed")).status == Status.UNKNOWN
    let_pass(Attempt.EXECUTION_WINDOW)
    assert confirmed(unknown, provider, record("T-7", "failed")).status == Status.FAILED


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
def test_a_differing_transaction_closes_nothing_and_blocks_no_other(
    unknown: Operation, provider: StubProvider, other: dict[str, object]
) -> None:
    assert confirmed(unknown, provider, other).status == Status.UNKNOWN
    assert Attempt.objects.get().outcome == Outcome.OPEN
    assert confirmed(unknown, provider, record("T-8"), other).status == Status.SUCCEEDED


@pytest.mark.parametrize("minutes", [4, -64], ids=["behind", "ahead"])
def test_a_list_with_skewed_times_is_matched(
    accepted: Operation, provider: StubProvider, minutes: int
) -> None:
    ours = record("T-7", createdAt=ago(minutes=minutes), prevBalance=BALANCE)
    assert confirmed(accepted, provider, ours).status == Status.SUCCEEDED


@pytest.mark.parametrize("changes", [{}, {"prevBalance": BALANCE + 7}], ids=["not reported", "another"])
def test_an_accepted_attempt_takes_an_older_candidate_only_by_its_balance_before(
    accepted: Operation, provider: StubProvider, changes: dict[str, Any]
) -> None:
    older = record("T-7", createdAt=ago(minutes=1), **changes)
    assert confirmed(accepted, provider, older).status == Status.PROCESSING
    assert Attempt.objects.get().last_check == (
        "T-7 could match, but it is older than this attempt, and the balance before it differs"
    )
    let_pass(HORIZON)
    assert confirmed(accepted, provider, older).status == Status.REVIEW
