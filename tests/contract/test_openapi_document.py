"""The document itself: valid OpenAPI, and no more and no less than the specification."""

from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis

from payments_gateway.operations import OPERATIONS, ApiOperation, Endpoint
from payments_gateway.profile.model import PROFILES, ProfileName, ProviderProfile
from payments_gateway.resources.extras import EXTRA_OPERATIONS
from tests.contract.openapi_document import (
    answer_schema,
    described,
    disagreements,
    document,
    of_the_specification,
    request_schema,
    resolved,
)
from tests.sandbox_process import SandboxProcess

BASES = {Endpoint.V2: "/v2", Endpoint.V2_OPEN: "/v2", Endpoint.V4: "/v4"}
CREDENTIALS: dict[Endpoint, list[dict[str, list[str]]]] = {
    Endpoint.V2: [{"apiKey": [], "apiUser": [], "userVersion": []}],
    Endpoint.V2_OPEN: [],
    Endpoint.V4: [{"apiKey": [], "apiUser": []}],
}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_document_is_valid_openapi(profile: ProfileName) -> None:
    schemathesis.openapi.from_dict(document(profile)).validate()


def test_the_published_profile_has_the_same_operations_on_its_own_paths() -> None:
    expected = {
        each.name: (each.method, BASES[each.endpoint] + each.path_in(PROFILES["published"]))
        for each in (*OPERATIONS, *EXTRA_OPERATIONS.values())
    }
    assert {name: found[:2] for name, found in described("published").items()} == expected


def test_the_document_describes_exactly_the_specified_operations() -> None:
    ours = {(each.name, each.method, BASES[each.endpoint] + each.path) for each in OPERATIONS}
    theirs = {(name, method, path) for name, (method, path, _) in of_the_specification().items()}
    assert theirs == ours


def test_the_document_describes_exactly_the_optional_reads() -> None:
    ours = {(each.name, each.method, BASES[each.endpoint] + each.path) for each in EXTRA_OPERATIONS.values()}
    others = set(described()) - set(of_the_specification())
    assert {(name, *described()[name][:2]) for name in others} == ours


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_operation_names_the_credentials_of_its_base_address(operation: ApiOperation) -> None:
    _, _, description = described()[operation.name]
    assert description.get("security", document()["security"]) == CREDENTIALS[operation.endpoint]


MEMBERS = {
    "TransferDetail": "transactionId sender status date toCurrency fromCurrency receiveAmount amount username"
    " senderPrevbalance",
    "WalletTransferDetail": "transactionId sender type status date toCurrency fromCurrency receiveAmount# amount#"
    " address memo username",
    "Payment": "_id businessId reference incomingCurrency outgoingCurrency incomingAmount# outgoingAmount#"
    " confirmedAmount# unconfirmedAmount# state expTime address customerEmail paymentType account rate# threadTS"
    " senderUsername createdAt updatedAt",
    "TransactionRecord": "transactionId currency version sender isFromRegUser? prevBalance# senderPrevbalance# type"
    " status businessId date fromCurrency fromAmount# amount# username fee# createdAt updatedAt",
    "Summary": "volume# txnCount# duration#",
    "BalanceEntry": "totalRecieved# totalSent# txnCount# toCurrency amount# formattedAmount#",
    "BankResolution": "responsemessage responsecode uniquereference internalreference accountname accountnumber"
    " phonenumber currency country code name is_visible is_trashed deleted_at created_at updated_at",
    "CreatedAccount": "account_name account_number bank_code bank_name currency status",
    "ApiKey": "key expires",
    "ConvertRequest": "fromCurrency toCurrency amount",
    "WithdrawRequest": "accountNumber accountName bank bankCode currency amount otpType token",
    "WalletTransferRequest": "network currency address amount# walletType memo",
    "TransferRequest": "receiverUsername currency amount memo otpType token",
    "PaymentRequest": "businessId incomingCurrency outgoingCurrency customerEmail paymentType reference incomingAmount#"
    " outgoingAmount# rateKey serviceUsername country accountNumber accountName bank bankCode",
    "ApiKeyRequest": "token otpType",
    "CallbackRequest": "callbackUrl",
    "ResolveRequest": "accountNumber bankCode",
    "AccountRequest": "accountName currency preferredAccountName",
}
"""The tables of the specification (Resources and their fields; Endpoints) with the members that are open points:
a number is marked #, a boolean ?, and everything else is a string."""

TYPES = {"#": "number", "?": "boolean"}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_schema_has_the_fields_and_types_of_the_specification(name: str) -> None:
    schema = document()["components"]["schemas"][name]
    theirs = {member: base_type(each) for member, each in schema["properties"].items()}
    assert theirs == {
        member.rstrip("#?"): TYPES.get(member[-1], "string") for member in MEMBERS[name].split()
    }
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize("name", ["Wallet", "TransactionPage"])
def test_lists_are_at_the_specified_paths(name: str) -> None:
    lists = {"Wallet": ["addresses"], "TransactionPage": ["data"]}[name]
    schema = document()["components"]["schemas"][name]
    assert [member for member, each in schema["properties"].items() if base_type(each) == "array"] == lists


def base_type(schema: Any) -> str:
    """The JSON type that a member has; a whole number is a number."""
    found = resolved(schema)["type"]
    return "number" if found == "integer" else str(found)


def answers() -> list[tuple[str, str]]:
    return [(name, status) for name, (_, _, each) in described().items() for status in each["responses"]]


@pytest.mark.parametrize(("name", "status"), answers())
def test_every_response_schema_is_an_object_without_additional_properties(name: str, status: str) -> None:
    schema = resolved(answer_schema(name, int(status)))
    assert schema["additionalProperties"] is False
    assert ("message" in schema["required"]) or status == "200"


@pytest.mark.parametrize("name", described())
def test_every_refusal_among_the_open_points_is_documented(name: str) -> None:
    _, _, description = described()[name]
    demanded = {"200", "400", "429", "500", "503"}
    if description.get("security") != []:
        demanded |= {"401", "403"}
    if "requestBody" in description:
        demanded |= {"413", "415"}
    assert demanded <= set(description["responses"])


def test_an_open_point_mark_names_a_profile_field_or_a_documented_heading() -> None:
    points = {point.name for point in ProviderProfile().open_points()}
    named = {mark for mark in marks(document(), "x-open-point") if " " not in mark}
    assert named <= points


def marks(part: Any, name: str) -> Iterator[str]:
    """Every value that a mark has in the document."""
    if isinstance(part, dict):
        yield from ([part[name]] if name in part else [])
        for each in part.values():
            yield from marks(each, name)
    elif isinstance(part, list):
        for each in part:
            yield from marks(each, name)


@pytest.mark.parametrize(
    ("profile", "name", "body"),
    [
        (profile, name, each["requestBody"]["content"]["application/json"]["example"])
        for profile in PROFILES
        for name, (_, _, each) in described(profile).items()
        if "requestBody" in each
    ],
)
def test_examples_conform_to_their_schemas(profile: ProfileName, name: str, body: Any) -> None:
    assert disagreements(request_schema(name, profile), body, profile) == []


def test_the_sandbox_serves_the_document_of_its_profile(
    provider: SandboxProcess, published: SandboxProcess
) -> None:
    for process in (provider, published):
        response = requests.get(f"{process.address}/openapi.json", timeout=30)
        assert response.headers["Content-Type"] == "application/json"
        assert response.json() == document(process.profile)
