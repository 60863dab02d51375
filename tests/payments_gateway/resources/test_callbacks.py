"""The callback URL: set once, read at will."""

import json

import pytest

from payments_gateway import NotSentError, OutcomeUnknownError, ReadFailedError, RejectedError
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve

URL = "https://office.example/webhooks/7f3a"
DONE = {"success": True, "message": "Callback URL updated"}


def test_the_callback_url_is_set_with_one_request(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, DONE))
    gateway(server.url).callbacks.set_url(URL)
    (request,) = server.requests
    assert (request.method, request.target) == ("PUT", "/v2/callbackurl")
    assert request.header("X-Api-Key") == "canary-key-7f3a"
    assert json.loads(request.body) == {"callbackUrl": URL}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "office.example/webhooks",
        "ftp://office.example/",
        "https://",
        "https:///webhooks",
        "https://user:password@office.example/",
        "https://office.example/a b",
        "https://office.example/a\nb",
        "https://[::1/",
        "https://office.example/" + "a" * 2048,
    ],
)
def test_an_invalid_url_is_not_sent(serve: Serve, gateway: Gateway, url: str) -> None:
    server = serve(stub.answer(200, DONE))
    with pytest.raises(NotSentError):
        gateway(server.url).callbacks.set_url(url)
    assert server.requests == []


def test_a_refused_callback_url_has_the_providers_reason(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(400, {"success": False, "message": "callbackUrl must be https"}))
    with pytest.raises(RejectedError, match="callbackUrl must be https"):
        gateway(server.url).callbacks.set_url(URL)


@pytest.mark.parametrize("behaviour", [stub.answer(503, {"message": "later"}), stub.reset_after_request])
def test_setting_the_callback_url_is_never_retried(
    serve: Serve, gateway: Gateway, behaviour: stub.Behaviour
) -> None:
    server = serve(behaviour)
    with pytest.raises(OutcomeUnknownError):
        gateway(server.url).callbacks.set_url(URL)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("data", "url"),
    [({"callbackUrl": URL}, URL), ({"callbackUrl": ""}, ""), ({"callbackUrl": None}, "")],
)
def test_the_callback_url_is_read(serve: Serve, gateway: Gateway, data: object, url: str) -> None:
    server = serve(stub.answer(200, {"success": True, "message": "Callback URL retrieved", "data": data}))
    assert gateway(server.url).callbacks.url() == url
    (request,) = server.requests
    assert (request.method, request.target, request.body) == ("GET", "/v2/callbackurl", b"")


def test_reading_the_callback_url_is_retried(serve: Serve, gateway: Gateway) -> None:
    found = stub.answer(200, {"success": True, "message": "", "data": {"callbackUrl": URL}})
    server = serve(stub.answer(503, {"message": "later"}), found)
    assert gateway(server.url).callbacks.url() == URL


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"success": True, "data": None},
        {"success": True, "message": "Callback URL retrieved", "data": {}},
        {"data": {"url": URL}},
        {"data": URL},
        {"data": {"callbackUrl": 7}},
        [],
        b"<html>",
    ],
)
def test_a_malformed_callback_url_raises_a_typed_error(serve: Serve, gateway: Gateway, body: object) -> None:
    server = serve(stub.answer(200, body))
    with pytest.raises(ReadFailedError):
        gateway(server.url).callbacks.url()
