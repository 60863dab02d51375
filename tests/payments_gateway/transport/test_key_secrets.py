"""A new key is planted in every kind of answer, an old one and a one-time code in the request; traces are sought."""

import logging
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from payments_gateway import (
    CreatedKey,
    GatewayError,
    KeyRequest,
    PaymentsGateway,
    ProviderProfile,
    RejectedError,
)
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.situations import BROKEN
from tests.payments_gateway.transport.test_secrets import traces

NEW = "canary-new-key-51c0ffee"
OLD = "canary-old-key-7e57"
TOKEN = "canary-token-482913"
REQUEST = KeyRequest(name="reports", scope="G", replaces=SecretStr(OLD))

CALLS: dict[str, Callable[[PaymentsGateway], object]] = {
    "create": lambda gateway: gateway.api_keys.create(otp=SecretStr(TOKEN)),
    "generate": lambda gateway: gateway.api_keys.generate(REQUEST, otp=SecretStr(TOKEN)),
    "invalidate": lambda gateway: gateway.api_keys.invalidate(SecretStr(OLD)),
    "delete": lambda gateway: gateway.api_keys.delete("1a2b3c4d"),
    "list": lambda gateway: gateway.api_keys.list(),
}
every = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)

ECHO = f"{NEW} {OLD} {TOKEN}"
FAILURES: dict[str, stub.Behaviour] = {
    "not in its place": stub.answer(
        200, {"success": False, "data": {"token": NEW, "echo": ECHO}, "message": ECHO}
    ),
    "a text": stub.answer(200, {"success": False, "data": NEW}),
    "a list": stub.answer(200, [NEW, OLD, TOKEN]),
    "a key of an object": stub.answer(200, {"success": False, "data": {NEW: {"key": [NEW]}}}),
    "truncated": stub.answer(200, f'{{"data": {{"key": "{NEW}", "apikey": "{OLD}'.encode()),
    "html": stub.answer(200, f"<p>{ECHO}</p>".encode()),
    "ambiguous": stub.answer(200, f'{{"data": {{"key": "{NEW}"}}, "data": {{"key": "{OLD}"}}}}'.encode()),
    "escaped": stub.answer(
        200, NEW.replace("c", "\\u0063").join(('{"data": ["', '"], "success": 0}')).encode()
    ),
    "another success": stub.answer(202, {"data": {"key": NEW}}),
    "a server error": stub.answer(500, {"data": {"key": NEW}, "message": ECHO}),
    "a refusal": stub.answer(
        400, {"message": f"No: {ECHO}", "data": {"key": NEW}, "errors": [NEW, {OLD: TOKEN}]}
    ),
    "a doubtful refusal": stub.answer(409, {"message": f"Already made {NEW}", "data": {"key": NEW}}),
    "no words": stub.answer(400, {"data": {"apikey": NEW}}),
    **{name: BROKEN[name] for name in ("reset in answer", "promised too much", "unfinished chunks")},
}


@every
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_no_failure_reveals_a_key(
    serve: Serve,
    gateway: Gateway,
    caplog: pytest.LogCaptureFixture,
    call: Callable[[PaymentsGateway], object],
    failure: stub.Behaviour,
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(GatewayError) as caught:
        call(gateway(serve(failure).url, tries=1))
    assert_clean(caught.value)
    logged = [caplog.text, *(repr(vars(record)) for record in caplog.records)]
    shown = [traces(caught.value, with_locals=False), traces(caught.value, with_locals=True)]
    assert not [text for text in logged + shown if "canary" in text.replace(KEY_OF_THE_TEST, "")]


KEY_OF_THE_TEST = "canary-key-7f3a"


def assert_clean(error: BaseException | None) -> None:
    if error is None:
        return
    held = pickle.dumps(vars(error), 0).decode("latin-1") if isinstance(error, GatewayError) else ""
    found = [str(error), repr(error), repr(error.args), held]
    assert not [text for text in found if "canary" in text]
    errors = getattr(error, "errors", None)
    assert errors is None, "an error of pydantic holds what it was given"
    assert_clean(error.__cause__)
    assert_clean(error.__context__)


def test_the_message_of_a_refusal_is_kept(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(400, {"message": f"The scope is unknown to {OLD} and {NEW}."}))
    with pytest.raises(RejectedError) as caught:
        CALLS["generate"](gateway(server.url))
    assert str(caught.value) == "The scope is unknown to [hidden] and [hidden]"
    assert caught.value.body_excerpt == "[hidden]"


@pytest.mark.parametrize(
    "data",
    [
        {"key": NEW},
        {"apikey": NEW, "keyname": "reports"},
        {"key": NEW, "apikey": NEW, "copy": {"again": [NEW]}, "token": "canary-other"},
    ],
)
@pytest.mark.parametrize("name", ["create", "generate"])
def test_the_key_of_a_success_is_revealed_on_request_only(
    serve: Serve, gateway: Gateway, caplog: pytest.LogCaptureFixture, name: str, data: dict[str, Any]
) -> None:
    caplog.set_level(logging.DEBUG)
    created = CALLS[name](gateway(serve(stub.answer(200, {"data": data, "message": NEW})).url))
    assert isinstance(created, CreatedKey)
    assert created.key.get_secret_value() == NEW
    shown = [repr(created), str(created), repr(created.model_dump()), created.model_dump_json(), caplog.text]
    assert not [text for text in shown if "canary" in text]


def test_fields_beside_a_key_are_kept_and_redacted(serve: Serve, gateway: Gateway) -> None:
    data = {"key": NEW, "copy": {"again": [NEW]}}
    created = CALLS["create"](gateway(serve(stub.answer(200, {"data": data})).url))
    assert isinstance(created, CreatedKey)
    assert created.model_extra is not None
    assert created.model_extra["copy"].get_secret_value() == {"again": [NEW]}


def test_the_current_key_is_not_accepted_as_a_new_one(serve: Serve, gateway: Gateway) -> None:
    """As when a provider echoes the key that was to be replaced."""
    with pytest.raises(GatewayError, match="holds no new key"):
        CALLS["generate"](gateway(serve(stub.answer(200, {"data": {"apikey": OLD}})).url))


def test_a_key_that_contains_the_current_one_is_returned_whole(serve: Serve, gateway: Gateway) -> None:
    with pytest.raises(GatewayError, match="holds no new key"):
        CALLS["generate"](gateway(serve(stub.answer(200, {"data": {"apikey": f"{OLD}-2"}})).url))


def test_a_request_shows_neither_key_nor_one_time_code() -> None:
    body = REQUEST.wire(SecretStr(TOKEN), ProviderProfile())
    assert "canary" not in repr((REQUEST, body, REQUEST.model_dump_json()))
