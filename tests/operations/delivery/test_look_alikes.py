"""A transaction at the provider that looks like an operation not sent yet stops its sending."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.ledger.mirror import sync
from backoffice.ledger.models import Transaction
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.delivery.release import AnotherPayment
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import RecordFault
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from tests import factories
from tests.append_only.triggers import lifted
from tests.ledger.long_list import LongList
from tests.operations.provider_list import NAMED, NAMELESS, OLD, record, shows
from tests.operations.steps import code_of, do, show, status_of, text_of
from tests.stub_provider import StubProvider, serving

pytestmark = pytest.mark.django_db(transaction=True)


def prepared_ago(operation: Operation, ago: timedelta) -> None:
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(prepared_at=timezone.now() - ago)
        stored = Operation.objects.get(pk=operation.pk)
        stored.make_seal()
        stored.save(update_fields=["seal"])


def at(ago: timedelta) -> str:
    return (datetime.now(UTC) - ago).isoformat()


def test_a_similar_transaction_since_the_preparation_stops_the_release(
    provider: StubProvider, released: Operation
) -> None:
    shows(provider, record("T-ELSEWHERE"))
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts, Attempt.objects.count()) == (Status.APPROVED, [], 0)
    assert not Release.objects.filter(operation=released).exists()
    found = LookAlike.objects.get(operation=released)
    assert (found.transaction_id, found.declared_at) == ("T-ELSEWHERE", None)
    entry = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).latest("position")
    assert entry.detail["refusal"] == {"code": "look_alike", "transactions": "T-ELSEWHERE"}


def test_a_similar_transaction_since_the_preparation_is_found_in_the_mirror(
    provider: StubProvider, released: Operation
) -> None:
    """The provider's own list is read only as far back as the mirror is not complete."""
    prepared_ago(released, timedelta(days=2))
    shows(provider, record("T-YESTERDAY", createdAt=at(timedelta(days=1))))
    sync.load_all(lambda _: None)
    shows(provider)
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])


def test_a_similar_transaction_that_the_list_leaves_out_for_a_time_stops_the_release(
    provider: StubProvider, released: Operation
) -> None:
    prepared_ago(released, timedelta(days=2))
    shows(provider, record("T-YESTERDAY", createdAt=at(timedelta(days=1))))
    sync.load_all(lambda _: None)
    shows(provider)
    sync.restart_full_pass()
    sync.load_all(lambda _: None)
    assert Transaction.objects.get(transaction_id="T-YESTERDAY").missing_since
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])


def test_a_similar_transaction_since_the_preparation_is_found_without_a_mirror(
    provider: StubProvider, released: Operation
) -> None:
    prepared_ago(released, timedelta(days=2))
    shows(provider, record("T-YESTERDAY", createdAt=at(timedelta(days=1))))
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])


@pytest.mark.parametrize("behind", [None, timedelta(hours=1)], ids=["not known", "an hour behind"])
def test_the_providers_clock_hides_no_similar_transaction(
    provider: StubProvider, released: Operation, behind: timedelta | None
) -> None:
    provider.clock_behind = behind
    shows(provider, record("T-ELSEWHERE", createdAt=at(behind or timedelta())))
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])


def test_a_similar_transaction_on_the_second_page_stops_the_release(
    settings: Settings, released: Operation
) -> None:
    """Records of one page are not strictly ordered: one old record says nothing of the next page."""
    with serving(LongList()) as provider:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = provider.url, provider.url_v4
        newer = [record(f"T-{number}", amount=1) for number in range(99)]
        provider.listed = [*newer, OLD, record("T-ELSEWHERE")]
        send.send_operation(released.pk)
        assert (status_of(released), provider.posts) == (Status.APPROVED, [])


def test_a_list_that_takes_too_long_to_read_ends_the_release(
    settings: Settings, released: Operation, monkeypatch: pytest.MonkeyPatch, as_approver: Client
) -> None:
    monkeypatch.setattr(send, "PREFLIGHT_SECONDS", 0)
    with serving(LongList()) as provider:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = provider.url, provider.url_v4
        provider.listed = [record(f"T-{number}", amount=1) for number in range(250)]
        send.send_operation(released.pk)
        assert (status_of(released), provider.posts, Release.objects.count()) == (Status.APPROVED, [], 0)
        entry = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).latest("position")
        assert entry.detail["refusal"] == {"code": "list_too_long"}
        html = text_of(show(as_approver, released))
        assert "are still being read" in html
        assert "must cancel it" not in html


def test_a_similar_record_without_a_time_counts_unless_the_mirror_had_it_before(
    provider: StubProvider, released: Operation
) -> None:
    shows(provider, record("T-UNTIMED", createdAt=None))
    sync.load_all(lambda _: None)
    Transaction.objects.update(occurred_at=timezone.now() - timedelta(days=9))
    shows(provider, record("T-UNTIMED", createdAt=None))
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


def test_a_similar_record_without_a_time_that_is_new_stops_the_release(
    provider: StubProvider, released: Operation
) -> None:
    shows(provider, record("T-UNTIMED", createdAt=None))
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])


def test_the_providers_list_is_newer_than_the_mirror(provider: StubProvider, released: Operation) -> None:
    shows(provider, record("T-ELSEWHERE", "processing"))
    sync.load_all(lambda _: None)
    shows(provider, record("T-ELSEWHERE", "failed"))
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"createdAt": "2026-01-01T08:00:00Z"},
        {"amount": 250001},
        {"currency": "USD"},
        {"type": "deposit"},
        {"status": "failed"},
    ],
    ids=["before the preparation", "other amount", "other currency", "incoming", "failed"],
)
def test_other_transactions_do_not_stop_it(
    provider: StubProvider, released: Operation, other: dict[str, Any]
) -> None:
    provider.answer_post = lambda: NAMED
    shows(provider, record("T-OTHER", **other))
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


def test_the_transaction_of_another_operation_here_does_not_stop_it(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    provider.answer_post = lambda: NAMED
    first = factories.release(factories.approved(preparer, approver), approver)
    send.send_operation(first.pk)
    shows(provider, record("T-1"))
    confirmation.confirm_operation(first.pk)
    assert status_of(first) == Status.SUCCEEDED
    provider.answer_post = lambda: (200, '{"data": {"transactionId": "T-2"}}')
    again = factories.approved(preparer, approver, duplicate_reason="The second invoice")
    send.send_operation(factories.release(again, approver).pk)
    assert len(provider.posts) == 2


def _stopped(provider: StubProvider, released: Operation) -> Operation:
    shows(provider, record("T-ELSEWHERE"))
    send.send_operation(released.pk)
    return released


@pytest.mark.parametrize(
    ("declaration", "error"),
    [
        (None, errors.LookAlikeError),
        (AnotherPayment((), "Another invoice"), errors.LookAlikeError),
        (AnotherPayment(("T-OTHER",), "Another invoice"), errors.LookAlikeError),
        (AnotherPayment(("T-ELSEWHERE",), "  "), errors.LookAlikeReasonMissingError),
    ],
    ids=["none", "of no transaction", "of another transaction", "without a reason"],
)
def test_it_is_released_again_only_with_a_reason_for_exactly_what_was_found(
    provider: StubProvider,
    released: Operation,
    approver: User,
    declaration: AnotherPayment | None,
    error: type[errors.OperationError],
) -> None:
    _stopped(provider, released)
    with pytest.raises(error):
        factories.release(released, approver, statement=declaration)
    assert not Release.objects.exists()
    assert LookAlike.objects.get().declared_at is None


def test_the_second_factor_must_be_newer_than_the_finding(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    before = timezone.now()
    _stopped(provider, released)
    with pytest.raises(errors.SecondFactorStaleError):
        factories.release(
            released,
            approver,
            second_factor_at=before,
            statement=AnotherPayment(("T-ELSEWHERE",), "Another invoice"),
        )


def test_a_declared_transaction_is_part_of_the_release_and_its_audit_entry(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    provider.answer_post = lambda: NAMED
    _stopped(provider, released)
    factories.release(released, approver, statement=AnotherPayment(("T-ELSEWHERE",), " Another invoice "))
    assert Release.objects.get().look_alikes == ["T-ELSEWHERE"]
    entry = Entry.objects.filter(action=Action.OPERATION_RELEASED).latest("position")
    assert entry.detail["other_payments"] == {"T-ELSEWHERE": "Another invoice"}
    found = LookAlike.objects.get()
    assert (found.declared_by, found.reason) == (approver, "Another invoice")
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


def test_a_declared_transaction_is_never_matched_to_the_operation(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    provider.answer_post = lambda: NAMELESS
    _stopped(provider, released)
    factories.release(released, approver, statement=AnotherPayment(("T-ELSEWHERE",), "Another invoice"))
    before = [record("T-DEPOSIT", type="deposit"), record("T-ELSEWHERE")]
    shows(provider, *before)
    send.send_operation(released.pk)
    shows(provider, record("T-OWN"), *before)
    confirmation.confirm_operation(released.pk)
    assert Attempt.objects.get().provider_transaction_id == "T-OWN"


@pytest.mark.parametrize("member", ["declared_by_id", "reason", "transaction_id"])
def test_a_declaration_that_nobody_made_with_countersign_releases_nothing(
    provider: StubProvider, released: Operation, approver: User, second_approver: User, member: str
) -> None:
    _stopped(provider, released)
    factories.release(released, approver, statement=AnotherPayment(("T-ELSEWHERE",), "Another invoice"))
    values = {"declared_by_id": second_approver.pk, "reason": "Another", "transaction_id": "T-OTHER"}
    with lifted(connection):
        Release.objects.all().delete()
        LookAlike.objects.update(**{member: values[member]})
    with pytest.raises(errors.AlteredRecordError):
        factories.release(released, approver)
    incident = Incident.objects.get()
    assert incident.evidence == {"faults": [RecordFault.HOLD_SEAL]}


def test_a_further_similar_transaction_stops_it_again(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    _stopped(provider, released)
    factories.release(released, approver, statement=AnotherPayment(("T-ELSEWHERE",), "Another invoice"))
    shows(provider, record("T-FURTHER"), record("T-ELSEWHERE"))
    send.send_operation(released.pk)
    assert (status_of(released), provider.posts) == (Status.APPROVED, [])
    assert set(LookAlike.objects.filter(declared_at=None).values_list("transaction_id", flat=True)) == {
        "T-FURTHER"
    }


def test_the_page_shows_both_records_and_asks_for_the_reason(
    as_approver: Client, provider: StubProvider, released: Operation
) -> None:
    _stopped(provider, released)
    page = show(as_approver, released)
    html = text_of(page)
    assert "Not sent: possibly paid already" in html
    assert "Similar transactions at the provider" in html
    assert "T-ELSEWHERE" in html
    assert "Why that transaction is a different payment" in html
    assert "Required because a similar transaction was found." in html
    refused = do(as_approver, released, "release", otp="123456", look_alikes=seen_on(page))
    assert refused.status_code == 422
    assert "Enter why that transaction is a different payment. Nothing was sent." in text_of(refused)
    assert not Release.objects.exists()


def test_a_cancelled_operation_that_may_be_paid_says_so_beside_prepare_again(
    as_preparer: Client, provider: StubProvider, released: Operation
) -> None:
    _stopped(provider, released)
    approvals.cancel_operation(released.pk, actor=released.preparer)
    html = text_of(show(as_preparer, released))
    assert "It will not be sent. According to the provider, this operation may already be paid." in html
    assert "Prepare again" in html


def seen_on(page: HttpResponse) -> str:
    """What the form of this page says about the transactions that it shows."""
    found = re.search(r'name="look_alikes" value="([0-9a-f]{64})"', page.content.decode())
    assert found
    return found[1]


def test_a_thousand_look_alikes_are_declared_with_one_field(
    as_approver: Client, provider: StubProvider, released: Operation, approver: User
) -> None:
    _stopped(provider, released)
    page = show(as_approver, released)
    found = LookAlike.objects.get()
    more = [f"T-{number}" for number in range(1000)]
    LookAlike.objects.bulk_create(
        LookAlike(operation=released, transaction_id=one, record=found.record, found_at=timezone.now())
        for one in more
    )
    form = {"code": code_of(approver), "otp": "654321", "another_payment": "A thousand equal vouchers"}
    of_what_was_shown = do(as_approver, released, "release", **form, look_alikes=seen_on(page))
    assert (of_what_was_shown.status_code, Release.objects.count()) == (422, 0)
    seen = seen_on(show(as_approver, released))
    assert do(as_approver, released, "release", **form, look_alikes=seen).status_code == 302
    assert set(Release.objects.get().look_alikes) == {"T-ELSEWHERE", *more}
    entry = Entry.objects.get(action=Action.OPERATION_RELEASED, detail__has_key="other_payments")
    assert entry.detail["other_payments"].keys() == {"T-ELSEWHERE", *more}


def test_a_person_declares_another_payment_on_the_page(
    as_approver: Client, provider: StubProvider, released: Operation, approver: User
) -> None:
    provider.answer_post = lambda: NAMED
    _stopped(provider, released)
    form = {
        "code": code_of(approver),
        "otp": "654321",
        "look_alikes": seen_on(show(as_approver, released)),
        "another_payment": "Invoice 18, paid by card",
    }
    assert do(as_approver, released, "release", **form).status_code == 302
    send.send_operation(released.pk)
    assert len(provider.posts) == 1
    assert "Different payment, according to" in text_of(show(as_approver, released))
