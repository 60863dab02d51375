"""Balances, accounts and transactions, in all the shapes that the provider may give them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_gateway import NotFoundError, ReadFailedError, RejectedError
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve

NGN = {"amount": 10, "totalRecieved": 20, "totalSent": 10, "txnCount": 2, "formattedAmount": 10}
RECORD: dict[str, Any] = {"transactionId": "T1", "amount": 5, "currency": "NGN", "status": "fullfiled"}


def page_of(*records: dict[str, Any], page: Any = 1, pages: Any = 1) -> dict[str, Any]:
    return {
        "success": True,
        "message": "ok",
        "data": {"data": list(records), "total": len(records), "perPage": 2, "page": page, "pages": pages},
    }


@pytest.mark.parametrize(
    "data",
    [
        {"balances": NGN | {"toCurrency": "NGN"}},
        {"balances": [NGN | {"toCurrency": "NGN"}]},
        {"balances": {"NGN": NGN}},
        {"balance": [NGN | {"currency": "NGN"}]},
        {"balance": {"NGN": NGN | {"currency": "NGN"}}},
        {"balances": {name: str(value) for name, value in NGN.items()} | {"toCurrency": "NGN"}},
        {"balances": NGN | {"toCurrency": "NGN", "formattedAmount": "10.00", "news": {"a": 1}}},
    ],
)
def test_balances_are_read_in_every_shape(serve: Serve, gateway: Gateway, data: dict[str, Any]) -> None:
    (balance,) = gateway(serve(stub.answer(200, {"success": True, "data": data})).url).balances.list()
    assert (balance.currency, balance.amount, balance.formatted_amount) == ("NGN", Decimal(10), Decimal(10))
    assert (balance.total_received, balance.total_sent) == (Decimal(20), Decimal(10))
    assert balance.transaction_count == 2


@pytest.mark.parametrize(
    "balances", [{"toCurrency": "NGN", "amount": 10}, [{"currency": "NGN", "amount": 10}]]
)
def test_totals_that_are_not_reported_are_unknown_and_not_zero(
    serve: Serve, gateway: Gateway, balances: object
) -> None:
    client = gateway(serve(stub.answer(200, {"data": {"balances": balances}})).url)
    (balance,) = client.balances.list()
    assert (balance.amount, balance.total_received, balance.total_sent) == (Decimal(10), None, None)
    assert (balance.transaction_count, balance.formatted_amount) == (None, None)


@pytest.mark.parametrize("balances", [{}, [{}], [[]], {"amount": 10}, {"balances": {"amount": 10}}])
def test_balances_without_a_currency_are_a_failed_read(
    serve: Serve, gateway: Gateway, balances: object
) -> None:
    client = gateway(serve(stub.answer(200, {"data": {"balances": balances}})).url)
    with pytest.raises(ReadFailedError, match=r"toCurrency|balances"):
        client.balances.list()


def test_a_formatted_amount_may_have_group_separators(serve: Serve, gateway: Gateway) -> None:
    entry = NGN | {"toCurrency": "NGN", "formattedAmount": "1,234.50"}
    (balance,) = gateway(serve(stub.answer(200, {"data": {"balances": entry}})).url).balances.list()
    assert balance.formatted_amount == Decimal("1234.50")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"balances": "none"},
        {"balances": [1]},
        {"balances": None},
        {"balances": [], "balance": NGN | {"toCurrency": "NGN"}},
        {"balances": NGN},
        {"balances": {"NGN": 5}},
        {"balances": {"NGN": NGN | {"toCurrency": "USD"}}},
        {"balances": [NGN | {"toCurrency": "NGN"}, NGN | {"toCurrency": "NGN", "amount": 7}]},
        {"balances": NGN | {"toCurrency": ""}},
        {"balances": NGN | {"toCurrency": "NGN", "amount": None}},
        {"balances": NGN | {"toCurrency": "NGN", "amount": "1e5"}},
        {"balances": NGN | {"toCurrency": "NGN", "amount": True}},
        {"balances": NGN | {"toCurrency": "NGN", "txnCount": 1.5}},
    ],
)
def test_unreadable_balances_are_a_failed_read(serve: Serve, gateway: Gateway, data: dict[str, Any]) -> None:
    with pytest.raises(ReadFailedError):
        gateway(serve(stub.answer(200, {"data": data})).url).balances.list()


def test_a_read_of_one_currency_returns_only_its_balance(serve: Serve, gateway: Gateway) -> None:
    client = gateway(serve(stub.answer(200, {"data": {"balances": {"NGN": NGN, "USD": NGN}}})).url)
    assert [balance.currency for balance in client.balances.list("USD")] == ["USD"]
    assert client.balances.list("USDT") == []


def test_the_holder_of_another_account_is_a_failed_read(serve: Serve, gateway: Gateway) -> None:
    data = {"accountname": "ADA OBI", "accountnumber": "0123456780", "code": "044", "name": "Access Bank"}
    with pytest.raises(ReadFailedError, match="it is about another account"):
        gateway(serve(stub.answer(200, {"data": data})).url).banks.resolve(
            account_number="0123456789", bank_code="044"
        )


@pytest.mark.parametrize(
    "bank",
    [
        {"accountname": "ADA OBI", "code": "044", "name": "Access Bank"},
        {"accountName": "ADA OBI", "data": {"code": "044", "name": "Access Bank"}},
    ],
)
def test_an_account_is_resolved_flat_or_nested(serve: Serve, gateway: Gateway, bank: dict[str, Any]) -> None:
    data = {
        "accountnumber": "0123456789",
        "phonenumber": "+234",
        "responsecode": "00",
    } | bank
    client = gateway(serve(stub.answer(200, {"data": data})).url)
    holder = client.banks.resolve(account_number="0123456789", bank_code="044")
    assert (holder.account_name, holder.account_number) == ("ADA OBI", "0123456789")
    assert (holder.bank_code, holder.bank_name) == ("044", "Access Bank")
    assert (holder.phone_number, holder.response_code) == ("+234", "00")


def test_two_different_holders_of_one_account_are_a_failed_read(serve: Serve, gateway: Gateway) -> None:
    for other, is_same in (("Ada  Obi", True), ("EFE OBI", False)):
        data = {"accountname": "ADA OBI", "accountName": other}
        client = gateway(serve(stub.answer(200, {"data": data})).url)
        if is_same:
            holder = client.banks.resolve(account_number="0123456789", bank_code="044")
            assert holder.account_name == "ADA OBI"
        else:
            with pytest.raises(ReadFailedError, match="accountname, accountName contradict each other"):
                client.banks.resolve(account_number="0123456789", bank_code="044")


@pytest.mark.parametrize("data", [{}, {"accountname": ""}, {"accountname": None}, {"name": "Access Bank"}])
def test_the_bank_name_is_not_taken_for_the_account_name(
    serve: Serve, gateway: Gateway, data: dict[str, Any]
) -> None:
    with pytest.raises(ReadFailedError):
        gateway(serve(stub.answer(200, {"data": data})).url).banks.resolve(
            account_number="1", bank_code="044"
        )


@pytest.mark.parametrize("status", [200, 404])
def test_an_unknown_account_is_refused_with_the_providers_message(
    serve: Serve, gateway: Gateway, status: int
) -> None:
    server = serve(stub.answer(status, {"success": False, "message": "Account not found"}))
    kind = NotFoundError if status == 404 else RejectedError
    with pytest.raises(kind, match="Account not found"):
        gateway(server.url).banks.resolve(account_number="1", bank_code="044")


def test_a_record_is_read_completely(serve: Serve, gateway: Gateway) -> None:
    record = RECORD | {
        "version": "v2",
        "sender": "acme",
        "isFromRegUser": True,
        "prevBalance": 100,
        "senderPrevbalance": "99",
        "type": "withdrawal",
        "businessId": "B",
        "date": "2025-11-21",
        "fromCurrency": "NGN",
        "fromAmount": 5,
        "username": "ada",
        "fee": "0.5",
        "createdAt": "2025-11-21T10:00:00.250Z",
        "updatedAt": 1763719200,
        "failureReason": "none",
    }
    headers = ("Date: Fri, 21 Nov 2025 10:00:05 GMT",)
    page = gateway(serve(stub.answer(200, page_of(record), headers)).url).transactions.page()
    (read,) = page.records
    assert page.answered_at == datetime(2025, 11, 21, 10, 0, 5, tzinfo=UTC)
    assert (read.status, read.fee, read.previous_balance) == ("fulfilled", Decimal("0.5"), Decimal(100))
    assert read.created_at == datetime(2025, 11, 21, 10, 0, 0, 250_000, tzinfo=UTC)
    assert read.updated_at == datetime(2025, 11, 21, 10, 0, tzinfo=UTC)
    assert read.model_extra == {"failureReason": "none"}


@pytest.mark.parametrize(
    ("wire", "status"),
    [
        ("fullfiled", "fulfilled"),
        ("Fullfiled", "fulfilled"),
        ("fulfilled", "fulfilled"),
        ("processing", "processing"),
        ("FAILED", "failed"),
        ("reversed", "reversed"),
        (None, ""),
    ],
)
def test_an_unknown_status_is_kept(serve: Serve, gateway: Gateway, wire: str | None, status: str) -> None:
    client = gateway(serve(stub.answer(200, page_of(RECORD | {"status": wire}))).url)
    assert client.transactions.page().records[0].status == status


@pytest.mark.parametrize(
    ("wire", "moment"),
    [
        ("2025-11-21T11:00:00+01:00", datetime(2025, 11, 21, 10, tzinfo=UTC)),
        ("2025-11-21T10:00:00", datetime(2025, 11, 21, 10, tzinfo=UTC)),
        (1763719200, datetime(2025, 11, 21, 10, tzinfo=UTC)),
        (1763719200.5, datetime(2025, 11, 21, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("1763719200", datetime(2025, 11, 21, 10, tzinfo=UTC)),
        ("yesterday", None),
        (10**15, None),
        (-1, None),
        ("", None),
        (None, None),
        ([], None),
    ],
)
def test_an_unreadable_time_is_omitted(
    serve: Serve, gateway: Gateway, wire: object, moment: datetime | None
) -> None:
    client = gateway(serve(stub.answer(200, page_of(RECORD | {"createdAt": wire}))).url)
    assert client.transactions.page().records[0].created_at == moment


def test_page_numbers_may_be_text(serve: Serve, gateway: Gateway) -> None:
    page = gateway(serve(stub.answer(200, page_of(RECORD, page="1", pages="3"))).url).transactions.page()
    assert (page.page, page.pages, page.total, page.per_page) == (1, 3, 1, 2)
    assert page.answered_at is None


@pytest.mark.parametrize(
    "change", [{"transactionId": ""}, {"transactionId": None}, {"amount": None}, {"amount": "x"}]
)
def test_a_page_with_an_unreadable_record_is_refused(
    serve: Serve, gateway: Gateway, change: dict[str, Any]
) -> None:
    with pytest.raises(ReadFailedError):
        gateway(serve(stub.answer(200, page_of(RECORD, RECORD | change))).url).transactions.page()
