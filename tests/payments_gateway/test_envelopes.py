"""Every envelope of the specification's table, and what the tolerant reading of the others makes of them."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from payments_gateway import (
    Dialect,
    OutcomeUnknownError,
    PaymentsGateway,
    ReadFailedError,
    TransferDetail,
    Wallet,
)
from tests.payments_gateway import stub
from tests.payments_gateway.calls import CALLS, DETAIL, DONE, PAGE, PAID, WALLET_DETAIL
from tests.payments_gateway.conftest import Gateway, Serve

NOON = datetime(2025, 11, 21, 12, tzinfo=UTC)
Answered = Any


@pytest.fixture
def answered(serve: Serve, gateway: Gateway) -> Answered:
    """Make a call of the table, with this body as its answer."""

    def call(name: str, body: object, **settings: Any) -> Any:
        return CALLS[name].call(gateway(serve(stub.answer(200, body)).url, **settings))

    return call


@pytest.mark.parametrize("name", ["balances.convert", "balances.transfer"])
@pytest.mark.parametrize("data", [DETAIL, {"transferDetail": DETAIL}], ids=["directly", "nested"])
def test_a_transfer_is_told_nested_or_directly(answered: Answered, name: str, data: dict[str, Any]) -> None:
    detail = answered(name, {**DONE, "data": data})
    assert isinstance(detail, TransferDetail)
    assert (detail.transaction_id, detail.status, detail.date) == ("T1", "fulfilled", "2025-11-21")
    assert (detail.amount, detail.receive_amount) == (Decimal("1500.50"), Decimal("1.00"))
    assert (detail.from_currency, detail.to_currency) == ("NGN", "USD")
    assert (detail.sender, detail.username) == ("acme", "ada")
    assert detail.sender_previous_balance == Decimal("2000.00")
    assert detail.raw == data


@pytest.mark.parametrize("data", [WALLET_DETAIL, {"transferDetail": WALLET_DETAIL}])
def test_a_wallet_transfer_is_told_nested_or_directly(answered: Answered, data: dict[str, Any]) -> None:
    detail = answered("wallets.transfer", {**DONE, "data": data})
    assert (detail.transaction_id, detail.status, detail.type) == ("T1", "fulfilled", "transfer")
    assert (detail.amount, detail.receive_amount) == (Decimal(2), Decimal("1.5"))
    assert (detail.address, detail.memo) == ("T9yD", "m")


@pytest.mark.parametrize("name", ["balances.convert", "balances.transfer", "wallets.transfer"])
@pytest.mark.parametrize(
    "change",
    [
        {"amount": "1,000.00"},
        {"amount": None},
        {"amount": ""},
        {"amount": [1]},
        {"amount": "9" * 30},
        {"status": None, "date": {"y": 1}, "sender": ["x"], "username": 5, "memo": True, "news": {"a": 1}},
        {"toCurrency": None},
    ],
)
def test_a_yes_is_not_lost_for_its_details(answered: Answered, name: str, change: dict[str, Any]) -> None:
    detail = answered(name, {**DONE, "data": DETAIL | change})
    assert detail.transaction_id == "T1"
    assert detail.raw == DETAIL | change


@pytest.mark.parametrize("name", ["balances.convert", "balances.transfer", "wallets.transfer"])
def test_a_yes_without_details_is_a_yes(answered: Answered, name: str) -> None:
    detail = answered(name, {**DONE, "data": {}})
    assert (detail.transaction_id, detail.status, detail.amount) == (None, "", None)


@pytest.mark.parametrize("body", [DONE, {**DONE, "data": []}, {**DONE, "data": "yes"}, {**DONE, "data": 1}])
@pytest.mark.parametrize(
    "name",
    ["balances.convert", "balances.transfer", "wallets.transfer", "payments.create", "api_keys.create"],
)
def test_a_yes_that_holds_no_object_proves_nothing(
    answered: Answered, name: str, body: dict[str, Any]
) -> None:
    with pytest.raises(OutcomeUnknownError):
        answered(name, body)


def test_a_payment_is_read_whole(answered: Answered) -> None:
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


def test_a_payment_that_tells_only_its_address_still_tells_it(answered: Answered) -> None:
    payment = answered("payments.create", {**DONE, "data": {"address": "T9yD", "rate": "n/a", "expTime": 0}})
    assert (payment.address, payment.rate, payment.id) == ("T9yD", None, None)


@pytest.mark.parametrize("data", [{}, {"_id": "", "reference": None, "address": " ", "state": "pending"}])
def test_a_yes_that_names_no_payment_proves_nothing(answered: Answered, data: dict[str, Any]) -> None:
    with pytest.raises(OutcomeUnknownError, match="it names no payment: no id, no reference, no address"):
        answered("payments.create", {**DONE, "data": data})


def test_a_payment_of_another_reference_is_not_ours(answered: Answered) -> None:
    with pytest.raises(OutcomeUnknownError, match="of another reference than the one sent"):
        answered("payments.create", {**DONE, "data": PAID | {"reference": "R2"}})


@pytest.mark.parametrize("name", ["_id", "reference", "address"])
def test_one_name_is_enough_to_know_the_payment(answered: Answered, name: str) -> None:
    payment = answered("payments.create", {**DONE, "data": {name: PAID[name]}})
    assert payment.raw == {name: PAID[name]}


WALLET = {"uid": "W1", "appName": "acme", "reference": "R", "status": "active", "version": "v2"}


@pytest.mark.parametrize(
    "body",
    [
        {**DONE, "wallet": WALLET},
        {**DONE, "data": WALLET},
        {**DONE, "data": {"wallet": WALLET}},
        {"wallet": WALLET | {"addresses": None}},
        {"wallet": WALLET | {"addresses": []}},
    ],
)
def test_a_wallet_is_found_instead_of_data_or_in_it(answered: Answered, body: dict[str, Any]) -> None:
    wallet = answered("wallets.get", body)
    assert isinstance(wallet, Wallet)
    assert (wallet.uid, wallet.app_name, wallet.reference) == ("W1", "acme", "R")
    assert (wallet.status, wallet.version, wallet.addresses) == ("active", "v2", ())


@pytest.mark.parametrize(
    "wallet", [{"addresses": []}, {"addresses": None}, {"uid": "W1"}, {"createdAt": 1763726400}]
)
def test_one_member_of_a_wallet_makes_a_wallet_without_addresses(
    answered: Answered, wallet: dict[str, Any]
) -> None:
    assert answered("wallets.get", {"wallet": wallet}).addresses == ()


@pytest.mark.parametrize(
    ("element", "told"),
    [
        ("T9yD", ("T9yD", "", "")),
        ({"address": "T9yD", "network": "TRC20", "currency": "USDT"}, ("T9yD", "TRC20", "USDT")),
        ({"id": "T9yD", "type": "TRC20"}, ("T9yD", "TRC20", "")),
        ({"id": "17", "address": "T9yD", "type": "deposit", "network": "TRC20"}, ("T9yD", "TRC20", "")),
        ({"memo": "7"}, ("", "", "")),
        ({"address": None, "id": ["x"]}, ("", "", "")),
    ],
)
def test_an_address_is_a_text_or_an_object(
    answered: Answered, element: object, told: tuple[str, str, str]
) -> None:
    wallet = answered(
        "wallets.get", {"wallet": {"addresses": [element], "createdAt": 1763726400, "updatedAt": "x"}}
    )
    (address,) = wallet.addresses
    assert (address.address, address.network, address.currency) == told
    assert (wallet.created_at, wallet.updated_at) == (NOON, None)


@pytest.mark.parametrize(
    "body",
    [
        DONE,
        {"wallet": []},
        {"wallet": None},
        {"wallet": {"addresses": {"a": 1}}},
        {"wallet": {}},
        {**DONE, "data": {}},
        {**DONE, "data": {"note": "nothing here"}},
    ],
)
def test_what_is_no_wallet_is_not_read(answered: Answered, body: dict[str, Any]) -> None:
    with pytest.raises(ReadFailedError):
        answered("wallets.get", body)


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
def test_half_a_summary_is_none(answered: Answered, data: dict[str, Any]) -> None:
    with pytest.raises(ReadFailedError):
        answered("transactions.summary", {**DONE, "data": data})


OPENED = {
    "account_name": "Ada Ltd",
    "account_number": "0123456789",
    "bank_code": "044",
    "bank_name": "Access Bank",
    "currency": "NGN",
    "status": "ACTIVE",
}


@pytest.mark.parametrize("data", [[OPENED], OPENED])
def test_opened_accounts_are_a_list(answered: Answered, data: object) -> None:
    (account,) = answered("accounts.create", {"data": data, "message": "created"})
    assert account.model_dump() == OPENED


@pytest.mark.parametrize("data", [None, "x", [1], [[]]])
def test_an_opened_account_that_cannot_be_understood_proves_nothing(answered: Answered, data: object) -> None:
    with pytest.raises(OutcomeUnknownError):
        answered("accounts.create", {"data": data})


@pytest.mark.parametrize("data", [{}, [], [{}]])
def test_an_account_of_which_nothing_is_said_is_none(answered: Answered, data: object) -> None:
    assert answered("accounts.create", {"data": data, "message": "created"}) == []


ASSET = {"id": "0123456789", "type": "bank", "balance": "10.50"}


@pytest.mark.parametrize(
    "accounts",
    [
        [{"accountName": "Ada", "assets": [ASSET | {"currency": "NGN"}]}],
        [{"accountName": "Ada", "assets": {"NGN": ASSET}}],
    ],
)
@pytest.mark.parametrize("is_bare", [True, False])
def test_accounts_are_bare_or_a_member(answered: Answered, accounts: list[Any], is_bare: bool) -> None:
    (account,) = answered("accounts.list", {"data": accounts if is_bare else {"accounts": accounts}})
    (asset,) = account.assets
    assert (account.account_name, asset.currency, asset.address) == ("Ada", "NGN", "0123456789")
    assert (asset.type, asset.balance) == ("bank", Decimal("10.50"))


def test_an_account_may_hold_nothing(answered: Answered) -> None:
    (account,) = answered("accounts.list", {"data": [{"accountName": "Ada"}]})
    assert account.assets == ()


@pytest.mark.parametrize(
    "data",
    [None, {}, {"accounts": {}}, [1], [{"assets": 1}], [{"assets": [1]}], [{"assets": [{"balance": "x"}]}]],
)
def test_what_is_no_list_of_accounts_is_not_read(answered: Answered, data: object) -> None:
    with pytest.raises(ReadFailedError):
        answered("accounts.list", {"data": data})


KEY = {
    "Apikey": "1a2b3c4d",
    "Keyname": "reports",
    "Username": "merchant",
    "Expirable": True,
    "Expiration": 1763726400,
    "DeletedAt": None,
}


@pytest.mark.parametrize("data", [{"Apikeys": [KEY]}, {"apikeys": [KEY]}, [KEY]])
def test_keys_are_listed_by_their_hashes(answered: Answered, data: object) -> None:
    (key,) = answered("api_keys.list", {"data": data})
    assert (key.short_hash, key.name, key.username) == ("1a2b3c4d", "reports", "merchant")
    assert (key.is_expirable, key.expires_at, key.deleted_at) == (True, NOON, None)


def test_the_members_of_a_listed_key_are_open_points(answered: Answered) -> None:
    dialect = Dialect().overridden(
        {
            "listed_key_hash_members": ["shortHash", "Apikey"],
            "listed_key_name_members": ["label"],
            "listed_key_username_members": ["owner"],
            "listed_key_expirable_members": ["expires"],
            "listed_key_expiry_members": ["expiresAt"],
            "listed_key_deletion_members": ["deletedOn"],
        }
    )
    listed = {
        "shortHash": "1a2b3c4d",
        "Apikey": "other",
        "label": "reports",
        "owner": "merchant",
        "expires": True,
        "expiresAt": 1763726400,
        "deletedOn": 1763726400,
    }
    (key,) = answered("api_keys.list", {"data": [listed]}, dialect=dialect)
    assert (key.short_hash, key.name, key.username) == ("1a2b3c4d", "reports", "merchant")
    assert (key.is_expirable, key.expires_at, key.deleted_at) == (True, NOON, NOON)
    assert key.model_extra == {"Apikey": "other"}


@pytest.mark.parametrize("key", ["1a2b3c4d", None, [], {}, {"Keyname": "reports"}, {"Apikey": ""}])
def test_what_is_no_key_of_the_list_is_not_read(answered: Answered, key: object) -> None:
    with pytest.raises(ReadFailedError):
        answered("api_keys.list", {"data": [key]})


@pytest.mark.parametrize("never", [None, "", 0, "0", "0001-01-01T00:00:00Z", "never"])
def test_a_moment_that_is_none_is_none(answered: Answered, never: object) -> None:
    (key,) = answered("api_keys.list", {"data": [KEY | {"DeletedAt": never, "Expirable": "no"}]})
    assert (key.deleted_at, key.is_expirable) == (None, None)


def test_scopes_are_names_and_codes(answered: Answered) -> None:
    scopes = {"Master": "M", "GetOnly": "G", "Withdrawal": "W", "NoWithdrawal": "N"}
    assert answered("api_keys.scopes", {"data": scopes}) == scopes


@pytest.mark.parametrize("data", [None, [], {}, {"Master": None}, {"Master": {"a": 1}}])
def test_what_is_no_scope_is_not_read(answered: Answered, data: object) -> None:
    with pytest.raises(ReadFailedError):
        answered("api_keys.scopes", {"data": data})


@pytest.mark.parametrize("data", [{"key": "canary-new-key"}, {"apikey": "canary-new-key"}])
@pytest.mark.parametrize("name", ["api_keys.create", "api_keys.generate"])
def test_a_new_key_is_found_and_covered(answered: Answered, name: str, data: dict[str, Any]) -> None:
    created = answered(name, {"data": {**data, "expires": "2025-11-21T12:00:00Z"}})
    assert created.key.get_secret_value() == "canary-new-key"
    assert created.expires == NOON


def test_the_places_of_an_answer_are_open_points(answered: Answered) -> None:
    dialect = Dialect().overridden(
        {
            "transfer_detail_paths": [["result", "detail"]],
            "created_key_paths": [["secret"]],
            "wallet_paths": [["purse"]],
            "wallet_address_members": ["to"],
        }
    )
    body = {**DONE, "data": {"result": {"detail": DETAIL}}}
    assert answered("balances.convert", body, dialect=dialect).transaction_id == "T1"
    assert (
        answered("api_keys.create", {"data": {"secret": "s"}}, dialect=dialect).key.get_secret_value() == "s"
    )
    wallet = answered("wallets.get", {"purse": {"addresses": [{"to": "T9yD"}]}}, dialect=dialect)
    assert wallet.addresses[0].address == "T9yD"


ACKNOWLEDGED = ["callbacks.set_url", "api_keys.invalidate", "api_keys.delete"]


@pytest.mark.parametrize("name", ACKNOWLEDGED)
@pytest.mark.parametrize(
    "body", [DONE, {"message": "done"}, {"success": True}, {"data": {"apikey": "1a2b3c4d"}}]
)
def test_a_yes_may_need_no_data(answered: Answered, name: str, body: dict[str, Any]) -> None:
    assert answered(name, body) is None


@pytest.mark.parametrize("name", ACKNOWLEDGED)
@pytest.mark.parametrize("body", [{}, {"message": ""}, {"data": None}, {"status": "down for maintenance"}])
def test_an_object_that_says_nothing_of_a_success_proves_nothing(
    answered: Answered, name: str, body: dict[str, Any]
) -> None:
    with pytest.raises(OutcomeUnknownError, match="does not say that anything was done"):
        answered(name, body)


@pytest.mark.parametrize("amount", ["9" * 23, "1" + "0" * 22 + ".5", "0." + "1" * 41, "-" + "9" * 23])
@pytest.mark.parametrize("as_text", [True, False])
def test_an_amount_that_no_ledger_could_hold_is_not_read(
    serve: Serve, gateway: Gateway, amount: str, as_text: bool
) -> None:
    written = f'"{amount}"' if as_text else amount
    record = f'{{"transactionId": "T1", "amount": {written}}}'
    body = f'{{"data": {{"data": [{record}], "total": 1, "perPage": 1, "page": 1, "pages": 1}}}}'.encode()
    client: PaymentsGateway = gateway(serve(stub.answer(200, body)).url)
    with pytest.raises(ReadFailedError, match=r"data\.0\.amount: (a number out of|not a number)"):
        client.transactions.page()


@pytest.mark.parametrize("amount", ["9" * 22, "0." + "1" * 40, "0", "-5.50"])
def test_an_amount_of_any_size_that_there_is_is_exact(serve: Serve, gateway: Gateway, amount: str) -> None:
    record = f'{{"transactionId": "T1", "amount": {amount}, "fee": "", "isFromRegUser": "maybe"}}'
    body = f'{{"data": {{"data": [{record}], "total": 1, "perPage": 1, "page": 1, "pages": 1}}}}'.encode()
    (read,) = gateway(serve(stub.answer(200, body)).url).transactions.page().records
    assert (read.amount, read.fee, read.is_from_registered_user) == (Decimal(amount), None, None)
