"""An approved operation that a transaction of the provider has paid without a request from here: two people name it."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger.mirror import sync
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.delivery.release import AnotherPayment, withdraw_release
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import pause
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, PauseCause
from backoffice.operations.models.reconciliation import Comparison
from backoffice.operations.monitoring import inspection
from backoffice.operations.reconciliation import runner
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow import approvals, prepare
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.conftest import SignIn
from tests.operations.provider_list import record, shows
from tests.operations.steps import do, put, show, status_of, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/operations/prepare/resolution/"


@pytest.fixture
def held(provider: StubProvider, released: Operation) -> Operation:
    """An approved operation whose sending was stopped by a similar transaction."""
    shows(provider, record("T-PAID"))
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])
    return Operation.objects.get(pk=released.pk)


def form_for(operation: Operation, transaction_id: str, **values: str) -> Any:
    typed = {"operation": str(operation.pk), "transaction_id": transaction_id, "reason": "Paid by hand"}
    return KINDS["resolution"].form_type({**typed, **values})


def proposed(operation: Operation, person: User, transaction_id: str = "T-PAID") -> Operation:
    form = form_for(operation, transaction_id)
    assert form.is_valid(), form.errors
    return prepare.prepare_operation(uuid.uuid4(), actor=person, kind="resolution", payload=form.payload())


def refused(operation: Operation, transaction_id: str, **values: str) -> str:
    form = form_for(operation, transaction_id, **values)
    assert not form.is_valid()
    return str(form.errors)


def test_two_people_close_it_with_the_transaction(
    provider: StubProvider, held: Operation, preparer: User, approver: User
) -> None:
    factories.record_rights()
    resolution = proposed(held, preparer)
    assert status_of(held) == Status.APPROVED
    factories.approve(resolution, approver)
    attempt = Attempt.objects.get()
    assert (status_of(held), status_of(resolution)) == (Status.SUCCEEDED, Status.SUCCEEDED)
    assert (attempt.outcome, attempt.provider_transaction_id, attempt.fee) == (
        Outcome.SUCCEEDED,
        "T-PAID",
        50,
    )
    assert (attempt.released_by, attempt.begun_at, attempt.resolution) == (None, None, resolution)
    for text in (str(preparer), str(approver), resolution.reference, "Paid by hand"):
        assert text in attempt.response
    entry = Entry.objects.get(action=Action.OPERATION_RESOLVED)
    assert (entry.target_id, entry.actor_id) == (str(held.pk), approver.pk)
    assert entry.detail["provider_transaction_id"] == "T-PAID"
    assert entry.detail["resolution"] == resolution.reference
    assert provider.posts == []
    assert inspection.inspect(full=True).violations == {}


def test_nothing_of_it_is_released_afterwards(
    held: Operation, preparer: User, approver: User, provider: StubProvider
) -> None:
    factories.approve(proposed(held, preparer), approver)
    with pytest.raises(errors.WrongStatusError):
        factories.release(held, approver)
    send.send_operation(held.pk)
    assert provider.posts == []


def test_the_person_who_names_it_cannot_approve(held: Operation, approver: User) -> None:
    resolution = proposed(held, approver)
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(resolution, approver)
    assert (status_of(held), Attempt.objects.count()) == (Status.APPROVED, 0)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"amount": 250001}, "Fields that differ: Amount"),
        ({"type": "sent"}, "Fields that differ: Type"),
        ({"type": "deposit"}, "not the payment of this operation"),
        ({"status": "failed"}, "paid nothing"),
        ({"status": "processing"}, "still shows it as processing"),
        ({"currency": "USD"}, "Fields that differ: Currency"),
        (
            {"createdAt": (datetime.now(UTC) - timedelta(days=1)).isoformat()},
            "since this operation was prepared",
        ),
        ({"createdAt": None}, "since this operation was prepared"),
    ],
    ids=["amount", "type", "direction", "failed", "processing", "currency", "older", "no time"],
)
def test_a_transaction_that_does_not_match_is_refused(
    provider: StubProvider, preparer: User, approver: User, changes: dict[str, Any], problem: str
) -> None:
    approved = factories.approved(preparer, approver)
    shows(provider, record("T-OTHER", **changes))
    assert problem in refused(approved, "T-OTHER")


def test_one_without_a_time_that_stopped_the_release_can_be_named(
    provider: StubProvider, released: Operation, preparer: User, approver: User
) -> None:
    shows(provider, record("T-PAID", createdAt=None))
    send.send_operation(released.pk)
    factories.approve(proposed(released, preparer), approver)
    assert status_of(released) == Status.SUCCEEDED


def test_an_unknown_status_needs_its_meaning(provider: StubProvider, held: Operation) -> None:
    shows(provider, record("T-PAID", "settled"))
    assert "Select what it means" in refused(held, "T-PAID")
    assert "did not pay" in refused(held, "T-PAID", meaning="failed")
    assert form_for(held, "T-PAID", meaning="succeeded").is_valid()


def test_a_transaction_of_another_operation_is_refused(
    provider: StubProvider, held: Operation, preparer: User, approver: User
) -> None:
    other = factories.approved(preparer, approver, duplicate_reason="Two invoices")
    factories.approve(proposed(held, preparer), approver)
    assert f"belongs to {held.reference}" in refused(other, "T-PAID")


def test_a_transaction_claimed_meanwhile_closes_nothing(
    held: Operation, preparer: User, approver: User
) -> None:
    other = factories.approved(preparer, approver, duplicate_reason="Two invoices")
    first, second = proposed(held, preparer), proposed(other, preparer)
    factories.approve(first, approver)
    with pytest.raises(errors.CannotResolveError, match="belongs to another operation"):
        factories.approve(second, approver)
    assert (status_of(other), Attempt.objects.count()) == (Status.APPROVED, 1)


def test_a_late_response_of_an_attempt_that_was_not_executed_may_have_named_it(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    approved = factories.approved(preparer, approver)
    now = timezone.now()
    earlier = factories.attempt(
        approved,
        outcome=Outcome.NOT_SENT,
        closed_at=now,
        provider_transaction_id="T-PAID",
        id_received_at=now,
    )
    shows(provider, record("T-PAID"))
    factories.approve(proposed(approved, preparer), approver)
    earlier.refresh_from_db()
    assert (status_of(approved), earlier.provider_transaction_id) == (Status.SUCCEEDED, None)
    assert Attempt.objects.get(provider_transaction_id="T-PAID").number == 2


def test_a_transaction_that_changed_since_closes_nothing(
    provider: StubProvider, held: Operation, preparer: User, approver: User
) -> None:
    resolution = proposed(held, preparer)
    for changed in (record("T-PAID", "failed"), record("T-PAID", amount=1)):
        shows(provider, changed)
        with pytest.raises(errors.CannotResolveError, match="no longer shows transaction T-PAID"):
            factories.approve(resolution, approver)
    assert (status_of(held), Attempt.objects.count()) == (Status.APPROVED, 0)


def test_a_released_operation_is_not_resolved(
    provider: StubProvider, released: Operation, preparer: User
) -> None:
    shows(provider, record("T-PAID"))
    assert "no unknown outcome" in refused(released, "T-PAID", choice="executed")


def test_a_release_at_the_same_time_is_not_overtaken(
    held: Operation, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began before the resolution was stored."""
    resolution = proposed(held, preparer)
    monkeypatch.setattr("backoffice.operations.policy._check_not_paid", lambda _: None)
    factories.release(held, approver, statement=AnotherPayment(("T-PAID",), "Another invoice"))
    with pytest.raises(errors.CannotResolveError, match="can no longer be resolved in this way"):
        factories.approve(resolution, approver)
    assert (status_of(held), Attempt.objects.count()) == (Status.APPROVED, 0)


def test_an_operation_that_was_sent_meanwhile_is_not_resolved(
    provider: StubProvider, held: Operation, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolution = proposed(held, preparer)
    provider.answer_post = lambda: (502, "bad gateway")
    monkeypatch.setattr("backoffice.operations.policy._check_not_paid", lambda _: None)
    factories.release(held, approver, statement=AnotherPayment(("T-PAID",), "Another invoice"))
    send.send_operation(held.pk)
    assert status_of(held) == Status.UNKNOWN
    with pytest.raises(errors.CannotResolveError, match="is already"):
        factories.approve(resolution, approver)
    assert Attempt.objects.count() == 1


def test_it_is_not_sent_cancelled_or_expired_while_the_resolution_waits(
    held: Operation, preparer: User, approver: User, second_approver: User
) -> None:
    resolution = proposed(held, preparer)
    with pytest.raises(
        errors.OperationError, match=f"{resolution.reference} would resolve this as already paid"
    ):
        factories.release(held, approver, statement=AnotherPayment(("T-PAID",), "Another invoice"))
    with pytest.raises(errors.MaybeExecutedError):
        approvals.cancel_operation(held.pk, actor=preparer)
    with lifted(connection):
        Operation.objects.filter(pk=held.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    assert approvals.expire_operation(held.pk) is None
    approvals.reject_operation(
        resolution.pk,
        actor=second_approver,
        digest=resolution.digest,
        second_factor_at=timezone.now(),
        reason="It is another one",
    )
    assert approvals.expire_operation(held.pk) is not None


def test_an_altered_operation_is_not_closed_as_paid(held: Operation, preparer: User, approver: User) -> None:
    resolution = proposed(held, preparer)
    with lifted(connection):
        Operation.objects.filter(pk=held.pk).update(seal="")
    with pytest.raises(errors.CannotResolveError, match="altered"):
        factories.approve(resolution, approver)
    assert Incident.objects.get(kind=IncidentKind.ALTERED_RECORD).operation == held


def attempt_without_a_request(operation: Operation, **values: Any) -> Attempt:
    values = {"released_by": None, "outcome": Outcome.SUCCEEDED, "provider_transaction_id": "T-PAID"} | values
    return factories.attempt(operation, closed_at=timezone.now(), **values)


def test_the_database_keeps_no_attempt_that_neither_a_person_nor_a_resolution_made(held: Operation) -> None:
    with pytest.raises(IntegrityError, match="attempt_released_or_resolved"):
        attempt_without_a_request(held)


def test_the_database_closes_nothing_as_paid_that_is_released(held: Operation, preparer: User) -> None:
    now = timezone.now()
    resolution = put(proposed(held, preparer), Status.APPROVED)
    Release.objects.create(operation=held, released_by=preparer, released_at=now, expires_at=now)
    attempt_without_a_request(held, resolution=resolution)
    with pytest.raises(IntegrityError, match="no such edge between states"):
        put(held, Status.SUCCEEDED)
    Release.objects.all().delete()
    put(held, Status.SUCCEEDED)


def test_the_database_lets_no_unapproved_resolution_close_it(held: Operation, preparer: User) -> None:
    attempt_without_a_request(held, resolution=proposed(held, preparer))
    with pytest.raises(IntegrityError, match="no such edge between states"):
        put(held, Status.SUCCEEDED)


def test_reconciliation_counts_it_as_matched(
    provider: StubProvider, held: Operation, preparer: User, approver: User
) -> None:
    factories.approve(proposed(held, preparer), approver)
    sync.load_all(lambda _: None)
    runner.reconcile()
    assert Comparison.objects.get(attempt__operation=held).result == "matched"
    assert not Incident.objects.exists()


def test_the_page_offers_it_beside_the_records(
    held: Operation, as_preparer: Client, as_approver: Client, preparer: User
) -> None:
    html = text_of(show(as_preparer, held))
    assert "This transaction is this payment…" in html
    assert f"{PAGE}?operation={held.pk}&amp;transaction_id=T-PAID" in html
    page = text_of(as_preparer.get(f"{PAGE}?operation={held.pk}&transaction_id=T-PAID"))
    assert "Resolve as already paid" in page
    assert 'name="choice"' not in page
    resolution = proposed(held, preparer)
    html = text_of(show(as_approver, held))
    assert resolution.reference in html
    assert PAGE not in html
    assert do(as_approver, resolution, "approve").status_code == 302
    closed = text_of(show(as_approver, held))
    assert "Succeeded, not sent by Countersign" in closed
    assert "None" not in closed
    receipt = text_of(as_approver.get(f"/operations/{held.pk}/receipt/"))
    assert "T-PAID" in receipt
    assert "Paid by hand" in receipt


def test_the_page_does_not_offer_it_without_the_permission(
    held: Operation, sign_in: SignIn, auditor: User
) -> None:
    assert PAGE not in text_of(show(sign_in(Client(), auditor), held))


@pytest.mark.parametrize("cause", ["", PauseCause.JOURNAL_LOST, PauseCause.DATABASE_RESTORED])
def test_the_page_offers_it_without_a_similar_transaction_after_a_loss(
    preparer: User, approver: User, as_preparer: Client, cause: str
) -> None:
    approved = factories.approved(preparer, approver)
    if cause:
        with transaction.atomic():
            pause.pause_because_of(PauseCause(cause))
    is_offered = f"{PAGE}?operation={approved.pk}" in text_of(show(as_preparer, approved))
    assert is_offered == bool(cause)


def test_what_a_journal_shows_as_sent_is_left_to_the_checks(
    provider: StubProvider, preparer: User, approver: User, as_preparer: Client
) -> None:
    approved = factories.approved(preparer, approver)
    with transaction.atomic():
        factories.lost_attempt(factories.incident_of_restore(), approved)
    shows(provider, record("T-PAID"))
    assert "no unknown outcome" in refused(approved, "T-PAID", choice="executed")
    assert PAGE not in text_of(show(as_preparer, approved))


def test_the_approver_reads_that_somebody_declared_it_another_payment(
    provider: StubProvider, held: Operation, approver: User, preparer: User
) -> None:
    factories.release(held, approver, statement=AnotherPayment(("T-PAID",), "Another invoice"))
    withdraw_release(Release.objects.get(), errors.ExpiredError())
    resolution = proposed(held, preparer)
    kind = KINDS["resolution"]
    cautions = kind.cautions(kind.read(resolution.payload))
    assert any("Another invoice" in caution for caution in cautions)
    assert LookAlike.objects.get().declared_by == approver
