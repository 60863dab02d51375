"""The transaction that people say an operation became: which may be named, and what its word means."""

import pytest
from django.test import Client
from django.utils import timezone
from pydantic import ValidationError

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.provider_list import shows
from tests.operations.steps import let_pass, reloaded, text_of
from tests.operations.unknown_outcomes import proposed, record, resolution_form, resolved
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("shown", "wanted", "problem"),
    [
        ({}, "", "Enter the transaction ID"),
        ({}, "T-8", "shows no transaction with this ID"),
        ({"status": "processing"}, "T-7", "still shows it as processing"),
        ({"createdAt": "2026-01-02T08:00:00Z"}, "T-7", "shows no transaction with this ID"),
    ],
)
def test_executed_needs_a_listed_transaction_with_a_final_status(
    provider: StubProvider, unknown: Operation, shown: dict[str, object], wanted: str, problem: str
) -> None:
    shows(provider, record("T-7") | shown)
    assert problem in resolution_form(unknown, "executed", wanted).errors["transaction_id"][0]


@pytest.mark.parametrize(
    ("end", "means"),
    [("succeeded", "it succeeded"), ("failed", "it failed: no money moved, or it was returned")],
)
def test_a_transaction_with_an_unknown_status_closes_as_resolved(
    provider: StubProvider, unknown: Operation, preparer: User, approver: User, end: str, means: str
) -> None:
    shows(provider, record("T-7", "completed"))
    let_pass(Attempt.EXECUTION_WINDOW)
    assert resolved(unknown, preparer, approver, "executed", "T-7", end).status == Status(end)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.provider_transaction_id) == (Outcome(end), "T-7")
    resolution = Operation.objects.get(kind="resolution")
    assert f"executed as transaction T-7; status “completed” means that {means}" in resolution.sentence
    assert resolution.payload["meaning"] == end
    assert resolution.payload["transaction"]["status"] == "completed"
    assert resolution.digest == resolution.current_digest()


@pytest.mark.parametrize("status", ["completed", "reversed", ""])
def test_the_page_requests_the_meaning_of_an_unknown_status(
    provider: StubProvider, unknown: Operation, as_preparer: Client, status: str
) -> None:
    let_pass(Attempt.EXECUTION_WINDOW)
    address = "/operations/prepare/resolution/"
    form = {"operation": str(unknown.pk), "choice": "executed", "transaction_id": "T-7", "reason": "Asked"}
    assert 'name="meaning"' not in text_of(as_preparer.get(address, form))
    shows(provider, record("T-7", status))
    asked = as_preparer.post(address, {**form, "step": "review"})
    assert asked.status_code == 422
    word = f"“{status}”" if status else "(none)"
    assert f"Meaning of status {word}" in text_of(asked)
    assert f"status is {word}. Select what it means." in text_of(asked)
    reviewed = as_preparer.post(address, {**form, "meaning": "failed", "step": "review"})
    assert reviewed.status_code == 200
    assert f"{word} means that it failed: no money moved, or it was returned" in text_of(reviewed)
    assert "Failed: no money moved, or it was returned" in text_of(reviewed)
    assert "is unknown. Ask the provider." in text_of(reviewed)


def test_the_meaning_of_a_known_status_cannot_be_chosen(provider: StubProvider, unknown: Operation) -> None:
    shows(provider, record("T-7"))
    form = resolution_form(unknown, "executed", "T-7", meaning="failed")
    assert "which gives the outcome" in form.errors["__all__"][0]
    assert not form.asks_for_meaning


@pytest.mark.parametrize(("status", "meaning"), [("failed", ""), ("completed", "failed")])
def test_a_failed_transaction_cannot_be_chosen_before_the_execution_deadline(
    provider: StubProvider, unknown: Operation, preparer: User, approver: User, status: str, meaning: str
) -> None:
    """Ours may be executed minutes later, by then hidden behind `failed` and prepared again."""
    shows(provider, record("T-7", status))
    form = resolution_form(unknown, "executed", "T-7", meaning=meaning)
    assert "may execute this operation until" in form.errors["meaning" if meaning else "transaction_id"][0]
    let_pass(Attempt.EXECUTION_WINDOW)
    assert resolved(unknown, preparer, approver, "executed", "T-7", meaning).status == Status.FAILED


def test_a_failed_transaction_is_not_applied_before_the_execution_deadline(
    provider: StubProvider, unknown: Operation, preparer: User, approver: User
) -> None:
    shows(provider, record("T-7", "failed"))
    let_pass(Attempt.EXECUTION_WINDOW)
    resolution = proposed(unknown, preparer, "executed", "T-7")
    Attempt.objects.update(started_at=timezone.now())
    with pytest.raises(errors.CannotResolveError, match="may still be executed"):
        factories.approve(resolution, approver)


@pytest.mark.parametrize(
    ("now", "said_so"),
    [
        ([record("T-7")], "no longer shows transaction T-7 as “pending”"),
        ([], "no longer shows transaction T-7 as “pending”"),
        (None, "could not be read"),
    ],
    ids=["another word", "gone", "unreadable"],
)
def test_a_status_changed_since_the_proposal_is_not_applied(
    provider: StubProvider,
    unknown: Operation,
    preparer: User,
    approver: User,
    now: list[dict[str, object]] | None,
    said_so: str,
) -> None:
    shows(provider, record("T-7", "pending"))
    let_pass(Attempt.EXECUTION_WINDOW)
    resolution = proposed(unknown, preparer, "executed", "T-7", "failed")
    shows(provider, *now or [])
    if now is None:
        provider.records = '"no list at all"'
    with pytest.raises(errors.CannotResolveError, match=said_so):
        factories.approve(resolution, approver)
    assert reloaded(unknown).status == Status.UNKNOWN
    assert Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED, target_id=str(resolution.pk)).exists()


@pytest.mark.parametrize("choice", ["executed", "not_executed"])
def test_a_transaction_that_failed_and_is_executed_by_the_approval_closes_nothing(
    provider: StubProvider, review: Operation, preparer: User, approver: User, choice: str
) -> None:
    """Between the two people hours may pass. `failed` would hide the debit, and the payment be prepared again."""
    if choice == "not_executed":
        Attempt.objects.update(provider_transaction_id="T-7")
    shows(provider, record("T-7", "failed"))
    resolution = proposed(review, preparer, choice, "T-7" if choice == "executed" else "")
    shows(provider, record("T-7"))
    with pytest.raises(errors.CannotResolveError, match="no longer shows transaction T-7 as “failed”"):
        factories.approve(resolution, approver)
    assert reloaded(review).status == Status.REVIEW


def test_a_transaction_that_vanished_and_is_listed_again_by_the_approval_closes_nothing(
    provider: StubProvider, review: Operation, preparer: User, approver: User
) -> None:
    Attempt.objects.update(provider_transaction_id="T-7")
    shows(provider)
    resolution = proposed(review, preparer, "not_executed")
    shows(provider, record("T-7"))
    with pytest.raises(errors.CannotResolveError, match="lists transaction T-7 again"):
        factories.approve(resolution, approver)
    assert reloaded(review).status == Status.REVIEW


@pytest.mark.parametrize(("status", "meaning"), [("completed", None), ("fulfilled", "failed")])
def test_content_with_an_inconsistent_outcome_is_unreadable(
    provider: StubProvider, unknown: Operation, preparer: User, status: str, meaning: str | None
) -> None:
    shows(provider, record("T-7"))
    content = proposed(unknown, preparer, "executed", "T-7").payload
    changed = {"meaning": meaning, "transaction": {**content["transaction"], "status": status}}
    with pytest.raises(ValidationError, match="a meaning must be given"):
        KINDS["resolution"].read(content | changed)


@pytest.mark.parametrize(
    "seen", [{"watermark_transaction_id": "T-7"}, {"watermark_seen_ids": ["T-6", "T-7"]}]
)
def test_a_transaction_from_before_the_attempt_cannot_be_chosen(
    provider: StubProvider, unknown: Operation, seen: dict[str, object]
) -> None:
    shows(provider, record("T-7"))
    Attempt.objects.update(**seen)
    assert (
        "before this operation was sent"
        in resolution_form(unknown, "executed", "T-7").errors["transaction_id"][0]
    )


def test_a_transaction_of_another_operation_cannot_be_chosen(
    provider: StubProvider, unknown: Operation, preparer: User
) -> None:
    other = factories.prepared_to_another_account(preparer)
    claimed(other, "T-7")
    shows(provider, record("T-7"))
    assert (
        f"belongs to {other.reference}"
        in resolution_form(unknown, "executed", "T-7").errors["transaction_id"][0]
    )


def test_a_transaction_claimed_by_another_meanwhile_closes_nothing(
    provider: StubProvider, unknown: Operation, preparer: User, approver: User
) -> None:
    shows(provider, record("T-7"))
    resolution = proposed(unknown, preparer, "executed", "T-7")
    claimed(factories.prepared_to_another_account(preparer), "T-7")
    with pytest.raises(errors.CannotResolveError, match="belongs to another operation"):
        factories.approve(resolution, approver)
    unknown.refresh_from_db()
    resolution.refresh_from_db()
    assert (unknown.status, resolution.status) == (Status.UNKNOWN, Status.PENDING)


def claimed(operation: Operation, transaction_id: str) -> None:
    Attempt.objects.create(
        operation=operation,
        number=1,
        released_by=operation.preparer,
        digest=operation.digest,
        started_at=timezone.now(),
        deadline_at=timezone.now(),
        outcome=Outcome.SUCCEEDED,
        provider_transaction_id=transaction_id,
        closed_at=timezone.now(),
    )
