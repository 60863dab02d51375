"""What became of an operation that the machine could not settle: one person says it, another signs it."""

import re
import uuid
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from pydantic import ValidationError

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors, services
from backoffice.operations.kinds import KINDS, LocalKind
from backoffice.operations.kinds.base import Effect
from backoffice.operations.models import Attempt, Operation
from backoffice.operations.services import approving
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.cases import in_review, lost, proposed, record, said, settled, shows
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import do, put, show, text_of
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def unknown(service: StubService, maker: User, checker: User) -> Operation:
    return lost(service, maker, checker)


@pytest.fixture
def review(unknown: Operation) -> Operation:
    return in_review(unknown)


@pytest.mark.parametrize(
    ("shown", "status", "outcome"),
    [
        ("fullfiled", Status.SUCCEEDED, Outcome.SUCCEEDED),
        ("failed", Status.FAILED, Outcome.FAILED),
    ],
)
def test_what_happened_is_closed_as_the_service_shows_its_transaction(
    service: StubService,
    unknown: Operation,
    maker: User,
    checker: User,
    shown: str,
    status: str,
    outcome: str,
) -> None:
    shows(service, record("T-7", shown))
    assert settled(unknown, maker, checker, "happened", "T-7").status == status
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.service_transaction_id, attempt.fee) == (outcome, "T-7", 50)
    assert attempt.resolution is not None
    assert attempt.resolution.kind == "resolution"
    assert attempt.closed_at is not None


def test_what_did_not_happen_is_closed_as_failed(review: Operation, maker: User, checker: User) -> None:
    closed = settled(review, maker, checker, "did_not_happen")
    attempt = Attempt.objects.get()
    assert (closed.status, attempt.outcome, attempt.service_transaction_id) == ("failed", "failed", None)
    assert (
        closed.reason
        == f"Settled by {Operation.objects.get(kind='resolution').reference}, which two people signed."
    )


def test_a_proposal_alone_changes_nothing(review: Operation, maker: User) -> None:
    proposed(review, maker, "did_not_happen")
    review.refresh_from_db()
    assert review.status == Status.REVIEW
    assert Attempt.objects.get().closed_at is None


def test_whoever_proposes_it_cannot_countersign_it(review: Operation, checker: User) -> None:
    resolution = proposed(review, checker, "did_not_happen")
    with pytest.raises(errors.SelfApprovalError):
        factories.countersigned(resolution, checker)
    review.refresh_from_db()
    assert review.status == Status.REVIEW


def test_both_operations_have_it_on_record(review: Operation, maker: User, checker: User) -> None:
    settled(review, maker, checker, "did_not_happen")
    resolution = Operation.objects.get(kind="resolution")
    on_target = Entry.objects.get(action=Action.OPERATION_RESOLVED)
    assert on_target.target_id == str(review.pk)
    assert (on_target.actor_id, on_target.detail["resolution"]) == (checker.pk, resolution.reference)
    applied = Entry.objects.get(action=Action.OPERATION_APPLIED)
    assert applied.target_id == str(resolution.pk)
    assert resolution.status == Status.SUCCEEDED


def test_it_cannot_be_said_not_to_have_happened_while_the_service_may_still_execute_it(
    unknown: Operation,
) -> None:
    form = said(unknown, "did_not_happen")
    assert not form.is_valid()
    assert "may execute it until" in form.errors["verdict"][0]


def test_it_cannot_be_chosen_before_its_time_and_the_transaction_is_not_optional(
    unknown: Operation, as_maker: Client
) -> None:
    page = f"/operations/prepare/resolution/?operation={unknown.pk}"
    html = text_of(as_maker.get(page))
    assert re.search(r'value="did_not_happen"[^>]* disabled', html)
    assert "can be chosen from" in html
    assert "As which transaction of the service, if it happened</label>" in html
    in_review(unknown)
    html = text_of(as_maker.get(page))
    assert "can be chosen from" not in html
    assert " disabled" not in html.split('value="did_not_happen"')[1].split(">")[0]


def test_nor_is_it_applied_while_the_service_may_still_execute_it(
    review: Operation, maker: User, checker: User
) -> None:
    resolution = proposed(review, maker, "did_not_happen")
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=59))
    with pytest.raises(errors.CannotSettleError, match="may still be executed"):
        factories.countersigned(resolution, checker)


def test_nor_once_it_has_a_transaction_that_was_not_part_of_what_was_signed(
    review: Operation, maker: User, checker: User
) -> None:
    """A late answer may have named it since the resolution was proposed."""
    resolution = proposed(review, maker, "did_not_happen")
    Attempt.objects.update(service_transaction_id="T-7")
    with pytest.raises(errors.CannotSettleError, match="may still be executed"):
        factories.countersigned(resolution, checker)


@pytest.mark.parametrize("shown", ["fullfiled", "processing"])
def test_it_cannot_be_said_not_to_have_happened_while_its_transaction_is_executed(
    service: StubService, review: Operation, shown: str
) -> None:
    Attempt.objects.update(service_transaction_id="T-7")
    shows(service, record("T-7", shown))
    assert "shows transaction T-7" in said(review, "did_not_happen").errors["verdict"][0]


@pytest.mark.parametrize(
    ("records", "fact"),
    [
        ([], "transaction T-7, which the service does not show"),
        ([record("T-7", "reversed", amount=9)], "transaction T-7, which the service shows as reversed"),
    ],
    ids=["gone", "reversed"],
)
def test_two_people_settle_one_whose_transaction_is_gone_or_not_executed(
    service: StubService,
    review: Operation,
    maker: User,
    checker: User,
    records: list[dict[str, object]],
    fact: str,
) -> None:
    Attempt.objects.update(service_transaction_id="T-7")
    shows(service, *records)
    assert settled(review, maker, checker, "did_not_happen").status == Status.FAILED
    resolution = Operation.objects.get(kind="resolution")
    named = resolution.payload["named"]
    assert named["transaction_id"] == "T-7"
    assert ("Amount" in named["shown"]["differs"]) if records else (named["shown"] is None)
    kind = KINDS["resolution"]
    assert ("Taken for it", fact) in kind.facts(kind.read(resolution.payload))


def test_without_the_service_nobody_says_that_its_transaction_is_gone(
    service: StubService, review: Operation
) -> None:
    Attempt.objects.update(service_transaction_id="T-7")
    service.records = '"no list at all"'
    assert "cannot be read now" in said(review, "did_not_happen").errors["verdict"][0]


@pytest.mark.parametrize(
    ("shown", "wanted", "problem"),
    [
        ({}, "", "Name the transaction"),
        ({}, "T-8", "does not show this transaction"),
        ({"status": "processing"}, "T-7", "still shows it as processing"),
        ({"createdAt": "2026-01-02T08:00:00Z"}, "T-7", "does not show this transaction"),
    ],
)
def test_what_happened_needs_a_definite_transaction_that_the_service_shows(
    service: StubService, unknown: Operation, shown: dict[str, object], wanted: str, problem: str
) -> None:
    shows(service, record("T-7") | shown)
    assert problem in said(unknown, "happened", wanted).errors["transaction_id"][0]


@pytest.mark.parametrize(
    ("end", "means"), [("succeeded", "it succeeded"), ("failed", "it failed and no money is gone")]
)
def test_what_happened_under_a_word_that_is_not_known_ends_as_both_have_signed(
    service: StubService, unknown: Operation, maker: User, checker: User, end: str, means: str
) -> None:
    shows(service, record("T-7", "completed"))
    assert settled(unknown, maker, checker, "happened", "T-7", end).status == Status(end)
    attempt = Attempt.objects.get()
    assert (attempt.outcome, attempt.service_transaction_id) == (Outcome(end), "T-7")
    resolution = Operation.objects.get(kind="resolution")
    assert f"as transaction T-7, and “completed” means that {means}" in resolution.sentence
    assert resolution.payload["meaning"] == end
    assert resolution.payload["transaction"]["status"] == "completed"
    assert resolution.digest == resolution.current_digest()


@pytest.mark.parametrize("status", ["completed", "reversed", ""])
def test_a_word_that_is_not_known_is_asked_about_on_the_page(
    service: StubService, unknown: Operation, as_maker: Client, status: str
) -> None:
    address = "/operations/prepare/resolution/"
    form = {"operation": str(unknown.pk), "verdict": "happened", "transaction_id": "T-7", "reason": "Asked"}
    assert 'name="meaning"' not in text_of(as_maker.get(address, form))
    shows(service, record("T-7", status))
    asked = as_maker.post(address, {**form, "step": "review"})
    assert asked.status_code == 422
    word = f"“{status}”" if status else "having no status"
    assert f"What {word} means" in text_of(asked)
    assert f"shows it as {word}, which is neither fulfilled nor failed" in text_of(asked)
    reviewed = as_maker.post(address, {**form, "meaning": "failed", "step": "review"})
    assert reviewed.status_code == 200
    assert f"{word} means that it failed and no money is gone" in text_of(reviewed)
    assert "The money did not move, or is back: it failed" in text_of(reviewed)
    assert "ask the service yourself" in text_of(reviewed)


def test_nobody_says_what_a_word_means_that_is_known(service: StubService, unknown: Operation) -> None:
    shows(service, record("T-7"))
    form = said(unknown, "happened", "T-7", meaning="failed")
    assert "that tells how it ended" in form.errors["__all__"][0]
    assert not form.asks_for_meaning


@pytest.mark.parametrize(("status", "meaning"), [("completed", None), ("fulfilled", "failed")])
def test_content_that_does_not_say_how_it_ended_once_is_unreadable(
    service: StubService, unknown: Operation, maker: User, status: str, meaning: str | None
) -> None:
    shows(service, record("T-7"))
    content = proposed(unknown, maker, "happened", "T-7").payload
    changed = {"meaning": meaning, "transaction": {**content["transaction"], "status": status}}
    with pytest.raises(ValidationError, match="the end is told by"):
        KINDS["resolution"].read(content | changed)


@pytest.mark.parametrize("seen", [{"watermark_transaction_id": "T-7"}, {"watermark_shown": ["T-6", "T-7"]}])
def test_a_transaction_that_was_there_before_ours_is_another(
    service: StubService, unknown: Operation, seen: dict[str, object]
) -> None:
    shows(service, record("T-7"))
    Attempt.objects.update(**seen)
    assert "before ours was sent" in said(unknown, "happened", "T-7").errors["transaction_id"][0]


def test_a_transaction_of_another_operation_cannot_be_named(
    service: StubService, unknown: Operation, maker: User
) -> None:
    other = factories.prepared_apart(maker)
    claimed(other, "T-7")
    shows(service, record("T-7"))
    assert f"belongs to {other.reference}" in said(unknown, "happened", "T-7").errors["transaction_id"][0]


def test_a_transaction_that_became_anothers_meanwhile_closes_nothing(
    service: StubService, unknown: Operation, maker: User, checker: User
) -> None:
    shows(service, record("T-7"))
    resolution = proposed(unknown, maker, "happened", "T-7")
    claimed(factories.prepared_apart(maker), "T-7")
    with pytest.raises(errors.CannotSettleError, match="another operation's by now"):
        factories.countersigned(resolution, checker)
    unknown.refresh_from_db()
    resolution.refresh_from_db()
    assert (unknown.status, resolution.status) == (Status.UNKNOWN, Status.PENDING)


def test_if_the_machine_closes_it_first_the_resolution_is_not_applied_and_says_so(
    service: StubService, unknown: Operation, as_checker: Client, maker: User
) -> None:
    shows(service, record("T-7"))
    resolution = proposed(unknown, maker, "happened", "T-7")
    Attempt.objects.update(started_at=timezone.now() - timedelta(hours=2))
    services.confirm_operation(unknown.pk)
    answer = do(as_checker, resolution, "approve")
    assert answer.status_code == 422
    assert f"{unknown.reference} is succeeded by now, without this. Nothing was changed." in text_of(answer)
    assert "cannot be applied any more" in text_of(show(as_checker, resolution))
    assert not resolution.approvals.exists()
    assert Entry.objects.filter(action=Action.OPERATION_REFUSED, target_id=str(resolution.pk)).exists()


def test_the_evidence_is_part_of_what_is_signed(
    service: StubService, unknown: Operation, maker: User
) -> None:
    shows(service, record("T-7", amount=250050))
    resolution = proposed(unknown, maker, "happened", "T-7")
    seen = resolution.payload["transaction"]
    assert (seen["transaction_id"], seen["amount"], seen["status"]) == ("T-7", "250050", "fulfilled")
    assert seen["differs"] == ["Amount"]
    assert resolution.digest == resolution.current_digest()


def test_one_proposal_about_one_operation_waits_at_a_time(
    review: Operation, maker: User, checker: User
) -> None:
    proposed(review, maker, "did_not_happen")
    with pytest.raises(errors.SameContentWaitsError):
        proposed(review, checker, "did_not_happen")


def test_without_the_service_nothing_is_proposed(service: StubService, unknown: Operation) -> None:
    service.records = '"no list at all"'
    assert "cannot be read now" in said(unknown, "happened", "T-7").errors["transaction_id"][0]


def test_only_an_open_case_can_be_settled(maker: User) -> None:
    form = said(factories.prepared(maker), "did_not_happen")
    assert "never open" in form.errors["__all__"][0]


def test_the_next_one_may_leave_the_balance_once_it_is_settled(
    review: Operation, maker: User, checker: User
) -> None:
    assert Attempt.objects.in_doubt("NGN").exists()
    settled(review, maker, checker, "did_not_happen")
    assert not Attempt.objects.in_doubt("NGN").exists()


# The same again


@pytest.mark.parametrize("status", [Status.UNKNOWN, Status.REVIEW, Status.SENDING])
def test_the_same_is_not_prepared_while_nobody_knows_whether_it_happened(
    unknown: Operation, maker: User, status: str
) -> None:
    if status == Status.REVIEW:
        in_review(unknown)
    elif status == Status.SENDING:
        put_past_the_rules(unknown, status)
    with pytest.raises(errors.SameInDoubtError, match=f"{unknown.reference} is the same, was sent"):
        factories.prepared(maker, memo="another memo")
    assert Operation.objects.count() == 1


def test_the_form_that_would_prepare_the_same_leads_to_the_one_in_doubt(
    service: StubService, as_maker: Client, maker: User, checker: User
) -> None:
    service.answer_post = lambda: (502, "bad gateway")
    pending = factories.of_kind("transfer", SAMPLES["transfer"], maker)
    operation = factories.release(factories.countersigned(pending, checker), checker)
    services.send_operation(operation.pk)
    form = {"receiver_username": "ngozi.eze", "currency": "NGN", "amount": "60000.00", "memo": "week 47"}
    answer = as_maker.post("/operations/prepare/transfer/", {**form, "step": "review"})
    assert answer.status_code == 422
    assert f'<a href="/operations/{operation.pk}/">Look at it</a>' in text_of(answer)


def test_another_amount_or_beneficiary_is_not_the_same(unknown: Operation, maker: User) -> None:
    factories.prepared(maker, amount="250000.01")
    factories.prepared(maker, account_number="9876543210")
    assert Operation.objects.count() == 3


def test_once_settled_the_new_one_names_the_old_also_from_a_fresh_form(
    review: Operation, maker: User, checker: User, service: StubService
) -> None:
    settled(review, maker, checker, "did_not_happen")
    anew = factories.prepared(maker)
    assert anew.prepared_from == review
    services.cancel_operation(anew.pk, actor=maker)
    again = factories.approved(maker, checker)
    assert again.prepared_from == review
    service.answer_post = lambda: (200, '{"data": {"transactionId": "T-9"}}')
    services.send_operation(factories.release(again, checker).pk)
    assert factories.prepared(maker).prepared_from is None


def test_what_happened_is_not_named_by_a_further_payment(
    service: StubService, unknown: Operation, maker: User, checker: User
) -> None:
    shows(service, record("T-7"))
    settled(unknown, maker, checker, "happened", "T-7")
    assert factories.prepared(maker).prepared_from is None


# What is applied here


def test_every_effect_is_some_kinds_and_can_be_applied() -> None:
    declared = {kind.effect for kind in KINDS.values() if isinstance(kind, LocalKind)}
    assert declared == set(Effect) == set(approving._EFFECTS)


def test_nothing_that_is_applied_here_is_ever_sent(
    service: StubService, review: Operation, maker: User, checker: User
) -> None:
    resolution = proposed(review, maker, "did_not_happen")
    before = list(service.changes)
    now = timezone.now()
    with pytest.raises(errors.WrongStatusError, match="nothing to send"):
        services.approve_and_release_operation(
            resolution.pk, actor=checker, digest=resolution.digest, second_factor_at=now
        )
    resolution.refresh_from_db()
    assert resolution.status == Status.PENDING
    factories.countersigned(resolution, checker)
    services.send_operation(resolution.pk)
    assert service.changes == before
    assert not resolution.attempts.exists()


def test_the_page_speaks_of_applying_and_not_of_sending(
    review: Operation, as_checker: Client, maker: User
) -> None:
    resolution = proposed(review, maker, "did_not_happen")
    html = text_of(show(as_checker, resolution))
    assert "Countersign and apply" in html
    assert "Approve and send" not in html
    assert html.index("Prepared<small>") < html.index("Countersigned<small>") < html.index("Applied<small>")
    assert do(as_checker, resolution, "approve").status_code == 302
    html = text_of(show(as_checker, resolution))
    assert "It was applied here with the last countersignature. Nothing was sent." in html
    assert "which two people signed" in text_of(show(as_checker, review))


def test_it_is_decided_alone(review: Operation, maker: User, checker: User) -> None:
    resolution = proposed(review, maker, "did_not_happen")
    line = services.approve_operations(
        [services.Choice(resolution, resolution.digest)], actor=checker, second_factor_at=timezone.now()
    )[0]
    assert "one by one" in line.text
    resolution.refresh_from_db()
    assert resolution.status == Status.PENDING


def test_the_database_lets_nothing_be_applied_that_was_sent_once(
    service: StubService, review: Operation, maker: User
) -> None:
    resolution = proposed(review, maker, "did_not_happen")
    put(resolution, Status.APPROVED)
    attempt = Attempt.objects.get()
    attempt.pk, attempt.operation, attempt.balance = None, resolution, None
    attempt.save(force_insert=True)
    with pytest.raises(DatabaseError, match="operation_known_edges"), transaction.atomic():
        Operation.objects.filter(pk=resolution.pk).update(status="succeeded", closed_at=timezone.now())


def test_it_is_proposed_and_signed_on_the_pages(
    review: Operation, as_maker: Client, as_checker: Client
) -> None:
    address = f"/operations/prepare/resolution/?operation={review.pk}&verdict=did_not_happen"
    assert review.reference in text_of(as_maker.get(address))
    form = {"operation": str(review.pk), "verdict": "did_not_happen", "reason": "I asked the bank"}
    submission = str(uuid.uuid4())
    reviewed = as_maker.post(address, {**form, "submission": submission, "step": "review"})
    assert "it did not happen" in text_of(reviewed)
    prepare = {"submission": submission, "step": "prepare", "digest": reviewed.context["digest"]}
    assert as_maker.post(address, {**form, **prepare}).status_code == 302
    resolution = Operation.objects.get(pk=submission)
    assert do(as_checker, resolution, "approve", comment="I heard it too").status_code == 302
    review.refresh_from_db()
    assert review.status == Status.FAILED


def claimed(operation: Operation, transaction_id: str) -> None:
    Attempt.objects.create(
        operation=operation,
        number=1,
        released_by=operation.maker,
        digest=operation.digest,
        started_at=timezone.now(),
        deadline_at=timezone.now(),
        outcome=Outcome.SUCCEEDED,
        service_transaction_id=transaction_id,
        closed_at=timezone.now(),
    )


def put_past_the_rules(operation: Operation, status: str) -> None:
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(status=status)
