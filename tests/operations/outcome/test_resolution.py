"""Resolving an operation that automatic checks could not close: one person prepares it, another approves it."""

import re
import uuid
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone, translation

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.provider_list import shows
from tests.operations.steps import do, let_pass, show, text_of
from tests.operations.unknown_outcomes import in_review, proposed, record, resolution_form, resolved
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("shown", "status", "outcome"),
    [
        ("fullfiled", Status.SUCCEEDED, Outcome.SUCCEEDED),
        ("failed", Status.FAILED, Outcome.FAILED),
    ],
)
def test_executed_closes_with_the_status_of_the_transaction(
    provider: StubProvider,
    unknown: Operation,
    preparer: User,
    approver: User,
    shown: str,
    status: str,
    outcome: str,
) -> None:
    shows(provider, record("T-7", shown))
    let_pass(Attempt.EXECUTION_WINDOW)
    assert resolved(unknown, preparer, approver, "executed", "T-7").status == status
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.provider_transaction_id, attempt.fee) == (outcome, "T-7", 50)
    assert attempt.resolution is not None
    assert attempt.resolution.kind == "resolution"
    assert attempt.closed_at is not None


@pytest.mark.parametrize("choice", ["executed", "not_executed"])
def test_the_sheet_to_print_names_the_resolution(
    provider: StubProvider,
    review: Operation,
    preparer: User,
    approver: User,
    as_approver: Client,
    choice: str,
) -> None:
    shows(provider, record("T-7", "fullfiled"))
    resolved(review, preparer, approver, choice, *(["T-7"] if choice == "executed" else []))
    sheet = text_of(as_approver.get(f"/operations/{review.pk}/receipt/"))
    assert sheet.count(Operation.objects.get(kind="resolution").reference) == 1


def test_not_executed_closes_as_failed(review: Operation, preparer: User, approver: User) -> None:
    closed = resolved(review, preparer, approver, "not_executed")
    attempt = Attempt.objects.get()
    assert (closed.status, attempt.outcome, attempt.provider_transaction_id) == ("failed", "failed", None)
    assert closed.reason == f"Resolved by {Operation.objects.get(kind='resolution').reference}."


def test_an_unapproved_resolution_changes_nothing(review: Operation, preparer: User) -> None:
    proposed(review, preparer, "not_executed")
    review.refresh_from_db()
    assert review.status == Status.REVIEW
    assert Attempt.objects.get().closed_at is None


def test_the_preparer_cannot_approve_the_resolution(review: Operation, approver: User) -> None:
    resolution = proposed(review, approver, "not_executed")
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(resolution, approver)
    review.refresh_from_db()
    assert review.status == Status.REVIEW


def test_the_resolution_is_audited_on_both_operations(
    review: Operation, preparer: User, approver: User
) -> None:
    resolved(review, preparer, approver, "not_executed")
    resolution = Operation.objects.get(kind="resolution")
    on_target = Entry.objects.get(action=Action.OPERATION_RESOLVED)
    assert on_target.target_id == str(review.pk)
    assert (on_target.actor_id, on_target.detail["resolution"]) == (approver.pk, resolution.reference)
    applied = Entry.objects.get(action=Action.OPERATION_APPLIED)
    assert applied.target_id == str(resolution.pk)
    assert resolution.status == Status.SUCCEEDED


def test_not_executed_is_refused_before_the_execution_deadline(
    unknown: Operation,
) -> None:
    form = resolution_form(unknown, "not_executed")
    assert not form.is_valid()
    assert "may execute it until" in form.errors["choice"][0]


def test_the_form_offers_not_executed_after_the_deadline_and_requires_a_transaction(
    unknown: Operation, as_preparer: Client
) -> None:
    page = f"/operations/prepare/resolution/?operation={unknown.pk}"
    html = text_of(as_preparer.get(page))
    assert re.search(r'value="not_executed"[^>]* disabled', html)
    assert "available from" in html
    assert "transaction ID</label>" in html
    in_review(unknown)
    html = text_of(as_preparer.get(page))
    assert "available from" not in html
    assert " disabled" not in html.split('value="not_executed"')[1].split(">")[0]


def test_not_executed_is_not_applied_before_the_execution_deadline(
    review: Operation, preparer: User, approver: User
) -> None:
    resolution = proposed(review, preparer, "not_executed")
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=59))
    with pytest.raises(errors.CannotResolveError, match="may still be executed"):
        factories.approve(resolution, approver)


def test_not_executed_is_not_applied_once_a_new_transaction_is_claimed(
    review: Operation, preparer: User, approver: User
) -> None:
    """A late answer may have named it since the resolution was proposed."""
    resolution = proposed(review, preparer, "not_executed")
    Attempt.objects.update(provider_transaction_id="T-7")
    with pytest.raises(errors.CannotResolveError, match="may still be executed"):
        factories.approve(resolution, approver)


@pytest.mark.parametrize("shown", ["fullfiled", "processing"])
def test_not_executed_is_refused_while_its_transaction_is_executed(
    provider: StubProvider, review: Operation, shown: str
) -> None:
    Attempt.objects.update(provider_transaction_id="T-7")
    shows(provider, record("T-7", shown))
    assert "shows the matched transaction T-7" in resolution_form(review, "not_executed").errors["choice"][0]


@pytest.mark.parametrize(
    ("records", "fact"),
    [
        ([], "T-7, not listed by the provider"),
        ([record("T-7", "reversed", amount=9)], "T-7, status reversed"),
    ],
    ids=["gone", "reversed"],
)
def test_two_people_resolve_one_whose_transaction_is_gone_or_failed(
    provider: StubProvider,
    review: Operation,
    preparer: User,
    approver: User,
    records: list[dict[str, object]],
    fact: str,
) -> None:
    Attempt.objects.update(provider_transaction_id="T-7")
    shows(provider, *records)
    assert resolved(review, preparer, approver, "not_executed").status == Status.FAILED
    resolution = Operation.objects.get(kind="resolution")
    named = resolution.payload["claimed"]
    assert named["transaction_id"] == "T-7"
    assert ("Amount" in named["shown"]["mismatched"]) if records else (named["shown"] is None)
    kind = KINDS["resolution"]
    assert ("Matched transaction", fact) in kind.facts(kind.read(resolution.payload))


def test_a_gone_transaction_cannot_be_resolved_without_the_provider(
    provider: StubProvider, review: Operation
) -> None:
    Attempt.objects.update(provider_transaction_id="T-7")
    provider.records = '"no list at all"'
    assert "could not be read" in resolution_form(review, "not_executed").errors["choice"][0]


def test_a_resolution_is_not_applied_if_a_check_closed_it_first(
    provider: StubProvider, unknown: Operation, as_approver: Client, preparer: User
) -> None:
    shows(provider, record("T-7"))
    resolution = proposed(unknown, preparer, "executed", "T-7")
    Attempt.objects.update(started_at=timezone.now() - timedelta(hours=2))
    confirmation.confirm_operation(unknown.pk)
    answer = do(as_approver, resolution, "approve")
    assert answer.status_code == 422
    assert f"The status of {unknown.reference} is already “Succeeded”. Nothing was changed." in text_of(
        answer
    )
    assert "cannot be applied" in text_of(show(as_approver, resolution))
    assert not resolution.approvals.exists()
    assert Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED, target_id=str(resolution.pk)).exists()


def test_the_evidence_is_part_of_the_approved_content(
    provider: StubProvider, unknown: Operation, preparer: User
) -> None:
    shows(provider, record("T-7", amount=250050))
    resolution = proposed(unknown, preparer, "executed", "T-7")
    seen = resolution.payload["transaction"]
    assert (seen["transaction_id"], seen["amount"], seen["status"]) == ("T-7", "250050", "fulfilled")
    assert seen["mismatched"] == ["Amount"]
    assert resolution.digest == resolution.current_digest()


def test_one_resolution_per_operation_is_pending_at_a_time(
    review: Operation, preparer: User, approver: User
) -> None:
    proposed(review, preparer, "not_executed")
    with pytest.raises(errors.DuplicatePendingError):
        proposed(review, approver, "not_executed")


def test_nothing_is_prepared_without_the_provider(provider: StubProvider, unknown: Operation) -> None:
    provider.records = '"no list at all"'
    assert "could not be read" in resolution_form(unknown, "executed", "T-7").errors["transaction_id"][0]


def test_only_an_unknown_outcome_can_be_resolved(preparer: User) -> None:
    form = resolution_form(factories.prepared(preparer), "not_executed")
    assert "no unknown outcome" in form.errors["__all__"][0]


def test_a_resolution_is_prepared_and_approved_on_the_pages(
    review: Operation, as_preparer: Client, as_approver: Client
) -> None:
    address = f"/operations/prepare/resolution/?operation={review.pk}&choice=not_executed"
    assert review.reference in text_of(as_preparer.get(address))
    form = {"operation": str(review.pk), "choice": "not_executed", "reason": "I asked the bank"}
    submission = str(uuid.uuid4())
    reviewed = as_preparer.post(address, {**form, "submission": submission, "step": "review"})
    assert "not executed" in text_of(reviewed)
    prepare = {"submission": submission, "step": "prepare", "digest": reviewed.context["digest"]}
    assert as_preparer.post(address, {**form, **prepare}).status_code == 302
    resolution = Operation.objects.get(pk=submission)
    assert do(as_approver, resolution, "approve", comment="I heard it too").status_code == 302
    review.refresh_from_db()
    assert review.status == Status.FAILED


def test_mismatched_fields_are_in_the_readers_language() -> None:
    payload = SAMPLES["resolution"].model_copy()
    with translation.override("fr"):
        assert ("Champs divergents", "Montant") in KINDS["resolution"].facts(payload)
        assert any("Montant" in caution for caution in KINDS["resolution"].cautions(payload))
