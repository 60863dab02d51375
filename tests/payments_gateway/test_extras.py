"""The reads beyond the specification: off unless named, tolerant of shapes, and never GET /payment/resolve."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from payments_gateway import (
    CapabilityOffError,
    Dialect,
    GatewayError,
    NotSentError,
    PaymentsGateway,
    ReadFailedError,
)
from payments_gateway.dialect import CAPABILITIES, Capability
from payments_gateway.extras import EXTRA_READS
from payments_gateway.operations import OPERATIONS
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve, config

ALL_ON = Dialect(capabilities=CAPABILITIES)
RECORD = {"transactionId": "T-1", "amount": 5, "status": "fullfiled"}
PAYMENT = {"_id": "T-1", "reference": "R-1", "state": "pending", "rate": "1534.5"}

READS: dict[Capability, Callable[[PaymentsGateway], object]] = {
    "banks": lambda gateway: gateway.extras.banks(),
    "rates": lambda gateway: gateway.extras.rates(),
    "currencies": lambda gateway: gateway.extras.currencies(),
    "minimums": lambda gateway: gateway.extras.minimums(),
    "wallet_config": lambda gateway: gateway.extras.wallet_config(),
    "transaction": lambda gateway: gateway.extras.transaction("T-1"),
    "payment": lambda gateway: gateway.extras.payment("T-1"),
}

BY_ID: dict[Capability, Callable[[PaymentsGateway, str], object]] = {
    "transaction": lambda gateway, identity: gateway.extras.transaction(identity),
    "payment": lambda gateway, identity: gateway.extras.payment(identity),
}


def asked(serve: Serve, gateway: Gateway, body: object, read: Callable[[PaymentsGateway], Any]) -> Any:
    return read(gateway(serve(stub.answer(200, body)).url, dialect=ALL_ON))


@pytest.mark.parametrize("name", READS)
def test_what_is_off_is_not_asked(serve: Serve, gateway: Gateway, name: Capability) -> None:
    server = serve(stub.answer(200, {"data": []}))
    others = tuple(other for other in CAPABILITIES if other != name)
    client = gateway(server.url, dialect=Dialect(capabilities=others))
    assert not client.extras.is_on(name)
    with pytest.raises(CapabilityOffError, match=f"{name} is not switched on.*Nothing was asked"):
        READS[name](client)
    assert (server.connections, server.requests) == (0, [])


def test_nothing_is_on_by_default() -> None:
    with PaymentsGateway(config("https://service.example/v2")) as client:
        assert not any(client.extras.is_on(name) for name in CAPABILITIES)


@pytest.mark.parametrize("name", READS)
def test_what_is_on_is_one_get_with_credentials(serve: Serve, gateway: Gateway, name: Capability) -> None:
    plain = {"rates": {"data": {}}, "transaction": RECORD, "payment": PAYMENT}
    server = serve(stub.answer(200, plain.get(name, {"data": []})))
    client = gateway(server.url, dialect=ALL_ON)
    assert client.extras.is_on(name)
    READS[name](client)
    (request,) = server.requests
    path = re.sub(r"\{\w+\}", "T-1", EXTRA_READS[name].path)
    assert (request.method, request.target, request.body) == ("GET", f"/v2{path}", b"")
    assert request.header("X-Api-Key") == "canary-key-7f3a"


def test_banks_of_a_country(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, {"data": [{"Code": "044", "Name": "Access Bank", "Colour": "orange"}]}))
    (bank,) = gateway(server.url, dialect=ALL_ON).extras.banks(country="Côte d'Ivoire")
    assert (bank.code, bank.name, bank.model_extra) == ("044", "Access Bank", {"Colour": "orange"})
    assert server.requests[0].target == "/v2/bank/supported?country=C%C3%B4te%20d%27Ivoire"


def test_rates_are_exact_and_carry_their_key(serve: Serve, gateway: Gateway) -> None:
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
def test_currencies_come_in_many_shapes(serve: Serve, gateway: Gateway, data: object) -> None:
    (currency,) = asked(serve, gateway, {"data": data}, lambda client: client.extras.currencies())
    assert (currency.code, currency.name) == ("NGN", "Naira")


def test_a_currency_may_be_its_code_alone(serve: Serve, gateway: Gateway) -> None:
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
def test_minimums_come_in_many_shapes(serve: Serve, gateway: Gateway, data: object) -> None:
    (minimum,) = asked(serve, gateway, {"data": data}, lambda client: client.extras.minimums())
    assert (minimum.currency, minimum.amount) == ("NGN", Decimal("100.5"))


@pytest.mark.parametrize(
    "data",
    [
        {"USDT": ["TRC20", "ERC20"]},
        {"USDT": {"networks": ["TRC20", {"name": "ERC20"}]}},
        [{"currency": "USDT", "networks": [{"network": "TRC20", "fee": 1}, {"network": "ERC20"}]}],
    ],
)
def test_networks_come_in_many_shapes(serve: Serve, gateway: Gateway, data: object) -> None:
    (option,) = asked(serve, gateway, {"data": data}, lambda client: client.extras.wallet_config())
    assert (option.currency, option.networks) == ("USDT", ["TRC20", "ERC20"])


@pytest.mark.parametrize(
    "body", [RECORD, {"data": RECORD}, {"success": True, "message": "ok", "data": RECORD}]
)
def test_one_transaction_is_flat_or_in_an_envelope(serve: Serve, gateway: Gateway, body: object) -> None:
    record = asked(serve, gateway, body, lambda client: client.extras.transaction("T-1"))
    assert (record.transaction_id, record.amount, record.status) == ("T-1", Decimal(5), "fulfilled")


def test_another_transaction_is_not_the_one_asked_for(serve: Serve, gateway: Gateway) -> None:
    with pytest.raises(ReadFailedError, match="another transaction"):
        asked(serve, gateway, RECORD, lambda client: client.extras.transaction("T-2"))


@pytest.mark.parametrize("body", [PAYMENT, {"success": True, "message": "ok", "data": PAYMENT}])
def test_one_payment_is_flat_or_in_an_envelope(serve: Serve, gateway: Gateway, body: object) -> None:
    payment = asked(serve, gateway, body, lambda client: client.extras.payment("T-1"))
    assert (payment.id, payment.reference, payment.rate) == ("T-1", "R-1", Decimal("1534.5"))


def test_another_payment_is_not_the_one_asked_for(serve: Serve, gateway: Gateway) -> None:
    with pytest.raises(ReadFailedError, match="another payment"):
        asked(serve, gateway, PAYMENT, lambda client: client.extras.payment("T-2"))


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
def test_nonsense_is_a_failed_read_or_an_empty_one(
    serve: Serve, gateway: Gateway, name: Capability, body: object
) -> None:
    try:
        found = asked(serve, gateway, body, READS[name])
    except ReadFailedError:
        return
    assert isinstance(found, (list, dict)), found


@pytest.mark.parametrize(
    ("identity", "segment"),
    [
        ("T-1", "T-1"),
        ("a b".replace(" ", "+"), "a%2Bb"),
        ("a?b=c#d", "a%3Fb%3Dc%23d"),
        ("Ż:1;v=2", "%C5%BB%3A1%3Bv%3D2"),
    ],
)
def test_an_id_stays_one_segment(serve: Serve, gateway: Gateway, identity: str, segment: str) -> None:
    server = serve(stub.answer(200, {**RECORD, "transactionId": identity}))
    assert gateway(server.url, dialect=ALL_ON).extras.transaction(identity).transaction_id == identity
    assert server.requests[0].target == f"/v2/transaction/{segment}"


@pytest.mark.parametrize(
    "identity",
    [
        *(
            "",
            ".",
            "..",
            "/",
            "a/b",
            "../payment/resolve",
            "..\\payment",
            "a\\b",
            "%2e%2e",
            "a%2Fb",
            " ",
            "a b",
        ),
        *("a\r\nX-Evil: 1", "a\x00", "x" * 129, "resolve", "RESOLVE", "resolve?x=1", "resolve;x", "\ud800"),
    ],
)
def test_what_cannot_be_an_id_is_not_asked(serve: Serve, gateway: Gateway, identity: str) -> None:
    server = serve(stub.answer(200, RECORD))
    client = gateway(server.url, dialect=ALL_ON)
    for read in BY_ID.values():
        with pytest.raises(NotSentError, match="Nothing was asked"):
            read(client, identity)
    assert server.connections == 0


def test_the_read_that_moves_money_is_in_no_table() -> None:
    paths = [entry.path for entry in (*OPERATIONS, *EXTRA_READS.values())]
    assert not [path for path in paths if "payment/resolve" in path]


def test_no_id_leads_to_it(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(404, {"success": False, "message": "no such id"}))
    client = gateway(server.url, dialect=ALL_ON)

    @given(identity=st.text(max_size=40) | st.text("./\\%25eERESOLVresolv;?#", max_size=12))
    @example("resolve")
    @example("%72esolve")
    @example("./resolve")
    @example("../payment/resolve")
    @example("..%2fpayment%2fresolve")
    @settings(deadline=None)
    def ask(identity: str) -> None:
        server.requests.clear()
        for read in BY_ID.values():
            with pytest.raises(GatewayError):
                read(client, identity)
        for request in server.requests:
            segments = request.target.split("/")
            assert segments[:2] == ["", "v2"]
            assert segments[2] in BY_ID
            assert [unquote(segment) for segment in segments[3:]] == [identity]
            assert "resolve" not in unquote(unquote(request.target)).casefold()

    ask()


PATHS = [point.name for point in Dialect().open_points() if point.name.endswith("_path")]
AROUND_A_CORNER = (
    "/payment/resolve",
    "/Payment/RESOLVE",
    "/payment/resolve/",
    "/payment//resolve",
    "/payment/./resolve",
    "/payment/x/../resolve",
    "/payment/resolve/x/..",
    "/payment/{paymentId}/../resolve",
    "/payment/{paymentId}/resolve",
    "/payment/res{paymentId}",
    "/payment/{a}{b}",
    "/{a}/{b}",
    "/payment/{paymentId}/..",
    "/payment/%72esolve",
    "/payment%2Fresolve",
    "/payment\\resolve",
    "/payment/resolve?x=1",
    "/payment/resolve#x",
    "/payment/resolve;x",
    "payment/resolve",
    "//elsewhere.example/payment",
    "/payment/resolve\n",
)


@pytest.mark.parametrize("path", AROUND_A_CORNER)
@pytest.mark.parametrize("name", PATHS)
def test_no_override_leads_to_the_read_that_moves_money(name: str, path: str) -> None:
    with pytest.raises(ValueError, match=name):
        Dialect().overridden({name: path})
    with pytest.raises(ValueError, match=name):
        replace(Dialect(), **{name: path})  # type: ignore[arg-type]


SEGMENTS = (
    "payment",
    "resolve",
    "res",
    "olve",
    ".",
    "..",
    "",
    "{id}",
    "{",
    "}",
    "%72",
    "%2f",
    "\\",
    "?",
    ";",
)
SEGMENT = st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3).map("".join)
PATH = st.lists(st.sampled_from(SEGMENTS) | SEGMENT, min_size=1, max_size=4).map(
    lambda found: "/" + "/".join(found)
)


def test_no_override_that_is_taken_leads_there_by_any_id(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(404, {"success": False, "message": "no such id"}))

    @given(path=PATH, identity=st.sampled_from(["resolve", "olve", "esolve", "payment", "..", "T-1"]))
    @example("/{id}/olve", "payment")
    @example("/payment/{id}", "resolve")
    @example("/{id}", "payment")
    @settings(deadline=None, max_examples=300)
    def ask(path: str, identity: str) -> None:
        server.requests.clear()
        for name in CAPABILITIES:
            try:
                dialect = ALL_ON.overridden({f"extra_{name}_path": path})
            except ValueError:
                continue
            client = gateway(server.url, dialect=dialect)
            read = BY_ID.get(name, lambda client, _, name=name: READS[name](client))
            with pytest.raises(GatewayError):
                read(client, identity)
            client.close()
        for request in server.requests:
            target = unquote(unquote(request.target)).casefold()
            assert "resolve" not in target
            assert ".." not in target

    ask()


@pytest.mark.parametrize("name", READS)
def test_the_paths_and_the_query_are_open_points(serve: Serve, gateway: Gateway, name: Capability) -> None:
    plain = {"rates": {"data": {}}, "transaction": RECORD, "payment": PAYMENT}
    path = "/v3/one/{id}/detail" if name in BY_ID else "/v3/many"
    dialect = ALL_ON.overridden({f"extra_{name}_path": path, "extra_country_query": "land"})
    server = serve(stub.answer(200, plain.get(name, {"data": []})))
    client = gateway(server.url, dialect=dialect)
    if name == "banks":
        client.extras.banks(country="NG")
    else:
        READS[name](client)
    (request,) = server.requests
    asked_for = path.replace("{id}", "T-1") + ("?land=NG" if name == "banks" else "")
    assert request.target == f"/v2{asked_for}"
