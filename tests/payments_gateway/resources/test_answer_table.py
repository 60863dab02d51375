"""Every member of every answer, in both profiles, missing, null and of another type.

A read either fails and names the member, or reports it as unknown (None). Only what is listed here may become an
empty text: it decides nothing, and a page shows it as not reported. A call that is sent once gives its receipt, or
leaves its outcome unknown.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from payments_gateway import OutcomeUnknownError, PaymentsGateway, ReadFailedError
from payments_gateway.operations import OPERATIONS, CallEffect
from payments_gateway.profile.model import PROFILES, ProfileName
from payments_gateway.profile.values import CAPABILITIES
from payments_gateway.resources.extras import EXTRA_OPERATIONS
from tests.contract.openapi_document import answer_schema, resolved
from tests.payments_gateway import stub
from tests.payments_gateway.calls import CALLS
from tests.payments_gateway.conftest import Gateway, Serve
from tests.payments_gateway.extra_reads import READS

Path = tuple[str | int, ...]

#: Operation -> members of its answer that are text which decides nothing: without them it is empty.
MAY_BE_EMPTY: dict[str, set[str]] = {
    "accounts.list": {"accountName", "type"},
    "api_keys.list": {"Keyname", "Username"},
    "banks.resolve": {
        *("accountnumber", "phonenumber", "currency", "country", "code", "name", "data", "responsecode"),
        *("responsemessage", "uniquereference", "internalreference", "is_visible", "is_trashed"),
    },
    "callbacks.url": {"callbackUrl"},  # null is "none set"
    "extras.currencies": {"name"},
    "extras.rates": {"key"},
    "extras.payment": {
        *("reference", "businessId", "state", "paymentType", "address", "account", "incomingCurrency"),
        *("outgoingCurrency", "customerEmail", "senderUsername", "threadTS"),
    },
    "wallets.get": {"uid", "reference", "status", "version", "appName", "network", "currency"},
}
_OF_A_RECORD = {
    *("currency", "type", "status", "sender", "username", "fromCurrency", "businessId", "version", "date"),
}
MAY_BE_EMPTY = MAY_BE_EMPTY | dict.fromkeys(
    ("transactions.page", "transactions.summary", "extras.transaction"), _OF_A_RECORD
)
#: Text for which another type is an error although it may be missing.
LENIENT_OF_ANY_TYPE = {
    "accounts.list": {"type"},
    "api_keys.list": MAY_BE_EMPTY["api_keys.list"],
    "banks.resolve": MAY_BE_EMPTY["banks.resolve"] - {"accountnumber", "code", "name", "data"},
    "extras.payment": MAY_BE_EMPTY["extras.payment"],
    "wallets.get": MAY_BE_EMPTY["wallets.get"] - {"network", "currency"},
}

_TEXTS = {
    "transactionId": "T-1",
    "_id": "T-1",
    "currency": "NGN",
    "callbackUrl": "https://example.com/hook",
    "accountnumber": "0123456789",
}
_FORMATS = {"date": "2025-11-21", "date-time": "2025-11-21T10:00:00Z"}


def example(schema: Any, profile: ProfileName, name: str = "") -> Any:
    """An answer with every member that the schema has."""
    schema = resolved(schema, profile)
    if "anyOf" in schema:
        return example(schema["anyOf"][0], profile, name)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    if schema["type"] == "object":
        found = {key: example(each, profile, key) for key, each in schema.get("properties", {}).items()}
        others = schema.get("additionalProperties")
        return found | ({"USDT": example(others, profile)} if isinstance(others, dict) else {})
    if schema["type"] == "array":
        return [example(schema["items"], profile, name)]
    return {"number": 5, "integer": 5, "boolean": True}.get(str(schema["type"])) or _text(schema, name)


def _text(schema: Any, name: str) -> str:
    pattern = {"^[0-9a-f]{8}$": "1a2b3c4d", r"^-?[0-9]+(\.[0-9]+)?$": "5"}.get(schema.get("pattern", ""))
    return pattern or _TEXTS.get(name) or _FORMATS.get(schema.get("format", "")) or f"a {name}"


def members(answer: Any, path: Path = ()) -> Iterator[Path]:
    """The path of every member, outermost first; of a list, those of its first item."""
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield (*path, name)
            yield from members(value, (*path, name))
    if isinstance(answer, list) and answer:
        yield from members(answer[0], (*path, 0))


_MISSING = object()
_NAMED_BY_CONTENT = {"USDT", "data", "success"}  # the error may name what is missing in them instead
_KEYS_OF_MAPS = {"USDT", "Master", "GetOnly", "Withdrawal", "NoWithdrawal"}
_OTHER_TYPES: Mapping[type, tuple[object, ...]] = {
    str: ([], {}),
    int: ([], True),
    bool: ([],),
    list: ({}, "text"),
    dict: ("text", 7),
}


def changed(answer: Any, path: Path, value: object) -> Any:
    spoilt = copy.deepcopy(answer)
    inside = spoilt
    for step in path[:-1]:
        inside = inside[step]
    if value is _MISSING:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return spoilt


def at(answer: Any, path: Path) -> Any:
    for step in path:
        answer = answer[step]
    return answer


def spoilt_answers(answer: Any) -> Iterator[tuple[Path, object, Any]]:
    """(member, what became of it, the answer with that) for every member and shape."""
    for path in members(answer):
        for value in (_MISSING, None, *_OTHER_TYPES[type(at(answer, path))]):
            if value is _MISSING and path[-1] in _KEYS_OF_MAPS:
                continue  # without it the map has an entry less
            yield path, value, changed(answer, path, value)


def leaves(value: Any, place: str = "") -> dict[str, object]:
    """Everything that was read, by where it is in the result; additional members of the provider excluded."""
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields if name != "raw"}
    if isinstance(value, dict):
        return {
            key: leaf for name, each in value.items() for key, leaf in leaves(each, f"{place}.{name}").items()
        }
    if isinstance(value, (list, tuple)):
        return {key: leaf for each in value for key, leaf in leaves(each, f"{place}[]").items()}
    return {place: value}


CALLS_OF_READS: Mapping[str, Callable[[PaymentsGateway], object]] = {
    **{each.name: CALLS[each.name].call for each in OPERATIONS if each.effect is CallEffect.READS},
    "balances.list": lambda gateway: gateway.balances.list(),
    "transactions.page": lambda gateway: gateway.transactions.page(),
    "accounts.list": lambda gateway: gateway.accounts.list(),
    **{EXTRA_OPERATIONS[name].name: call for name, call in READS.items()},
}
of_profiles = pytest.mark.parametrize("profile", PROFILES)


def answer_of(name: str, profile: ProfileName) -> Any:
    return example(answer_schema(name, 200, profile), profile)


def profile_with_all_reads(name: ProfileName) -> Any:
    return PROFILES[name].overridden({"capabilities": list(CAPABILITIES)})


def is_deliberate(name: str, path: Path, value: object) -> bool:
    allowed = MAY_BE_EMPTY if value is None or value is _MISSING else LENIENT_OF_ANY_TYPE
    return path[-1] in allowed.get(name, set())


def outcome_of(
    read: Callable[[PaymentsGateway], object], client: PaymentsGateway
) -> tuple[dict[str, object], str]:
    """What was read, or why it failed."""
    try:
        return leaves(read(client)), ""
    except ReadFailedError as exc:
        return {}, str(exc)


@of_profiles
@pytest.mark.parametrize("name", CALLS_OF_READS)
def test_nothing_in_an_answer_becomes_empty_by_accident(
    serve: Serve, gateway: Gateway, name: str, profile: ProfileName
) -> None:
    good = answer_of(name, profile)
    spoilt = list(spoilt_answers(good))
    server = serve(*(stub.answer(200, answer) for answer in (good, *(each for _, _, each in spoilt))))
    client = gateway(server.url, profile=profile_with_all_reads(profile))
    expected = leaves(CALLS_OF_READS[name](client))
    assert expected, name
    for path, value, answer in spoilt:
        case = f"{'.'.join(map(str, path))} {'missing' if value is _MISSING else json.dumps(value)}"
        found, problem = outcome_of(CALLS_OF_READS[name], client)
        if problem:
            assert str(path[-1]) in problem or path[-1] in _NAMED_BY_CONTENT, f"{case}: {problem}"
            continue
        lost = {
            place
            for place, known in expected.items()
            if known not in (None, "") and found.get(place, "") in ("", (), [])
        }
        assert not lost or is_deliberate(name, path, value), f"{case}: {lost} became empty: {answer}"


ONCE = [each.name for each in OPERATIONS if each.effect is not CallEffect.READS]


@of_profiles
@pytest.mark.parametrize("name", ONCE)
def test_a_spoilt_answer_to_a_call_that_is_sent_once_is_a_receipt_or_an_unknown_outcome(
    serve: Serve, gateway: Gateway, name: str, profile: ProfileName
) -> None:
    good = answer_of(name, profile) | ({"data": {"_id": "P1"}} if name == "payments.create" else {})
    spoilt = list(spoilt_answers(good))
    server = serve(*(stub.answer(200, answer) for answer in (good, *(each for _, _, each in spoilt))))
    client = gateway(server.url, profile=PROFILES[profile])
    CALLS[name].call(client)
    for sent, (path, _, _) in enumerate(spoilt, start=2):
        try:
            receipt = CALLS[name].call(client)
        except OutcomeUnknownError:
            pass
        else:
            assert getattr(receipt, "transaction_id", None) != "", path
        assert len(server.requests) == sent, path
