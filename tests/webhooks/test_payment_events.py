"""A signed webhook about a payment updates what was last reported of it, with its time, and decides nothing."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.models import CachedReadRow
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.pages import payments
from backoffice.operations.pages.payments import CreatedPayment, ReportSource
from backoffice.operations.states import Status
from backoffice.webhooks.models import Delivery
from backoffice.webhooks.processing import _schedule_checks, process_again
from payments_gateway import Payment
from tests.operations.conftest import as_approver as as_approver
from tests.operations.conftest import provider as provider
from tests.operations.kinds.payments.steps import of, sent
from tests.payments_gateway.vectors.make_vectors import delivery, signed
from tests.stub_provider import StubProvider
from tests.webhooks.steps import deliver

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("receiver")]

REFERENCE = "INV 2026/118"
ADDRESS = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"


@pytest.fixture
def payment(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """A payment that the provider created and reported as waiting."""
    members = {"_id": "P-9", "reference": REFERENCE, "state": "waiting", "address": ADDRESS, "rate": 1580.5}
    members["updatedAt"] = "2026-11-20T09:00:00Z"
    provider.answer_post = lambda: (200, json.dumps({"data": members}))
    return sent(preparer, approver, of(reference=REFERENCE))


def event(state: str, event: str = "Payment updated", reference: str = REFERENCE, **more: Any) -> bytes:
    data = {"reference": reference, "state": state, **more}
    return delivery(json.dumps(data, separators=(",", ":")).encode(), event=event.encode())


def arrives(body: bytes) -> Delivery:
    """It is received and processed."""
    deliver(body)
    _schedule_checks()
    return Delivery.objects.order_by("-pk")[0]


def shown(operation: Operation) -> CreatedPayment:
    made = payments.created_payment(Operation.objects.get(pk=operation.pk))
    assert made is not None
    return made


def read_as(operation: Operation, state: str, **members: Any) -> None:
    """The provider was asked for the payment, and answered this."""
    attempt = Attempt.objects.get(operation=operation)
    reported = Payment(id="P-9", state=state, raw={}, **members)
    payments._payment_read(attempt).refresh(lambda: reported)


@pytest.mark.parametrize("name", ["Payment updated", "payment CREATED"])
def test_a_valid_event_is_shown_with_its_time_and_source(
    as_approver: Client, payment: Operation, name: str
) -> None:
    before = Operation.objects.values().get()
    arrived = arrives(event("confirmed", name, confirmedAmount=100, reference="inv  2026/118"))
    made = shown(payment)
    assert (made.reported["state"], made.state_report.source) == ("confirmed", ReportSource.WEBHOOK)
    assert made.state_report.at == arrived.valid_at
    assert made.confirmed == "USDT 100.000000"
    assert made.rate_report.source is ReportSource.CREATION
    html = as_approver.get(payment.get_absolute_url()).content.decode()
    assert made.state_report.source is ReportSource.WEBHOOK
    assert "(webhook of " in html
    assert "(at creation, " in html
    assert "webhook of " in as_approver.get("/operations/off-ramp-payments/").content.decode()
    assert Operation.objects.values().get() == before
    assert Attempt.objects.get(result__state="waiting")


def test_an_event_never_changes_where_the_customer_pays_to(payment: Operation) -> None:
    arrives(event("confirmed", address="T-another", account="0000000000", customerEmail="a@example.com"))
    assert shown(payment).reported["address"] == ADDRESS
    assert not {"account", "customer_email"} & shown(payment).reported.keys()


def _forged() -> bytes:
    data = b'{"reference":"%s","state":"confirmed"}' % REFERENCE.encode()
    return delivery(data, signed(data, "stranger"), b"Payment updated")


def _of_a_transaction() -> bytes:
    return event("confirmed", transactionId="T-1", amount=1)


def _of_another_kind() -> bytes:
    return event("confirmed", "Transaction updated")


def _of_another_payment() -> bytes:
    return event("confirmed", reference="INV 2026/119")


@pytest.mark.parametrize("body", [_forged, _of_a_transaction, _of_another_kind, _of_another_payment])
def test_any_other_delivery_shows_nothing(payment: Operation, body: Callable[[], bytes]) -> None:
    arrives(body())
    assert shown(payment).is_only_created
    assert shown(payment).reported["state"] == "waiting"


@pytest.mark.parametrize("verdict", ["invalid", "unsigned", "unverified", "test"])
def test_a_person_who_processes_an_unverified_delivery_again_shows_no_status(
    payment: Operation, preparer: User, verdict: str
) -> None:
    deliver(event("confirmed"))
    Delivery.objects.update(verdict=verdict, check_due_at=None)
    if verdict != "test":
        process_again(Delivery.objects.get().pk, actor=preparer)
    else:
        Delivery.objects.update(check_due_at=timezone.now())
    _schedule_checks()
    assert shown(payment).is_only_created


def test_a_row_that_was_made_valid_past_countersign_shows_no_status(payment: Operation) -> None:
    deliver(_forged())
    Delivery.objects.update(
        verdict="valid", valid_at=timezone.now(), reference=REFERENCE, check_due_at=timezone.now()
    )
    _schedule_checks()
    assert shown(payment).is_only_created


def test_a_status_that_contradicts_a_read_says_so(as_approver: Client, payment: Operation) -> None:
    read_as(payment, "confirmed")
    arrives(event("waiting"))
    made = shown(payment)
    assert made.contradicted_read is not None
    html = as_approver.get(payment.get_absolute_url()).content.decode()
    assert "The provider reported two statuses: waiting (webhook of " in html
    assert " and confirmed (read at " in html
    assert "another status: confirmed" in as_approver.get("/operations/off-ramp-payments/").content.decode()


def test_a_later_read_is_what_was_last_reported(payment: Operation) -> None:
    arrives(event("waiting again"))
    read_as(payment, "confirmed")
    made = shown(payment)
    assert (made.reported["state"], made.state_report.source) == ("confirmed", ReportSource.READ)
    assert made.contradicted_read is None


def test_values_that_a_read_does_not_have_keep_their_time(payment: Operation) -> None:
    read_as(payment, "confirmed")
    made = shown(payment)
    assert (made.state_report.source, made.rate_report.source) == (ReportSource.READ, ReportSource.CREATION)
    assert made.rate_report.at == Attempt.objects.get().closed_at


@pytest.mark.parametrize("late", ["2026-11-20T09:10:00Z", "2026-11-20T09:30:00Z"])
def test_an_event_that_arrives_late_replaces_nothing_newer(payment: Operation, late: str) -> None:
    arrives(event("confirmed", updatedAt="2026-11-20T09:30:00Z"))
    first = arrives(event("waiting for one more", updatedAt="2026-11-20T09:10:00Z"))
    assert shown(payment).reported["state"] == "confirmed"
    read_as(payment, "paid out", updated_at="2026-11-20T10:00:00Z")
    arrives(event("waiting still", updatedAt=late))
    assert shown(payment).reported["state"] == "paid out"
    process_again(first.pk, actor=payment.preparer)
    _schedule_checks()
    assert shown(payment).reported["state"] == "paid out"


def test_an_older_delivery_without_a_time_that_is_processed_again_replaces_nothing(
    payment: Operation,
) -> None:
    first = arrives(event("waiting for one more"))
    arrives(event("confirmed"))
    process_again(first.pk, actor=payment.preparer)
    _schedule_checks()
    assert shown(payment).reported["state"] == "confirmed"


def test_an_event_before_the_request_is_about_another_payment(payment: Operation) -> None:
    arrives(event("confirmed"))
    Attempt.objects.update(started_at=timezone.now() + timedelta(seconds=1))
    assert shown(payment).is_only_created


def test_an_event_is_kept_encrypted_and_resolves_no_unknown_outcome(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    provider.answer_post = lambda: (500, "{}")
    operation = sent(preparer, approver, of(reference=REFERENCE))
    arrives(event("a very special state"))
    assert Operation.objects.get(pk=operation.pk).status == Status.UNKNOWN
    (row,) = CachedReadRow.objects.filter(key__startswith="payment-event:")
    assert b"special" not in bytes(row.encrypted_value)
    assert len(provider.posts) == 1
