"""PUT and GET /v4/account."""

import pytest

from payments_gateway import BANKS
from tests.sandbox.conftest import Service
from tests.sandbox.v4_calls import call

NAME = "Meridian Foods"
BODY = {"accountName": NAME, "currency": "NGN", "preferredAccountName": "Meridian Collections"}


def opened(service: Service, **changes: object) -> dict[str, str]:
    response = call(service, "PUT", "/account", {**BODY, **changes})
    assert response.status_code == 200, response.text
    (account,) = response.json()["data"]
    assert isinstance(account, dict)
    return account


def names(service: Service, **query: object) -> list[str]:
    accounts = call(service, "GET", "/account", query=query).json()["data"]["accounts"]
    return [account["accountName"] for account in accounts]


@pytest.mark.parametrize("currency", ["NGN", "USD"])
def test_an_opened_account_has_exactly_this_shape(service: Service, currency: str) -> None:
    response = call(service, "PUT", "/account", {**BODY, "currency": currency})
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


def test_an_account_without_a_preferred_name_has_the_account_name(service: Service) -> None:
    response = call(service, "PUT", "/account", {"accountName": NAME, "currency": "NGN"})
    assert response.json()["data"][0]["account_name"] == NAME


def test_each_call_opens_another_account_with_a_new_number(service: Service) -> None:
    numbers = {opened(service)["account_number"] for _ in range(20)}
    assert len(numbers) == 20
    assert not any(number.endswith(("0000", "88", "99")) for number in numbers)


def test_an_opened_account_resolves_to_its_name(service: Service) -> None:
    account = opened(service)
    body = {"accountNumber": account["account_number"], "bankCode": account["bank_code"]}
    assert service.post("/bank/resolve", body).json()["data"]["accountname"] == "MERIDIAN COLLECTIONS"


def test_a_request_without_kyc_is_answered_with_a_message_only(service: Service) -> None:
    service.process.kyc(False)
    response = call(service, "PUT", "/account", BODY)
    assert response.status_code == 400
    assert response.json() == {"message": "user has not completed kyc"}
    assert names(service) == []


def test_a_reset_restores_kyc_and_closes_opened_accounts(service: Service) -> None:
    opened(service)
    service.process.kyc(False)
    service.process.reset()
    assert names(service) == []
    assert opened(service)["status"] == "ACTIVE"


def test_kyc_can_be_completed(service: Service) -> None:
    service.process.kyc(False)
    service.process.kyc(True)
    assert opened(service)["status"] == "ACTIVE"


def test_an_invalid_body_is_reported_before_missing_kyc(service: Service) -> None:
    service.process.kyc(False)
    assert call(service, "PUT", "/account", {}).json()["message"] == "accountName is required"


def test_the_list_is_empty_without_accounts(service: Service) -> None:
    response = call(service, "GET", "/account")
    assert response.status_code == 200
    assert response.json() == {"data": {"accounts": []}, "message": "Accounts retrieved"}


def test_accounts_of_one_name_are_listed_as_one_with_an_asset_for_each(service: Service) -> None:
    naira, dollars, other = (
        opened(service),
        opened(service, currency="USD"),
        opened(service, accountName="Aba"),
    )
    accounts = call(service, "GET", "/account").json()["data"]["accounts"]
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


def test_accounts_are_listed_by_name_in_pages(service: Service) -> None:
    for name in ("Aba", "Jos", "Kano"):
        opened(service, accountName=name)
    assert names(service, accountName="Jos") == ["Jos"]
    assert names(service, accountName="jos") == []
    assert names(service, perPage=2) == ["Aba", "Jos"]
    assert names(service, perPage=2, page=2) == ["Kano"]
    assert names(service, perPage=2, page=3) == []


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
    service: Service, changes: dict[str, object], message: str
) -> None:
    response = call(service, "PUT", "/account", {**BODY, **changes})
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert names(service) == []


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
    service: Service, query: dict[str, object], message: str
) -> None:
    response = call(service, "GET", "/account", query=query)
    assert response.status_code == 400
    assert response.json()["message"] == message
