"""PUT and GET /v4/account."""

import pytest

from payments_gateway import BANKS
from tests.sandbox.conftest import SandboxClient
from tests.sandbox.v4_calls import call

NAME = "Meridian Foods"
BODY = {"accountName": NAME, "currency": "NGN", "preferredAccountName": "Meridian Collections"}


def opened(provider: SandboxClient, **changes: object) -> dict[str, str]:
    response = call(provider, "PUT", "/account", {**BODY, **changes})
    assert response.status_code == 200, response.text
    (account,) = response.json()["data"]
    assert isinstance(account, dict)
    return account


def names(provider: SandboxClient, **query: object) -> list[str]:
    accounts = call(provider, "GET", "/account", query=query).json()["data"]["accounts"]
    return [account["accountName"] for account in accounts]


@pytest.mark.parametrize("currency", ["NGN", "USD"])
def test_an_opened_account_has_exactly_this_shape(provider: SandboxClient, currency: str) -> None:
    response = call(provider, "PUT", "/account", {**BODY, "currency": currency})
    assert response.status_code == 200
    (account,) = response.json()["data"]
    assert response.json() == {"data": [account], "message": "Account created"}
    assert account == {
        "account_name": "Meridian Collections",
        "account_number": account["account_number"],
        "bank_code": account["bank_code"],
        "bank_name": BANKS[account["bank_code"]],
        "currency": currency,
        "status": "ACTIVE",
    }
    assert account["account_number"].isdecimal()
    assert len(account["account_number"]) == 10


def test_an_account_without_a_preferred_name_has_the_account_name(provider: SandboxClient) -> None:
    response = call(provider, "PUT", "/account", {"accountName": NAME, "currency": "NGN"})
    assert response.json()["data"][0]["account_name"] == NAME


def test_each_call_opens_another_account_with_a_new_number(provider: SandboxClient) -> None:
    numbers = {opened(provider)["account_number"] for _ in range(20)}
    assert len(numbers) == 20
    assert not any(number.endswith(("0000", "88", "99")) for number in numbers)


def test_an_opened_account_resolves_to_its_name(provider: SandboxClient) -> None:
    account = opened(provider)
    body = {"accountNumber": account["account_number"], "bankCode": account["bank_code"]}
    assert provider.post("/bank/resolve", body).json()["data"]["accountname"] == "MERIDIAN COLLECTIONS"


def test_a_request_without_kyc_is_answered_with_a_message_only(provider: SandboxClient) -> None:
    provider.process.kyc(False)
    response = call(provider, "PUT", "/account", BODY)
    assert response.status_code == 400
    assert response.json() == {"message": "user has not completed kyc"}
    assert names(provider) == []


def test_a_reset_restores_kyc_and_closes_opened_accounts(provider: SandboxClient) -> None:
    opened(provider)
    provider.process.kyc(False)
    provider.process.reset()
    assert names(provider) == []
    assert opened(provider)["status"] == "ACTIVE"


def test_kyc_can_be_completed(provider: SandboxClient) -> None:
    provider.process.kyc(False)
    provider.process.kyc(True)
    assert opened(provider)["status"] == "ACTIVE"


def test_an_invalid_body_is_reported_before_missing_kyc(provider: SandboxClient) -> None:
    provider.process.kyc(False)
    assert call(provider, "PUT", "/account", {}).json()["message"] == "accountName is required"


def test_the_list_is_empty_without_accounts(provider: SandboxClient) -> None:
    response = call(provider, "GET", "/account")
    assert response.status_code == 200
    assert response.json() == {"data": {"accounts": []}, "message": "Accounts retrieved"}


def test_accounts_of_one_name_are_listed_as_one_with_an_asset_for_each(provider: SandboxClient) -> None:
    naira, dollars, other = (
        opened(provider),
        opened(provider, currency="USD"),
        opened(provider, accountName="Aba"),
    )
    accounts = call(provider, "GET", "/account").json()["data"]["accounts"]
    assert accounts == [
        {"accountName": NAME, "assets": [asset(naira), asset(dollars)]},
        {"accountName": "Aba", "assets": [asset(other)]},
    ]


def asset(account: dict[str, str]) -> dict[str, object]:
    return {
        "currency": account["currency"],
        "id": account["account_number"],
        "type": "bank_account",
        "balance": 0,
    }


def test_accounts_are_listed_by_name_in_pages(provider: SandboxClient) -> None:
    for name in ("Aba", "Jos", "Kano"):
        opened(provider, accountName=name)
    assert names(provider, accountName="Jos") == ["Jos"]
    assert names(provider, accountName="jos") == []
    assert names(provider, perPage=2) == ["Aba", "Jos"]
    assert names(provider, perPage=2, page=2) == ["Kano"]
    assert names(provider, perPage=2, page=3) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accountName": ""}, "accountName must be printable text and not blank"),
        ({"accountName": "x" * 121}, "accountName must have at most 120 characters"),
        ({"accountName": 5}, "accountName must be a string"),
        ({"accountName": "a\nb"}, "accountName must be printable text and not blank"),
        ({"accountName": "\udfff"}, "accountName must be text in valid Unicode"),
        ({"currency": "USDT"}, "currency must be 'NGN' or 'USD'"),
        ({"preferredAccountName": {}}, "preferredAccountName must be a string"),
        ({"preferredAccountName": " "}, "preferredAccountName must be printable text and not blank"),
        ({"bankCode": "044"}, "bankCode is not a known member"),
    ],
)
def test_an_invalid_field_is_refused_by_name(
    provider: SandboxClient, changes: dict[str, object], message: str
) -> None:
    response = call(provider, "PUT", "/account", {**BODY, **changes})
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert names(provider) == []


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"page": 0}, "page must be at least 1"),
        ({"page": "x"}, "page must be a whole number"),
        ({"perPage": 101}, "perPage must be at most 100"),
        ({"perPage": -1}, "perPage must be a whole number"),
        ({"accountName": ""}, "accountName must be printable text and not blank"),
        ({"limit": 5}, "limit is not a known member"),
    ],
)
def test_an_invalid_query_parameter_is_refused_by_name(
    provider: SandboxClient, query: dict[str, object], message: str
) -> None:
    response = call(provider, "GET", "/account", query=query)
    assert response.status_code == 400
    assert response.json()["message"] == message
