"""Conversions between the merchant's balances: the form with its estimate, the request, the outcome."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.ledger import rates
from backoffice.operations.delivery import release, send
from backoffice.operations.kinds.conversion import ConversionKind, ConversionPayload
from backoffice.operations.models.operations import Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from payments_gateway import TransactionRecord
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/operations/prepare/conversion/"
FILLED_IN = {"direction": "NGN-USD", "amount": "1540000.00"}
RECEIVED = """{"transactionId": "C-1", "type": "conversion", "currency": "USD", "amount": 1000, "fromCurrency": "NGN",
 "fromAmount": 1600000, "status": "fullfiled"}"""


def review(client: Client, **changes: str) -> Any:
    return client.post(ADDRESS, {**FILLED_IN, **changes, "step": "review"})


def released(preparer: User, approver: User, payload: ConversionPayload | None = None) -> Operation:
    content = payload or SAMPLES["conversion"]
    operation = factories.approve(factories.prepared_of_kind("conversion", content, preparer), approver)
    return release.release_operation(
        operation.pk,
        actor=approver,
        digest=operation.digest,
        second_factor_at=operation.decided_at,
    )


def test_the_review_shows_the_estimate_at_the_last_rate(as_preparer: Client, provider: StubProvider) -> None:
    provider.records = f"[{RECEIVED}]"
    html = review(as_preparer).content.decode()
    assert "<h1>Convert NGN 1,540,000.00 to USD</h1>" in html
    assert "USD 1 = NGN 1,600.00" in html
    assert "About USD 962.50" in html


def test_the_estimate_is_shown_while_the_form_is_filled_in(
    as_preparer: Client, provider: StubProvider
) -> None:
    provider.records = json.dumps([THERE])
    answer = as_preparer.post(f"{ADDRESS}check/", FILLED_IN)
    html = answer.content.decode()
    assert "About USD 962.50" in html
    assert "data-age>" in html.partition("Age of the rate</dt>")[2].partition("</dd>")[0]


def test_a_missing_rate_is_reported_and_does_not_block(as_preparer: Client, provider: StubProvider) -> None:
    answer = review(as_preparer)
    assert answer.status_code == 200
    assert "Set by the provider when the operation is sent" in answer.content.decode()


def reached(given: str, received: str, *, amount: str, for_amount: str, at: str) -> dict[str, object]:
    return {
        "transactionId": f"C-{at}",
        "type": "conversion",
        "currency": received,
        "amount": float(amount),
        "fromCurrency": given,
        "fromAmount": float(for_amount),
        "status": "fullfiled",
        "createdAt": at,
    }


THERE = reached("NGN", "USD", amount="1000", for_amount="1600000", at="2026-03-01T08:00:00Z")
BACK = reached("USD", "NGN", amount="1500", for_amount="1", at="2026-03-02T08:00:00Z")


@pytest.mark.parametrize(
    ("records", "pair", "number", "of"),
    [
        ([BACK, THERE], ("NGN", "USD"), "0.000625", THERE),
        ([BACK, THERE], ("USD", "NGN"), "1500", BACK),
        ([THERE], ("USD", "NGN"), "1600", THERE),
        ([BACK], ("NGN", "USD"), "0.0006666667", BACK),
    ],
)
def test_the_rate_of_the_same_direction_is_preferred(
    provider: StubProvider,
    records: list[dict[str, object]],
    pair: tuple[str, str],
    number: str,
    of: dict[str, object],
) -> None:
    provider.records = json.dumps(records)
    rate = rates.last_rate(*pair)
    assert rate is not None
    assert rate.rate == Decimal(number)
    assert rate.from_conversion == (of["fromCurrency"], of["currency"])
    assert rate.known_at == datetime.fromisoformat(str(of["createdAt"]))


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([THERE], "USD 1 = NGN 1,600.00 · from a conversion of NGN to USD, 1 Mar 2026, 09:00 WAT"),
        ([BACK], "USD 1 = NGN 1,500.00 · from a conversion of USD to NGN, 2 Mar 2026, 09:00 WAT"),
    ],
)
def test_the_estimate_names_its_conversion_and_time(
    as_preparer: Client, provider: StubProvider, records: list[dict[str, object]], message: str
) -> None:
    provider.records = json.dumps(records)
    for html in (
        review(as_preparer).content.decode(),
        as_preparer.post(f"{ADDRESS}check/", FILLED_IN).content.decode(),
    ):
        assert message in html
        assert ("opposite direction" in html) is (records == [BACK])


def test_a_reported_rate_is_preferred_over_a_past_one(
    as_preparer: Client, sandbox: SandboxProcess, settings: Settings, tmp_path: Path
) -> None:
    file = tmp_path / "profile.toml"
    file.write_text('capabilities = ["rates"]\n')
    settings.GATEWAY_PROFILE = str(file)
    assert "quoted by the provider, " in review(as_preparer, amount="1000").content.decode()


@pytest.mark.parametrize(("amount", "about"), [("1599.99", "0.99"), ("15.99", "0.00"), ("1600", "1.00")])
def test_the_estimate_is_rounded_down(amount: str, about: str) -> None:
    content = ConversionPayload(
        from_currency="NGN", to_currency="USD", amount=Decimal(amount), known_rate=Decimal("0.000625")
    )
    assert content.expected == Decimal(about)


@pytest.mark.parametrize(
    ("field", "typed", "message"),
    [
        ("direction", "NGN-USDT", "Select one of the options"),
        ("direction", "", "Select one of the options."),
        ("amount", "", "Enter an amount."),
        ("amount", "1,5", "Enter a number such as 5,000.50"),
        ("amount", "0.005", "NGN has at most 2 decimals."),
        ("amount", "5000000.01", "exceeds the balance of NGN 5,000,000.00"),
    ],
)
def test_invalid_input_is_reported_at_its_field_and_kept(
    as_preparer: Client, provider: StubProvider, field: str, typed: str, message: str
) -> None:
    answer = review(as_preparer, **{field: typed})
    assert answer.status_code == 422
    form = answer.context["form"]
    assert message in " ".join(form.errors[field])
    other = next(name for name in FILLED_IN if name != field)
    assert form[other].value() == FILLED_IN[other]


def test_a_conversion_expires_after_half_an_hour(preparer: User) -> None:
    operation = factories.prepared_of_kind("conversion", SAMPLES["conversion"], preparer)
    assert operation.expires_at - operation.prepared_at == timedelta(minutes=30)


def test_the_request_is_exactly_the_approved_content_without_a_one_time_code(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    operation = released(preparer, approver)
    send.send_operation(operation.pk)
    assert provider.changes == ["POST /v2/balance/convert"]
    assert json.loads(provider.posts[0]) == {
        "fromCurrency": "NGN",
        "toCurrency": "USD",
        "amount": "1540000.00",
    }


@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (200, '{"success": true, "data": {"transferDetail": {"transactionId": "C-9"}}}', Status.PROCESSING),
        (400, '{"message": "the amount is too small"}', Status.FAILED),
        (422, '{"message": "insufficient funds"}', Status.FAILED),
        (409, '{"message": "conflict"}', Status.UNKNOWN),
        (503, '{"message": "try later"}', Status.UNKNOWN),
    ],
)
def test_every_response_leads_to_a_status(
    preparer: User, approver: User, provider: StubProvider, status: int, body: str, ends: Status
) -> None:
    operation = released(preparer, approver)
    provider.answer_post = lambda: (status, body)
    send.send_operation(operation.pk)
    assert Operation.objects.get().status == ends


def test_two_people_convert_at_the_provider_and_see_the_amount_received(
    preparer: User, approver: User, as_preparer: Client, sandbox: SandboxProcess
) -> None:
    before = {code: sandbox.balance(code) for code in ("NGN", "USD")}
    operation = released(preparer, approver)
    send.send_operation(operation.pk)
    assert confirmation.confirm_operation(operation.pk).status == Status.SUCCEEDED
    arrived = sandbox.balance("USD") - before["USD"]
    assert before["NGN"] - sandbox.balance("NGN") == Decimal(1540000)
    html = as_preparer.get(f"/operations/{operation.pk}/").content.decode()
    assert f"USD {arrived:,.2f}" in html
    assert "<dt>Rate</dt>" in html


@pytest.mark.parametrize(
    ("changes", "is_ours"),
    [
        ({}, True),
        ({"amount": "1540000.01"}, False),
        ({"type": "transfer"}, False),
        ({"currency": "USD", "fromCurrency": "NGN"}, False),
        ({"fromCurrency": "USD"}, False),
    ],
)
def test_a_conversion_is_matched_by_the_record_of_the_sold_currency(
    changes: dict[str, str], is_ours: bool
) -> None:
    record = {"transactionId": "C-1", "type": "conversion", "currency": "NGN", "fromCurrency": "NGN"}
    listed = TransactionRecord.model_validate({**record, "amount": "1540000.00", **changes})
    sample = SAMPLES["conversion"]
    assert isinstance(sample, ConversionPayload)
    assert ConversionKind().is_match(sample, listed) is is_ours
