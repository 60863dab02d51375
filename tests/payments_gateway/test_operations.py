"""The table of operations and the client are one: every row is walked, over HTTP."""

import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from payments_gateway import (
    OPERATIONS,
    ApiOperation,
    CallEffect,
    CredentialsError,
    GatewayError,
    InsufficientFundsError,
    InvalidRequestError,
    KycRequiredError,
    NotFoundError,
    NotSentError,
    OtpRejectedError,
    OutcomeUnknownError,
    ProviderProfile,
    RateLimitedError,
    ReadFailedError,
    RejectedError,
)
from payments_gateway.operations import Endpoint
from tests.payments_gateway import stub
from tests.payments_gateway.calls import CALLS
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.situations import BROKEN, UNREADABLE, closed_port

V2 = {"X-Api-Key": "canary-key-7f3a", "X-Api-User": "merchant", "X-User-Version": "v2"}
V4 = {"x-api-key": "canary-key-7f3a", "x-api-user": "merchant"}
CREDENTIALS = {Endpoint.V2: V2, Endpoint.V2_OPEN: {}, Endpoint.V4: V4}
BASES = {Endpoint.V2: "/v2", Endpoint.V2_OPEN: "/v2", Endpoint.V4: "/v4"}

OTHER_SPELLING = {
    "key_generate_path": "/user/apikey",
    "key_list_path": "/user/apikeys",
    "key_scopes_path": "/user/apikey-scope",
    "key_invalidate_path": "/user/invalidate-apikey",
    "key_delete_path": "/user/apikey",
}

every = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
reads = pytest.mark.parametrize(
    "operation",
    [row for row in OPERATIONS if row.effect is CallEffect.READS],
    ids=lambda operation: operation.name,
)
once = pytest.mark.parametrize(
    "operation",
    [row for row in OPERATIONS if row.effect is not CallEffect.READS],
    ids=lambda operation: operation.name,
)
keys = pytest.mark.parametrize(
    "operation", [row for row in OPERATIONS if row.path_point], ids=lambda operation: operation.name
)


def assert_sent(request: stub.Request, operation: ApiOperation, profile: ProviderProfile) -> None:
    """The request is the operation's own: method, address, headers, and body with the JSON types of the wire."""
    case, endpoint = CALLS[operation.name], operation.endpoint_in(profile)
    assert request.method == operation.method
    assert request.target == BASES[endpoint] + operation.path_in(profile) + case.query
    headers = dict(request.headers)
    length = headers.pop("Content-Length", None)
    body = {} if case.sent is None else {"Content-Type": "application/json"}
    common = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "countersign"}
    assert headers.pop("Host").startswith("127.0.0.1:")
    assert headers == common | body | CREDENTIALS[endpoint]
    assert (json.loads(request.body) if request.body else None) == case.sent
    assert length in ({None, "0"} if case.sent is None else {str(len(request.body))})


def ending(server: stub.Stub, gateway: Gateway, operation: ApiOperation, **settings: Any) -> GatewayError:
    """The error that the operation ends in."""
    with pytest.raises(GatewayError) as caught:
        CALLS[operation.name].call(gateway(server.url, **settings))
    return caught.value


def test_every_operation_of_the_specification_is_in_the_table_once() -> None:
    assert len(OPERATIONS) == 20
    assert sorted(CALLS) == sorted({operation.name for operation in OPERATIONS})
    assert len({(operation.method, operation.path, operation.endpoint) for operation in OPERATIONS}) == 20


@every
def test_each_operation_is_a_method_that_sends_its_own_request(
    serve: Serve, gateway: Gateway, operation: ApiOperation
) -> None:
    server = serve(stub.answer(200, CALLS[operation.name].answer))
    client = gateway(server.url)
    resource, _, method = operation.name.partition(".")
    assert callable(getattr(getattr(client, resource), method))
    CALLS[operation.name].call(client)
    (request,) = server.requests
    assert_sent(request, operation, ProviderProfile())


@every
def test_each_method_documents_its_contract(operation: ApiOperation, gateway: Gateway) -> None:
    resource, _, method = operation.name.partition(".")
    contract = getattr(getattr(gateway("https://service.example/v2"), resource), method).__doc__ or ""
    assert f"{operation.method} " in contract
    assert operation.path in contract
    assert "pecification" in contract
    assert "RejectedError" in contract
    last = "ReadFailedError" if operation.effect is CallEffect.READS else "OutcomeUnknownError"
    assert last in contract


@once
def test_changing_calls_use_their_own_connection_and_are_not_retried(
    serve: Serve, gateway: Gateway, operation: ApiOperation
) -> None:
    answer = stub.answer(200, CALLS[operation.name].answer)
    server = serve(
        answer, answer, stub.answer(503, {"success": False, "message": "busy"}, ("Retry-After: 0",))
    )
    client = gateway(server.url)
    for _ in range(2):
        CALLS[operation.name].call(client)
    assert server.connections == len(server.requests) == 2
    with pytest.raises(OutcomeUnknownError):
        CALLS[operation.name].call(client)
    assert server.connections == len(server.requests) == 3


@reads
def test_reads_are_retried(serve: Serve, gateway: Gateway, operation: ApiOperation) -> None:
    server = serve(stub.answer(503), stub.close_after_request, stub.answer(200, CALLS[operation.name].answer))
    CALLS[operation.name].call(gateway(server.url))
    assert len(server.requests) == 3


REFUSALS = [
    (401, "Invalid API key", CredentialsError),
    (403, "Missing API scope", CredentialsError),
    (400, "Invalid OTP", OtpRejectedError),
    (422, "Insufficient funds", InsufficientFundsError),
    (400, "User has not completed KYC", KycRequiredError),
    (400, "amount is required", InvalidRequestError),
    (400, "invalid API scope", InvalidRequestError),
    (400, "invalid key", InvalidRequestError),
    (404, "User not found", NotFoundError),
    (429, "Too many requests", RateLimitedError),
    (418, "I am a teapot", RejectedError),
]


@every
@pytest.mark.parametrize(("status", "words", "kind"), REFUSALS)
def test_a_refusal_is_the_same_for_every_operation(
    serve: Serve,
    gateway: Gateway,
    operation: ApiOperation,
    status: int,
    words: str,
    kind: type[RejectedError],
) -> None:
    """With the envelope of the specification's error, and with only a message."""
    server = serve(
        stub.answer(status, {"success": False, "message": words}), stub.answer(status, {"message": words})
    )
    for _ in range(2):
        error = ending(server, gateway, operation, tries=1)
        assert (type(error), str(error), error.status) == (kind, words, status)


OUTCOMES: dict[str, stub.Behaviour] = {
    **BROKEN,
    **{name: stub.answer(200, body) for name, body in UNREADABLE.items() if len(body) < 1000},
    **{str(status): stub.answer(status, b"<html>") for status in (202, 204, 301, 400, 404, 500, 502, 503)},
    "no words": stub.answer(400, {"success": False}),
}


@every
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_inconclusive_responses_raise_by_the_effect_of_the_operation(
    serve: Serve, gateway: Gateway, operation: ApiOperation, outcome: str
) -> None:
    error = ending(serve(OUTCOMES[outcome]), gateway, operation, tries=1)
    is_read = operation.effect is CallEffect.READS
    assert type(error) is (ReadFailedError if is_read else OutcomeUnknownError)


@every
@pytest.mark.parametrize("status", [408, 409, 424, 425, 499])
def test_ambiguous_refusals_are_failed_reads_or_unknown_outcomes(
    serve: Serve, gateway: Gateway, operation: ApiOperation, status: int
) -> None:
    server = serve(stub.answer(status, {"success": False, "message": "Conflict"}))
    is_read = operation.effect is CallEffect.READS
    assert type(ending(server, gateway, operation)) is (ReadFailedError if is_read else OutcomeUnknownError)


@once
def test_a_success_status_with_a_failure_body_proves_nothing(
    serve: Serve, gateway: Gateway, operation: ApiOperation
) -> None:
    server = serve(stub.answer(200, CALLS[operation.name].answer | {"success": False}))
    assert type(ending(server, gateway, operation)) is OutcomeUnknownError


@every
def test_failed_connections_raise_by_the_effect_of_the_operation(
    gateway: Gateway, operation: ApiOperation
) -> None:
    with closed_port() as port, pytest.raises(GatewayError) as caught:
        CALLS[operation.name].call(gateway(f"http://127.0.0.1:{port}/v2", tries=1))
    is_read = operation.effect is CallEffect.READS
    assert type(caught.value) is (ReadFailedError if is_read else NotSentError)


@pytest.mark.parametrize("name", [row.name for row in OPERATIONS if row.needs_otp])
def test_a_required_one_time_code_is_checked_before_sending(
    serve: Serve, gateway: Gateway, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.payments_gateway.calls.TOKEN", None)
    server = serve(stub.answer(200, CALLS[name].answer))
    with pytest.raises(NotSentError, match="token"):
        CALLS[name].call(gateway(server.url))
    assert server.connections == 0
    CALLS[name].call(gateway(server.url, profile=ProviderProfile(otp_required=False)))
    assert b"482913" not in server.requests[0].body
    assert not {"token", "otp"} & set(json.loads(server.requests[0].body))


@keys
@pytest.mark.parametrize("base", ["v2", "v4"])
@pytest.mark.parametrize("paths", [{}, OTHER_SPELLING], ids=["as shown", "other spelling"])
def test_key_management_works_with_either_spelling_and_address(
    serve: Serve, gateway: Gateway, operation: ApiOperation, base: str, paths: dict[str, str]
) -> None:
    profile = ProviderProfile().overridden({**paths, "key_base": base})
    server = serve(stub.answer(200, CALLS[operation.name].answer))
    CALLS[operation.name].call(gateway(server.url, profile=profile))
    (request,) = server.requests
    assert_sent(request, operation, profile)
    spelled = paths.get(operation.path_point, operation.path)
    assert request.target == f"/{base}{spelled}{CALLS[operation.name].query}"


def test_the_fields_of_key_management_come_from_the_profile(serve: Serve, gateway: Gateway) -> None:
    members = {
        "key_name_member": "name",
        "key_scope_member": "permission",
        "key_replaced_member": "old",
        "key_days_member": "days",
        "key_otp_member": "code",
        "key_invalidate_member": "key",
        "key_hash_query": "hash",
    }
    client_of = ProviderProfile().overridden(members)
    server = serve(*(stub.answer(200, CALLS[name].answer) for name in KEY_CALLS))
    client = gateway(server.url, profile=client_of)
    for name in KEY_CALLS:
        CALLS[name].call(client)
    generate, invalidate, delete = server.requests
    assert set(json.loads(generate.body)) == {"name", "permission", "old", "days", "code"}
    assert json.loads(invalidate.body) == {"key": "canary-old-key"}
    assert urlsplit(delete.target).query == "hash=1a2b3c4d"


KEY_CALLS = ("api_keys.generate", "api_keys.invalidate", "api_keys.delete")


def test_ending_a_key_requires_its_identifier(serve: Serve, gateway: Gateway) -> None:
    server = serve(stub.answer(200, {}))
    client = gateway(server.url)
    with pytest.raises(NotSentError):
        client.api_keys.delete(" ")
    assert server.connections == 0
