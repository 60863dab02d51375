"""Keys and one-time codes are planted, everything is made to fail, and every trace that is left is searched."""

import copy
import logging
import traceback

import pytest
from pydantic import SecretStr

from payments_gateway import GatewayError, OutcomeUnknownError, PaymentsGateway, RejectedError
from payments_gateway.connection import RawResponse
from payments_gateway.money import dumps
from tests.payments_gateway import stub
from tests.payments_gateway.conftest import Gateway, Serve, config
from tests.payments_gateway.situations import BROKEN, SLOW, UNREADABLE, WITHDRAWAL, closed_port

KEY = "canary-key-7f3a"
OTP = "canary-otp-482913"
ECHO = f"key {KEY}, token {OTP}"

LEAKY: dict[str, stub.Behaviour] = {
    **BROKEN,
    "slow": SLOW["silent in body"],
    "refusal": stub.answer(400, {"success": False, "message": f"Bad {ECHO}", "errors": [OTP, {"x": KEY}]}),
    "denial": stub.answer(200, {"success": False, "message": ECHO}),
    "server error": stub.answer(500, ECHO.encode()),
    "no object": stub.answer(200, f'["{ECHO}"]'.encode()),
    "no json": stub.answer(200, f'{{"data": "{ECHO}" oops'.encode()),
    "no data": stub.answer(200, {"data": ECHO}),
    "at the cut": stub.answer(500, b"x" * 490 + ECHO.encode()),
    **{name: stub.answer(200, body) for name, body in UNREADABLE.items() if len(body) < 1000},
}


def traces(error: BaseException, *, with_locals: bool) -> str:
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=with_locals).format())


def assert_clean(error: BaseException | None) -> None:
    """Search an error and all that it came from: words, attributes, frames and what hangs on them."""
    if error is None:
        return
    found = [str(error), repr(error), repr(vars(error)), repr(error.args)]
    request = getattr(error, "request", None)
    assert request is None
    assert not [text for text in found if KEY in text or OTP in text]
    assert_clean(error.__cause__)
    assert_clean(error.__context__)


def fail(gateway: PaymentsGateway) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        gateway.balances.withdraw(WITHDRAWAL, otp=SecretStr(OTP))
    return caught.value


@pytest.mark.parametrize("behaviour", LEAKY.values(), ids=LEAKY)
def test_no_failure_reveals_a_secret(
    serve: Serve, gateway: Gateway, caplog: pytest.LogCaptureFixture, behaviour: stub.Behaviour
) -> None:
    caplog.set_level(logging.DEBUG)
    error = fail(gateway(serve(behaviour).url, deadline=1.0))
    assert_clean(error)
    left = [error.message, error.body_excerpt, caplog.text, traces(error, with_locals=False)]
    left += [repr(vars(record)) for record in caplog.records]
    assert not [text for text in left if "canary" in text]


@pytest.mark.parametrize("behaviour", LEAKY.values(), ids=LEAKY)
def test_no_stack_frame_holds_a_secret_in_clear(
    serve: Serve, gateway: Gateway, behaviour: stub.Behaviour
) -> None:
    error = fail(gateway(serve(behaviour).url, deadline=1.0))
    held = traces(error, with_locals=True)
    assert "send_once" in held
    assert KEY not in held
    assert OTP not in held


def test_a_failed_connection_reveals_no_secret(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with closed_port() as port:
        error = fail(gateway(f"http://127.0.0.1:{port}/v2"))
    assert_clean(error)
    assert "canary" not in caplog.text + traces(error, with_locals=True)


def test_text_around_a_redacted_secret_is_kept(serve: Serve, gateway: Gateway) -> None:
    error = fail(gateway(serve(LEAKY["refusal"]).url))
    assert isinstance(error, RejectedError)
    assert str(error) == "Bad key [hidden], token [hidden]; x: [hidden]"


def test_a_secret_echoed_in_a_success_is_redacted(serve: Serve, gateway: Gateway) -> None:
    data = {"token": OTP, "echo": [{"key": KEY, KEY: f"{OTP} of {KEY}"}], "transactionId": "T1"}
    client = gateway(serve(stub.answer(200, {"data": data})).url)
    receipt = client.balances.withdraw(WITHDRAWAL, otp=SecretStr(OTP))
    echo = {"key": "[hidden]", "[hidden]": "[hidden] of [hidden]"}
    assert receipt.raw == {"token": "[hidden]", "echo": [echo], "transactionId": "T1"}


@pytest.mark.parametrize(
    ("echo", "left"),
    [
        ("482913", '"[hidden]"'),
        ("482913.00", '"[hidden]"'),
        ("-482913", '"[hidden]"'),
        ('"482913"', '"[hidden]"'),
        ('{"482913": true}', '{"[hidden]": true}'),
        ('"\\u0034\\u003829\\u00313"', '"[hidden]"'),
        ("4829130", "4829130"),
        ("4829.13", "4829.13"),
        ('"TX-482913-07"', '"TX-482913-07"'),
        ("true", "true"),
    ],
)
def test_a_short_one_time_code_is_redacted_as_a_whole_word_only(
    serve: Serve, gateway: Gateway, echo: str, left: str
) -> None:
    body = f'{{"data": {{"echo": {echo}, "note": "482913"}}}}'.encode()
    client = gateway(serve(stub.answer(200, body)).url)
    receipt = client.balances.withdraw(WITHDRAWAL, otp=SecretStr("482913"))
    assert dumps(receipt.raw["echo"]) == left


@pytest.mark.parametrize(("secret", "is_covered"), [("x" * 12, True), ("x" * 11, False)])
def test_a_secret_of_twelve_characters_is_redacted_inside_text(
    serve: Serve, gateway: Gateway, secret: str, is_covered: bool
) -> None:
    client = gateway(serve(stub.answer(200, {"data": {"note": f"a-{secret}-b"}})).url)
    receipt = client.balances.withdraw(WITHDRAWAL, otp=SecretStr(secret))
    assert receipt.raw == {"note": "a-[hidden]-b" if is_covered else f"a-{secret}-b"}


def test_the_api_key_is_redacted_in_read_results(serve: Serve, gateway: Gateway) -> None:
    body = {"data": {"callbackUrl": f"https://office.example/{KEY}/hook"}}
    assert (
        gateway(serve(stub.answer(200, body)).url).callbacks.url() == "https://office.example/[hidden]/hook"
    )


def test_the_repr_of_a_response_hides_its_body() -> None:
    answer = RawResponse(status=400, body=ECHO.encode(), is_complete=True, date=None, retry_after=0)
    assert "canary" not in repr(answer)


def test_no_repr_shows_a_secret(serve: Serve, gateway: Gateway) -> None:
    client = gateway(serve(stub.answer(200, {"data": {}})).url)
    shown = [config("https://service.example/v2"), client, vars(client), vars(client.balances)]
    assert KEY not in repr(shown)


def test_a_success_logs_only_the_request_line(
    serve: Serve, gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    client = gateway(serve(stub.answer(200, {"data": {}})).url)
    client.balances.withdraw(WITHDRAWAL, otp=SecretStr(OTP))
    assert caplog.messages == ["POST /v2/balance/withdraw answered 200"]


def test_errors_can_be_pickled() -> None:
    error = copy.copy(OutcomeUnknownError("lost", 502, "<html>"))
    assert type(error) is OutcomeUnknownError
    assert (str(error), error.message, error.status, error.body_excerpt) == ("lost", "lost", 502, "<html>")
