"""Payments: how much must be reported so that it is known which one was made."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_gateway import OutcomeUnknownError
from tests.payments_gateway.calls import DONE, PAID
from tests.payments_gateway.resources.envelopes.conftest import Answered


def test_a_payment_is_read_completely(answered: Answered) -> None:
    payment = answered("payments.create", {**DONE, "data": PAID | {"news": 1}})
    assert (payment.id, payment.reference, payment.business_id) == ("P1", "R1", "B1")
    assert (payment.incoming_currency, payment.outgoing_currency) == ("USDT", "NGN")
    assert (payment.incoming_amount, payment.outgoing_amount) == (Decimal("0.65"), Decimal("1000.1"))
    assert (payment.confirmed_amount, payment.unconfirmed_amount) == (0, 0)
    assert (payment.state, payment.payment_type, payment.account) == ("pending", "bank", "0123456789")
    assert (payment.address, payment.customer_email) == ("T9yD", "ada@example.com")
    assert (payment.rate, payment.thread_timestamp) == (Decimal("1538.62"), "1763719200.1")
    assert payment.expires_at == datetime(2025, 11, 21, 10, 30, tzinfo=UTC)
    assert payment.created_at == payment.updated_at == datetime(2025, 11, 21, 10, tzinfo=UTC)
    assert payment.model_extra == {"news": 1}


def test_a_payment_with_only_an_address_is_read(answered: Answered) -> None:
    payment = answered("payments.create", {**DONE, "data": {"address": "T9yD", "rate": "n/a", "expTime": 0}})
    assert (payment.address, payment.rate, payment.id) == ("T9yD", None, None)


@pytest.mark.parametrize("data", [{}, {"_id": "", "reference": None, "address": " ", "state": "pending"}])
def test_a_success_without_a_payment_proves_nothing(answered: Answered, data: dict[str, Any]) -> None:
    with pytest.raises(OutcomeUnknownError, match="it contains no payment ID, reference or address"):
        answered("payments.create", {**DONE, "data": data})


def test_a_payment_with_another_reference_is_refused(answered: Answered) -> None:
    with pytest.raises(OutcomeUnknownError, match="is about a payment with another reference"):
        answered("payments.create", {**DONE, "data": PAID | {"reference": "R2"}})


@pytest.mark.parametrize("name", ["_id", "reference", "address"])
def test_one_identifier_is_sufficient_for_a_payment(answered: Answered, name: str) -> None:
    payment = answered("payments.create", {**DONE, "data": {name: PAID[name]}})
    assert payment.raw == {name: PAID[name]}
