"""API keys: how they are made, listed and replaced, and how long they last."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.v4_calls import MASTER, call, generated, listed, status_with
from tests.sandbox_process import API_KEY, SandboxProcess


def create(provider: SandboxClient, **body: object) -> requests.Response:
    return provider.post("/auth/api-key", {"otpType": "totp", **body})


def test_a_created_key_has_exactly_this_shape_and_works_for_a_year(provider: SandboxClient) -> None:
    today = datetime.now(UTC).date()
    response = create(provider, token=provider.process.totp())
    assert response.status_code == 200
    assert list(response.json()) == ["data"]
    data = response.json()["data"]
    assert set(data) == {"key", "expires"}
    assert data["expires"] in {str(today + timedelta(days=days)) for days in (365, 366)}  # midnight may pass
    assert status_with(provider.process, data["key"]) == 200


def test_a_created_key_has_all_scopes(provider: SandboxClient) -> None:
    key = create(provider, token=provider.process.totp()).json()["data"]["key"]
    assert call(provider, "GET", "/user/api-keys", key=key).status_code == 200


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "token is required"),
        ({"token": "000000x"}, "token is not valid or has expired"),
        ({"token": 123456}, "token must be a string"),
        ({"token": "123456", "otpType": "sms"}, "otpType must be 'otp' or 'totp'"),
        ({"token": "123456", "scope": "M"}, "scope is not a known member"),
    ],
)
def test_creating_a_key_is_refused(provider: SandboxClient, body: dict[str, object], message: str) -> None:
    response = create(provider, **body)
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert len(listed(provider)) == 1


def test_creating_without_the_otp_type_is_refused(provider: SandboxClient) -> None:
    response = provider.post("/auth/api-key", {"token": provider.process.totp()})
    assert response.status_code == 400
    assert response.json()["message"] == "otpType is required"


def test_a_one_time_code_creates_one_key(provider: SandboxClient) -> None:
    code = provider.process.totp()
    assert create(provider, token=code).status_code == 200
    assert create(provider, token=code).status_code == 400
    assert len(listed(provider)) == 2


def test_the_paths_of_the_specification_create_and_end_keys(provider: SandboxClient) -> None:
    one, many, scopes, end = (
        *("/user/api-key", "/user/api-keys", "/user/api-key/scopes", "/user/api-key/invalidate"),
    )
    provider.process.options(otp_required=False)
    response = call(provider, "POST", one, MASTER)
    assert response.status_code == 200
    key = response.json()["data"]["apikey"]
    assert response.json() == {
        "data": {"apikey": key},
        "message": "API key generated; it is not shown again",
    }
    assert call(provider, "GET", scopes, key=key).json() == {
        "data": {"Master": "M", "GetOnly": "G", "Withdrawal": "W", "NoWithdrawal": "N"},
        "message": "API key scopes retrieved",
    }
    short_hash = call(provider, "GET", many).json()["data"]["Apikeys"][1]["Apikey"]
    assert call(provider, "POST", end, {"apikey": key}).json() == {
        "data": {"apikey": short_hash},
        "message": "API key invalidated",
    }
    assert status_with(provider.process, key) == 401
    assert call(provider, "DELETE", one, query={"apikeyHash": short_hash}).json() == {
        "message": "API key deleted"
    }
    assert len(listed(provider)) == 1


def test_the_list_at_the_start_has_the_first_key_in_exactly_this_shape(provider: SandboxClient) -> None:
    response = call(provider, "GET", "/user/api-keys")
    assert response.status_code == 200
    assert response.json() == {
        "data": {
            "Apikeys": [
                {
                    "Apikey": hashlib.sha256(API_KEY.encode()).hexdigest()[:8],
                    "Keyname": "first key",
                    "Username": "countersign-demo",
                    "Expirable": False,
                    "Expiration": 0,
                    "DeletedAt": None,
                }
            ]
        },
        "message": "API keys retrieved",
    }


def test_the_list_shows_names_and_hashes_and_never_a_key(provider: SandboxClient) -> None:
    keys = [API_KEY, generated(provider, keyname="Zwölf"), generated(provider, "G")]
    rows = listed(provider)
    assert [row["Keyname"] for row in rows] == ["first key", "Zwölf", "till"]
    assert len({row["Apikey"] for row in rows}) == 3
    text = call(provider, "GET", "/user/api-keys").text
    assert not any(key in text for key in keys)


def test_no_key_is_kept_in_the_database(provider: SandboxClient) -> None:
    keys = [API_KEY, generated(provider)]
    with closing(provider.process.books()) as books:
        kept = "\n".join(books.iterdump())
    assert "sandbox_apikey" in kept
    assert not any(key in kept for key in keys)


@pytest.mark.parametrize(
    ("members", "earliest", "latest"),
    [
        ({"expirationInDays": 30}, 30, 30),
        ({"expirationInMonths": 1}, 28, 31),
        ({"expirationInMonths": 12}, 365, 366),
        ({"expirationInDays": 5, "expirationInMonths": 1}, 33, 36),
    ],
)
def test_an_expiration_is_listed_in_unix_seconds(
    provider: SandboxClient, members: dict[str, object], earliest: int, latest: int
) -> None:
    generated(provider, **members)
    row = listed(provider)[1]
    assert row["Expirable"] is True
    days = (row["Expiration"] - datetime.now(UTC).timestamp()) / (24 * 60 * 60)
    assert earliest - 0.1 < days < latest + 0.1


@pytest.mark.parametrize(
    "members", [{}, {"expirationInDays": 0}, {"expirationInDays": 0, "expirationInMonths": 0}]
)
def test_a_key_without_expiration_does_not_expire(
    provider: SandboxClient, members: dict[str, object]
) -> None:
    generated(provider, **members)
    row = listed(provider)[1]
    assert (row["Expirable"], row["Expiration"]) == (False, 0)


def test_a_key_expires_by_the_clock_of_the_provider(provider: SandboxClient) -> None:
    day, week = generated(provider, expirationInDays=1), generated(provider, expirationInDays=7)
    provider.process.advance(timedelta(hours=23).total_seconds())
    assert (status_with(provider.process, day), status_with(provider.process, week)) == (200, 200)
    provider.process.advance(timedelta(hours=2).total_seconds())
    assert (status_with(provider.process, day), status_with(provider.process, week)) == (401, 200)
    response = call(provider, "GET", "/account", key=day)
    assert response.json() == {"success": False, "message": "X-Api-Key has expired"}


def test_a_created_key_expires_on_the_reported_day(provider: SandboxClient) -> None:
    data = create(provider, token=provider.process.totp()).json()["data"]
    provider.process.advance(timedelta(days=364).total_seconds())
    assert status_with(provider.process, data["key"]) == 200
    provider.process.advance(timedelta(days=1).total_seconds())
    assert status_with(provider.process, data["key"]) == 401
    assert data["expires"] <= str(provider.process.now().date())


def test_a_replaced_key_stops_working_in_the_same_call(provider: SandboxClient) -> None:
    old = generated(provider)
    new = generated(provider, apikey=old)
    assert (status_with(provider.process, old), status_with(provider.process, new)) == (401, 200)
    assert [row["DeletedAt"] is None for row in listed(provider)] == [True, False, True]


def test_a_key_can_replace_the_one_it_was_made_with(provider: SandboxClient) -> None:
    new = generated(provider, apikey=API_KEY)
    assert call(provider, "GET", "/user/api-keys").json()["message"] == "X-Api-Key has been invalidated"
    assert status_with(provider.process, new) == 200


def test_one_of_many_concurrent_replacements_succeeds(provider: SandboxClient) -> None:
    old = generated(provider)

    def replace(_: int) -> int:
        return call(provider, "POST", "/user/api-key", {**MASTER, "apikey": old}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(replace, range(16)))
    assert statuses == [200] + [400] * 15
    assert len(listed(provider)) == 3


@pytest.mark.parametrize("path", ["/user/api-keys", "/user/api-key/scopes"])
def test_unexpected_query_parameters_are_refused(provider: SandboxClient, path: str) -> None:
    response = call(provider, "GET", path, query={"page": 1})
    assert response.status_code == 400
    assert response.json()["message"] == "page is not a known member"


def test_a_reset_brings_back_the_first_key_and_no_other(provider: SandboxClient) -> None:
    key = generated(provider, apikey=API_KEY)
    provider.process.reset()
    assert status_with(provider.process, key) == 401
    assert [(row["Keyname"], row["DeletedAt"]) for row in listed(provider)] == [("first key", None)]


def test_a_database_without_keys_gets_the_first_key(tmp_path: Path) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with SandboxProcess(database=database) as process, closing(process.books()) as books, books:
        for table in ("sandbox_merchantdetails", "sandbox_apikey"):
            books.execute(f"DELETE FROM {table}")  # noqa: S608 - the two names above
    with SandboxProcess(database=database) as process:
        assert status_with(process, API_KEY) == 200


def test_a_second_start_keeps_the_keys_as_they_were(tmp_path: Path) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with SandboxProcess(database=database) as process, requests.Session() as session:
        new = generated(SandboxClient(process, session), apikey=API_KEY)
    with SandboxProcess(database=database) as process:
        assert (status_with(process, API_KEY), status_with(process, new)) == (401, 200)
