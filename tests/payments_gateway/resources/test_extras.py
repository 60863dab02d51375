"""The reads beyond the specification: off unless named, and asked where the open points say."""

import re

import pytest

from payments_gateway import CapabilityOffError, PaymentsGateway, ProviderProfile
from payments_gateway.profile.values import CAPABILITIES, Capability
from payments_gateway.resources.extras import EXTRA_OPERATIONS
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve, config
from tests.payments_gateway.extra_reads import ALL_ON, BY_ID, PAYMENT, READS, RECORD


@pytest.mark.parametrize("name", READS)
def test_a_disabled_capability_is_not_requested(serve: Serve, gateway: Gateway, name: Capability) -> None:
    server = serve(stub.answer(200, {"data": []}))
    others = tuple(other for other in CAPABILITIES if other != name)
    client = gateway(server.url, profile=ProviderProfile(capabilities=others))
    assert not client.extras.is_on(name)
    with pytest.raises(CapabilityOffError, match=f"{name} is not enabled.*Nothing was sent"):
        READS[name](client)
    assert (server.connections, server.requests) == (0, [])


def test_no_capability_is_enabled_by_default() -> None:
    with PaymentsGateway(config("https://service.example/v2")) as client:
        assert not any(client.extras.is_on(name) for name in CAPABILITIES)


@pytest.mark.parametrize("name", READS)
def test_an_enabled_capability_is_one_authenticated_get(
    serve: Serve, gateway: Gateway, name: Capability
) -> None:
    plain = {"rates": {"data": {"USDTNGN": {"rate": 1}}}, "transaction": RECORD, "payment": PAYMENT}
    server = serve(stub.answer(200, plain.get(name, {"data": []})))
    client = gateway(server.url, profile=ALL_ON)
    assert client.extras.is_on(name)
    READS[name](client)
    (request,) = server.requests
    path = re.sub(r"\{\w+\}", "T-1", EXTRA_OPERATIONS[name].path)
    assert (request.method, request.target, request.body) == ("GET", f"/v2{path}", b"")
    assert request.header("X-Api-Key") == "canary-key-7f3a"


@pytest.mark.parametrize("name", READS)
def test_paths_and_query_come_from_the_profile(serve: Serve, gateway: Gateway, name: Capability) -> None:
    plain = {"rates": {"data": {"USDTNGN": {"rate": 1}}}, "transaction": RECORD, "payment": PAYMENT}
    path = "/v3/one/{id}/detail" if name in BY_ID else "/v3/many"
    profile = ALL_ON.overridden({f"extra_{name}_path": path, "extra_country_query": "land"})
    server = serve(stub.answer(200, plain.get(name, {"data": []})))
    client = gateway(server.url, profile=profile)
    if name == "banks":
        client.extras.banks(country="NG")
    else:
        READS[name](client)
    (request,) = server.requests
    requested_export = path.replace("{id}", "T-1") + ("?land=NG" if name == "banks" else "")
    assert request.target == f"/v2{requested_export}"
