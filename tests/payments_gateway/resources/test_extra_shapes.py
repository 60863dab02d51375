"""What the reads beyond the specification find, in whatever shape it comes; nonsense is a failed read."""

import re
from decimal import Decimal

import pytest

from payments_gateway import ReadFailedError
from payments_gateway.profile.values import Capability
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.extra_reads import ALL_ON, PAYMENT, READS, RECORD, asked


def test_banks_are_read_for_a_country(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, {"data": [{"Code": "044", "Name": "Access Bank", "Colour": "orange"}]}))
    (bank,) = gateway(server.url, profile=ALL_ON).extras.banks(country="Côte d'Ivoire")
    assert (bank.code, bank.name, bank.model_extra) == ("044", "Access Bank", {"Colour": "orange"})
    assert server.requests[0].target == "/v2/bank/supported?country=C%C3%B4te%20d%27Ivoire"


def test_rates_are_exact_and_have_their_key(serve: Serve, gateway: Gateway) -> None:
    body = b'{"data": {"USDTNGN": {"rate": 1534.123456789012345678, "key": "k-1"}, "updatedAt": "now"}}'
    rates = asked(serve, gateway, body, lambda client: client.extras.rates())
    assert list(rates) == ["USDTNGN"]
    assert (rates["USDTNGN"].rate, rates["USDTNGN"].key) == (Decimal("1534.123456789012345678"), "k-1")


@pytest.mark.parametrize(
    "data",
    [
        [{"code": "NGN", "name": "Naira"}],
        [{"currency": "NGN", "name": "Naira"}],
        {"NGN": {"name": "Naira"}},
        {"NGN": "Naira"},
    ],
)
def test_currencies_are_read_in_every_shape(serve: Serve, gateway: Gateway, data: object) -> None:
    (currency,) = asked(serve, gateway, {"data": data}, lambda client: client.extras.currencies())
    assert (currency.code, currency.name) == ("NGN", "Naira")


def test_currencies_are_read_by_direction(serve: Serve, gateway: Gateway) -> None:
    data = {"incomingCurrencies": ["USDT", {"code": "USD"}], "outgoingCurrencies": ["NGN", "USD"]}
    found = asked(serve, gateway, {"data": data}, lambda client: client.extras.currencies())
    assert [(each.code, each.is_incoming, each.is_outgoing) for each in found] == [
        ("USDT", True, False),
        ("USD", True, True),
        ("NGN", False, True),
    ]


def test_a_currency_may_be_only_a_code(serve: Serve, gateway: Gateway) -> None:
    found = asked(serve, gateway, {"data": ["NGN", "USDT"]}, lambda client: client.extras.currencies())
    assert [currency.code for currency in found] == ["NGN", "USDT"]


@pytest.mark.parametrize(
    "data",
    [
        {"NGN": 100.5},
        {"NGN": "100.5"},
        {"NGN": {"minimum": "100.5"}},
        [{"currency": "NGN", "minimumAllowed": 100.5}],
        [{"code": "NGN", "amount": "100.5"}],
    ],
)
def test_minimums_are_read_in_every_shape(serve: Serve, gateway: Gateway, data: object) -> None:
    (minimum,) = asked(serve, gateway, {"data": data}, lambda client: client.extras.minimums())
    assert (minimum.currency, minimum.amount) == ("NGN", Decimal("100.5"))


@pytest.mark.parametrize(
    "data",
    [
        {"USDT": ["TRC20", "ERC20"]},
        {"USDT": {"networks": ["TRC20", {"name": "ERC20"}]}},
        [{"currency": "USDT", "networks": [{"network": "TRC20", "fee": 1}, {"network": "ERC20"}]}],
        {"byNetwork": {"TRC20": ["USDT"]}, "byCurrency": {"USDT": ["TRC20", "ERC20"]}},
        {"byNetwork": {}, "byCurrency": {"USDT": {"TRC20": {"fee": 1}, "ERC20": {}}}},
        {"byNetwork": {}, "byCurrency": [{"code": "USDT", "networks": ["TRC20", "ERC20"]}]},
    ],
)
def test_networks_are_read_in_every_shape(serve: Serve, gateway: Gateway, data: object) -> None:
    (option,) = asked(serve, gateway, {"data": data}, lambda client: client.extras.wallet_config())
    assert (option.currency, option.networks) == ("USDT", ["TRC20", "ERC20"])


@pytest.mark.parametrize(
    "body", [RECORD, {"data": RECORD}, {"success": True, "message": "ok", "data": RECORD}]
)
def test_a_transaction_is_read_flat_or_in_an_envelope(serve: Serve, gateway: Gateway, body: object) -> None:
    record = asked(serve, gateway, body, lambda client: client.extras.transaction("T-1"))
    assert (record.transaction_id, record.amount, record.status) == ("T-1", Decimal(5), "fulfilled")


def test_a_response_with_another_transaction_is_refused(serve: Serve, gateway: Gateway) -> None:
    with pytest.raises(ReadFailedError, match="another transaction"):
        asked(serve, gateway, RECORD, lambda client: client.extras.transaction("T-2"))


@pytest.mark.parametrize("body", [PAYMENT, {"success": True, "message": "ok", "data": PAYMENT}])
def test_a_payment_is_read_flat_or_in_an_envelope(serve: Serve, gateway: Gateway, body: object) -> None:
    payment = asked(serve, gateway, body, lambda client: client.extras.payment("T-1"))
    assert (payment.id, payment.reference, payment.rate) == ("T-1", "R-1", Decimal("1534.5"))


def test_a_response_with_another_payment_is_refused(serve: Serve, gateway: Gateway) -> None:
    with pytest.raises(ReadFailedError, match="another payment"):
        asked(serve, gateway, PAYMENT, lambda client: client.extras.payment("T-2"))


@pytest.mark.parametrize(
    ("name", "data", "member"),
    [
        ("wallet_config", {"byNetwork": {"TRC20": ["USDT"]}}, "byCurrency is missing"),
        ("wallet_config", {"byCurrency": {}}, "byCurrency is an object without any entry"),
        (
            "wallet_config",
            {"byCurrency": [], "byNetwork": {"TRC20": ["USDT"]}},
            "byCurrency, byNetwork contradict each other",
        ),
        ("wallet_config", {"byCurrency": {"USDT": {"symbol": "T", "decimals": 6}}}, "networks"),
        ("wallet_config", {"BYNETWORK2": []}, "networks"),
        ("wallet_config", {"perNetwork": ["TRC20"]}, "currency"),
        ("minimums", {"incoming": 5}, "currency"),
        ("minimums", ["NGN"], "amount"),
        ("minimums", {}, "data is an object without any entry"),
        ("currencies", {"incomingCurrencies": ["USDT"]}, "outgoingCurrencies is missing"),
        ("currencies", {"list": ["NGN"]}, "code"),
        ("rates", {"note": "none today"}, "it contains no currency pair"),
        ("rates", {"USDTNGN": None}, "USDTNGN is not an object"),
        ("banks", {}, "data is an object without any entry"),
    ],
)
def test_what_is_no_entry_of_the_list_is_a_failed_read_that_names_it(
    serve: Serve, gateway: Gateway, name: Capability, data: object, member: str
) -> None:
    with pytest.raises(ReadFailedError, match=re.escape(member)):
        asked(serve, gateway, {"data": data}, READS[name])


def test_a_configuration_whose_state_is_false_is_a_failed_read(serve: Serve, gateway: Gateway) -> None:
    body = {"state": False, "data": {"byNetwork": {}, "byCurrency": {"USDT": ["TRC20"]}}}
    with pytest.raises(ReadFailedError, match="state is false"):
        asked(serve, gateway, body, READS["wallet_config"])


NONSENSE: tuple[object, ...] = (
    *(b"", b"[]", b"null", b"<html>", {}, {"data": None}, {"data": 7}, {"data": "text"}, {"data": [None]}),
    *(
        {"data": [[]]},
        {"data": {"a": {"b": {"c": []}}}},
        {"data": [{"Code": {}, "Name": []}]},
        {"data": [True]},
    ),
    *({"data": {"USDTNGN": {"rate": 0}}}, {"data": {"USDTNGN": {"rate": "much"}}}, {"data": {"": 1}}),
    {"transactionId": []},
)


@pytest.mark.parametrize("body", NONSENSE, ids=repr)
@pytest.mark.parametrize("name", READS)
def test_a_malformed_response_is_a_failed_or_empty_read(
    serve: Serve, gateway: Gateway, name: Capability, body: object
) -> None:
    try:
        found = asked(serve, gateway, body, READS[name])
    except ReadFailedError:
        return
    assert isinstance(found, (list, dict)), found
