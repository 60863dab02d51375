"""Summaries, and amounts that are read exactly or not at all."""

from decimal import Decimal
from typing import Any

import pytest

from payments_gateway import PaymentsGateway, ReadFailedError
from tests.payments_gateway import stub
from tests.payments_gateway.calls import DONE, PAGE
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.resources.envelopes.conftest import Answered


def test_a_summary_has_totals_and_a_page(answered: Answered) -> None:
    record = {"transactionId": "T1", "amount": 5, "status": "fullfiled"}
    txn = PAGE | {"data": [record], "page": "1"}
    totals = {"volume": 1234.5, "txnCount": "7", "duration": 7, "news": 1}
    summary = answered("transactions.summary", {**DONE, "data": {"txn": txn, "summary": totals}})
    assert (summary.volume, summary.transaction_count, summary.duration) == (Decimal("1234.5"), 7, 7)
    assert (summary.page.page, summary.page.records[0].status) == (1, "fulfilled")
    assert summary.model_extra == {"news": 1}


@pytest.mark.parametrize(
    "data", [{}, {"txn": PAGE}, {"summary": {"volume": 1, "txnCount": 1}}, {"txn": PAGE, "summary": {}}]
)
def test_an_incomplete_summary_is_refused(answered: Answered, data: dict[str, Any]) -> None:
    with pytest.raises(ReadFailedError):
        answered("transactions.summary", {**DONE, "data": data})


@pytest.mark.parametrize("amount", ["9" * 23, "1" + "0" * 22 + ".5", "0." + "1" * 41, "-" + "9" * 23])
@pytest.mark.parametrize("as_text", [True, False])
def test_an_amount_out_of_range_is_refused(
    serve: Serve, gateway: Gateway, amount: str, as_text: bool
) -> None:
    written = f'"{amount}"' if as_text else amount
    record = f'{{"transactionId": "T1", "amount": {written}}}'
    body = f'{{"data": {{"data": [{record}], "total": 1, "perPage": 1, "page": 1, "pages": 1}}}}'.encode()
    client: PaymentsGateway = gateway(serve(stub.answer(200, body)).url)
    with pytest.raises(
        ReadFailedError, match=r"data\.0\.amount: (a number that is too large|not an exact number)"
    ):
        client.transactions.page()


@pytest.mark.parametrize("amount", ["9" * 22, "0." + "1" * 40, "0", "-5.50"])
def test_amounts_of_any_valid_size_are_exact(serve: Serve, gateway: Gateway, amount: str) -> None:
    record = f'{{"transactionId": "T1", "amount": {amount}, "fee": "", "isFromRegUser": "maybe"}}'
    body = f'{{"data": {{"data": [{record}], "total": 1, "perPage": 1, "page": 1, "pages": 1}}}}'.encode()
    (read,) = gateway(serve(stub.answer(200, body)).url).transactions.page().records
    assert (read.amount, read.fee, read.is_from_registered_user) == (Decimal(amount), None, None)
