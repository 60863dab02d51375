"""Conversions between the merchant's balances: the form with its estimate, the request, the outcome."""

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from backoffice.accounts.models import User
from backoffice.ledger import selectors as ledger
from backoffice.operations import services
from backoffice.operations.kinds.conversion import ConversionKind, ConversionPayload
from backoffice.operations.models import Operation
from backoffice.operations.states import Status
from payments_gateway import TransactionRecord
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.sandbox_process import SandboxProcess
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)
ADDRESS = "/operations/prepare/conversion/"
FILLED_IN = {"direction": "NGN-USD", "amount": "1540000.00"}
RECEIVED = """{"transactionId": "C-1", "type": "conversion", "currency": "USD", "amount": 1000, "fromCurrency": "NGN",
 "fromAmount": 1600000, "status": "fullfiled"}"""


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Rates are remembered for minutes, across tests."""
    cache.clear()
    yield
    cache.clear()


def review(client: Client, **changes: str) -> Any:
    return client.post(ADDRESS, {**FILLED_IN, **changes, "step": "review"})


def released(maker: User, checker: User, payload: ConversionPayload | None = None) -> Operation:
    content = payload or SAMPLES["conversion"]
    operation = factories.countersigned(factories.of_kind("conversion", content, maker), checker)
    return services.release_operation(
        operation.pk,
        actor=checker,
        digest=operation.digest,
        second_factor_at=operation.decided_at,
    )


def test_the_review_says_what_the_last_rate_would_bring(as_maker: Client, service: StubService) -> None:
    service.records = f"[{RECEIVED}]"
    html = review(as_maker).content.decode()
    assert "<h1>Convert NGN 1,540,000.00 to USD</h1>" in html
    assert "USD 1 = NGN 1,600.00" in html
    assert "about USD 962.50" in html


def test_the_check_shows_it_while_the_form_is_filled_in(as_maker: Client, service: StubService) -> None:
    service.records = f"[{RECEIVED}]"
    answer = as_maker.post(f"{ADDRESS}check/", FILLED_IN)
    assert "about USD 962.50" in answer.content.decode()


def test_without_a_known_rate_it_says_so_and_goes_on(as_maker: Client, service: StubService) -> None:
    answer = review(as_maker)
    assert answer.status_code == 200
    assert "None is known yet." in answer.content.decode()


def test_the_rate_counts_in_both_directions(service: StubService) -> None:
    service.records = f"[{RECEIVED}]"
    assert ledger.last_rate("USD", "NGN") == Decimal(1600)
    assert ledger.last_rate("NGN", "USD") == Decimal("0.000625")


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("direction", "NGN-USDT", "Select a valid choice"),
        ("direction", "", "This field is required."),
        ("amount", "", "Enter an amount."),
        ("amount", "1,000", "digits and one point only"),
        ("amount", "0.005", "NGN has at most 2 decimals."),
        ("amount", "5000000.01", "The balance is NGN 5,000,000.00"),
    ],
)
def test_bad_input_is_said_beside_its_field_and_loses_nothing(
    as_maker: Client, service: StubService, field: str, typed: str, said: str
) -> None:
    answer = review(as_maker, **{field: typed})
    assert answer.status_code == 422
    form = answer.context["form"]
    assert said in " ".join(form.errors[field])
    other = next(name for name in FILLED_IN if name != field)
    assert form[other].value() == FILLED_IN[other]


def test_it_waits_for_half_an_hour_only(maker: User) -> None:
    operation = factories.of_kind("conversion", SAMPLES["conversion"], maker)
    assert operation.expires_at - operation.prepared_at == timedelta(minutes=30)


def test_the_request_is_exactly_what_was_countersigned_and_needs_no_token(
    maker: User, checker: User, service: StubService
) -> None:
    operation = released(maker, checker)
    services.send_operation(operation.pk)
    assert service.changes == ["POST /v2/balance/convert"]
    assert json.loads(service.posts[0]) == {
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
def test_every_answer_leads_somewhere(
    maker: User, checker: User, service: StubService, status: int, body: str, ends: Status
) -> None:
    operation = released(maker, checker)
    service.answer_post = lambda: (status, body)
    services.send_operation(operation.pk)
    assert Operation.objects.get().status == ends


def test_two_people_convert_against_the_service_and_see_what_arrived(
    maker: User, checker: User, as_maker: Client, sandbox: SandboxProcess
) -> None:
    before = {code: sandbox.balance(code) for code in ("NGN", "USD")}
    operation = released(maker, checker)
    services.send_operation(operation.pk)
    assert services.confirm_operation(operation.pk).status == Status.SUCCEEDED
    arrived = sandbox.balance("USD") - before["USD"]
    assert before["NGN"] - sandbox.balance("NGN") == Decimal(1540000)
    html = as_maker.get(f"/operations/{operation.pk}/").content.decode()
    assert f"USD {arrived:,.2f}" in html
    assert "Rate reached" in html


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
def test_it_is_recognised_by_the_record_of_what_was_given(changes: dict[str, str], is_ours: bool) -> None:
    record = {"transactionId": "C-1", "type": "conversion", "currency": "NGN", "fromCurrency": "NGN"}
    told = TransactionRecord.model_validate({**record, "amount": "1540000.00", **changes})
    sample = SAMPLES["conversion"]
    assert isinstance(sample, ConversionPayload)
    assert ConversionKind().recognises(sample, told) is is_ours
