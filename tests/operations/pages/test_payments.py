"""Payments on their pages: what was last reported, what is reported now, and what it costs to show it."""

import csv
import gzip
import json
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.operations.delivery import release, send
from backoffice.operations.kinds.payment import RESULT_FIELDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.pages import payments
from backoffice.operations.states import Status
from payments_gateway import Payment
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import put, show, text_of
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]
LIST = "/operations/off-ramp-payments/"
NOW = f"{LIST}now/"
TRON = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
Make = Callable[..., Operation]
_NUMBERS = count(1)


@pytest.fixture
def can_be_asked(settings: Settings, tmp_path: Path) -> None:
    """The deployment says that the provider can be asked for one payment."""
    profile = tmp_path / "profile.toml"
    profile.write_text('capabilities = ["payment"]')
    settings.GATEWAY_PROFILE = str(profile)


@pytest.fixture
def make(preparer: User, approver: User) -> Make:
    """A payment that two people created."""

    def make(**changes: Any) -> Operation:
        number = next(_NUMBERS)
        further = {"duplicate_reason": f"Order {number}", "reference": f"ORDER-{number}"}
        payload = SAMPLES["payment"].model_copy(update=further | changes)
        operation = factories.approve(factories.prepared_of_kind("payment", payload, preparer), approver)
        release.release_operation(
            operation.pk,
            actor=approver,
            digest=operation.digest,
            second_factor_at=timezone.now(),
            otp=None,
        )
        send.send_operation(operation.pk)
        return Operation.objects.get(pk=operation.pk)

    return make


def answered(provider: StubProvider, **changes: object) -> None:
    """Let the provider answer with this payment, under the reference that it was sent."""
    members = {
        "_id": "P-9",
        "state": "Waiting for funds",
        "address": TRON,
        "expTime": (timezone.now() + timedelta(minutes=29)).isoformat(),
        "incomingAmount": 100,
        "incomingCurrency": "USDT",
        "confirmedAmount": 0,
        "unconfirmedAmount": Decimal("2.5"),
        "outgoingAmount": 158000,
        "outgoingCurrency": "NGN",
    }

    def answer() -> tuple[int, str]:
        sent = {"reference": json.loads(provider.posts[-1])["reference"]}
        return 200, json.dumps({"data": {**members, **sent, **changes}}, default=float)

    provider.answer_post = answer


def text(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


def test_an_unpaid_payment_is_shown_as_created(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    answered(provider)
    html = text(as_approver, make().get_absolute_url())
    assert '<h2 id="decision-title">Payment created</h2>' in html
    assert "The provider created the payment. The payment details for the customer are on this page." in html
    assert "Confirmed by the provider." not in html


def test_the_totals_count_a_payment_as_created_and_not_as_succeeded(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    """It may expire unpaid, and its sum is that which the customer was to pay."""
    answered(provider)
    make()
    _before, _table, totals = text(as_approver, LIST).partition('<table class="totals')
    shown = totals.partition("</table>")[0]
    assert ">Created<" in shown
    assert "Succeeded" not in shown


def test_every_page_calls_the_status_of_a_created_payment_created(
    as_approver: Client, preparer: User
) -> None:
    """*Succeeded* would read as if its customer had paid."""
    payment = put(
        factories.prepared_of_kind("payment", SAMPLES["payment"], preparer),
        "approved",
        "sending",
        "succeeded",
    )
    withdrawal = put(factories.prepared(preparer), "approved", "sending", "succeeded")
    pages = ("/operations/?tab=all", f"/operations/{payment.pk}/", f"/operations/{payment.pk}/receipt/")
    badge = re.compile(r'class="badge succeeded"[^>]*>\s*(.*?)\s*<')
    found = {page: badge.findall(text_of(as_approver.get(page))) for page in pages}
    assert [found[page][0] for page in pages[1:]] == ["Created", "Created"]
    assert sorted(found[pages[0]]) == ["Created", "Succeeded"]
    assert badge.findall(text_of(show(as_approver, withdrawal)))[0] == "Succeeded"
    for kind, label in (("payment", "Created"), ("withdrawal", "Succeeded")):
        assert f'<option value="succeeded">{label}</option>' in text_of(
            as_approver.get("/operations/", {"kind": kind})
        )


def test_the_operation_page_shows_the_customers_instructions(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    answered(provider)
    html = text(as_approver, make().get_absolute_url())
    for shown in (
        f'alt="QR code of {TRON}"',
        f'data-copy="{TRON}"',
        "data-until",
        "Waiting for funds",
        "USDT 100.000000",
        "USDT 2.500000",
        "USDT 0.000000",
        "NGN 158,000.00",
        "so the status may have changed",
    ):
        assert shown in html


def test_fields_not_reported_are_shown_as_such(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    provider.answer_post = lambda: (200, '{"data": {"_id": "P-9"}}')
    operation = make()
    html = text(as_approver, operation.get_absolute_url())
    assert html.count("<dd>Not provided</dd>") >= 2
    assert "Not provided" in html
    assert "Not provided" in text(as_approver, LIST)


def test_every_answered_member_is_shown_with_the_providers_name_for_it(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    members = {
        "businessId": "biz-77",
        "paymentType": "bank",
        "account": "0123456789 Access",
        "customerEmail": "customer@example.com",
        "senderUsername": "ada-obi",
        "threadTS": "1763719200.1",
        "rampReference": "RAMP-5",
        "rate": Decimal("1580.5"),
        "createdAt": "2026-11-20T09:00:00.000Z",
        "updatedAt": 1795165200,
    }
    answered(provider, **members)
    html = text(as_approver, make().get_absolute_url())
    for member, value in members.items():
        shown = {"createdAt": "2026-11-20T09:00:00+00:00", "updatedAt": "2026-11-20T09:00:00+00:00"}
        row = html.partition(f"<code>{member}</code></dt><dd>")[2].partition("</dd>")[0]
        assert row == shown.get(member, str(value))
    assert "USDT 1 = NGN 1,580.5" in html
    for member in set(Payment.model_fields) - {"raw", "provider_message"}:
        assert member in RESULT_FIELDS


def test_every_member_of_the_sandboxs_payment_is_shown(
    as_approver: Client, sandbox: SandboxProcess, make: Make
) -> None:
    operation = make()
    html = text(as_approver, operation.get_absolute_url())
    answered_members = sandbox.pay_in(operation.payload["reference"])
    assert "senderUsername" in answered_members
    for member in {"_id", *answered_members}:
        assert f"<code>{member}</code>" in html


def test_an_operation_of_another_kind_shows_no_payment(as_approver: Client, operation: Operation) -> None:
    assert 'id="payment"' not in text(as_approver, operation.get_absolute_url())
    assert as_approver.get(f"{operation.get_absolute_url()}payment/").status_code == 404


def test_a_payment_of_unknown_outcome_is_listed_without_the_providers_status(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    provider.answer_post = lambda: (500, "{}")
    operation = make()
    assert operation.status == Status.UNKNOWN
    html = text(as_approver, LIST)
    assert operation.reference in html
    assert "data-poll" not in html.partition('id="payments"')[2].partition(">")[0]
    assert 'data-label="Provider\'s status"' not in html
    assert 'id="payment"' not in text(as_approver, operation.get_absolute_url())


def test_the_list_shows_reported_payments_and_that_no_refresh_is_possible(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    answered(provider)
    operation = make()
    html = text(as_approver, LIST)
    for shown in (operation.reference, "Waiting for funds", "USDT 100.000000", "may have changed"):
        assert shown in html
    assert "hx-get" not in html.partition('id="payments"')[2].partition(">")[0]


def test_the_status_is_read_from_the_provider_where_possible(
    as_approver: Client, sandbox: SandboxProcess, can_be_asked: None, make: Make
) -> None:
    operation = make()
    reference = operation.payload["reference"]
    assert ">pending<" in text(as_approver, LIST)
    assert "Refreshing…" in text(as_approver, LIST)
    sandbox.pay_in(reference)
    assert ">pending<" in text(as_approver, LIST)
    assert ">unconfirmed<" in text(as_approver, NOW)
    assert ">unconfirmed<" in text(as_approver, LIST)
    page = text(as_approver, f"{operation.get_absolute_url()}payment/")
    assert ">unconfirmed<" in page
    assert "at creation" not in page


def test_an_unreachable_provider_shows_the_last_reported_status(
    as_approver: Client, sandbox: SandboxProcess, can_be_asked: None, settings: Settings, make: Make
) -> None:
    operation = make()
    settings.GATEWAY_URL = "http://127.0.0.1:9/v2"
    assert "Not refreshed: " in text(as_approver, f"{operation.get_absolute_url()}payment/")
    html = text(as_approver, NOW)
    assert ">pending<" in html
    assert "not refreshed" in html


def test_long_expired_payments_are_not_read_again(
    as_approver: Client, sandbox: SandboxProcess, can_be_asked: None, make: Make
) -> None:
    make()
    attempt = Attempt.objects.get()
    attempt.result = {
        **(attempt.result or {}),
        "expires_at": "2026-01-01T00:00:00+00:00",
        "state": "as created",
    }
    attempt.save()
    assert "as created" in text(as_approver, NOW)


@pytest.mark.usefixtures("can_be_asked")
def test_recently_reported_payments_are_not_read_again(
    approver: User, sandbox: SandboxProcess, make: Make
) -> None:
    make()
    (first,) = payments.created_payments(list(payments.payment_operations(approver)), ask=True)
    (second,) = payments.created_payments(list(payments.payment_operations(approver)), ask=True)
    assert first.read is not None
    assert second.reported_at == first.reported_at


@pytest.mark.usefixtures("can_be_asked")
def test_a_page_reads_at_most_ten_payments(approver: User, provider: StubProvider, make: Make) -> None:
    for number in range(12):
        answered(provider, _id=f"P-{number}")
        make(customer_email=f"customer{number}@example.com")
    made = payments.created_payments(list(payments.payment_operations(approver)), ask=True)
    assert len(made) == 12
    assert len([payment for payment in made if payment.problem]) == 10  # the stub lists none


@pytest.mark.parametrize("count", [0, 25])
def test_the_list_stays_within_its_queries_and_bytes(
    as_approver: Client,
    provider: StubProvider,
    make: Make,
    django_assert_max_num_queries: DjangoAssertNumQueries,
    count: int,
) -> None:
    answered(provider)
    for number in range(count):
        make(customer_email=f"customer{number}@example.com")
    with django_assert_max_num_queries(8):
        answer = as_approver.get(LIST)
    assert len(gzip.compress(answer.content)) <= 14 * 1024
    assert answer.content.decode().count('class="row"') == min(count, 20)
    assert ("Older →" in answer.content.decode()) is (count > 20)


def test_the_operation_page_stays_within_its_bytes(
    as_approver: Client, provider: StubProvider, make: Make
) -> None:
    answered(provider)
    answer = as_approver.get(make().get_absolute_url())
    assert len(gzip.compress(answer.content)) <= 14 * 1024


def test_the_csv_has_the_listed_payments(as_approver: Client, provider: StubProvider, make: Make) -> None:
    answered(provider)
    operation = make()
    answer: Any = as_approver.get("/reports/payments.csv")
    (row,) = csv.DictReader(b"".join(answer.streaming_content).decode("utf-8-sig").splitlines())
    assert (row["Reference"], row["Provider's status"], row["Deposit address"]) == (
        operation.reference,
        "Waiting for funds",
        TRON,
    )
    assert (row["Pay-in amount"], row["Customer's email address"]) == ("100", "customer@example.com")
