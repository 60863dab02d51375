"""API keys from their making to their end."""

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import requests

from tests.sandbox.conftest import Service
from tests.sandbox.version4 import call, generated, listed, status_with
from tests.sandbox_process import API_KEY, SandboxProcess

SPELLINGS = {
    "of the specification": (
        "/user/api-key",
        "/user/api-keys",
        "/user/api-key/scopes",
        "/user/api-key/invalidate",
    ),
    "the other": ("/user/apikey", "/user/apikeys", "/user/apikey-scope", "/user/invalidate-apikey"),
}
KEYNAME = {"keyname": "till"}
MASTER = {**KEYNAME, "scope": "M"}


def create(service: Service, **body: object) -> requests.Response:
    return service.post("/auth/api-key", {"otpType": "totp", **body})


def test_a_created_key_has_exactly_this_shape_and_works_for_a_year(service: Service) -> None:
    today = datetime.now(UTC).date()
    response = create(service, token=service.process.token())
    assert response.status_code == 200
    assert list(response.json()) == ["data"]
    data = response.json()["data"]
    assert set(data) == {"key", "expires"}
    assert data["expires"] in {str(today + timedelta(days=days)) for days in (365, 366)}  # midnight may pass
    assert status_with(service.process, data["key"]) == 200


def test_a_created_key_may_do_everything(service: Service) -> None:
    key = create(service, token=service.process.token()).json()["data"]["key"]
    assert call(service, "GET", "/user/api-keys", key=key).status_code == 200


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
def test_creating_a_key_is_refused(service: Service, body: dict[str, object], message: str) -> None:
    response = create(service, **body)
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert len(listed(service)) == 1


def test_creating_without_the_type_of_token_is_refused(service: Service) -> None:
    response = service.post("/auth/api-key", {"token": service.process.token()})
    assert response.status_code == 400
    assert response.json()["message"] == "otpType is required"


def test_a_token_makes_one_key(service: Service) -> None:
    token = service.process.token()
    assert create(service, token=token).status_code == 200
    assert create(service, token=token).status_code == 400
    assert len(listed(service)) == 2


@pytest.mark.parametrize("paths", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_key_lives_and_ends_at_both_spellings(service: Service, paths: tuple[str, ...]) -> None:
    one, many, scopes, end = paths
    service.process.options(token_required=False)
    response = call(service, "POST", one, MASTER)
    assert response.status_code == 200
    key = response.json()["data"]["apikey"]
    assert response.json() == {
        "data": {"apikey": key},
        "message": "API key generated; it is not shown again",
    }
    assert call(service, "GET", scopes, key=key).json() == {
        "data": {"Master": "M", "GetOnly": "G", "Withdrawal": "W", "NoWithdrawal": "N"},
        "message": "API key scopes retrieved",
    }
    short_hash = call(service, "GET", many).json()["data"]["Apikeys"][1]["Apikey"]
    assert call(service, "POST", end, {"apikey": key}).json() == {
        "data": {"apikey": short_hash},
        "message": "API key invalidated",
    }
    assert status_with(service.process, key) == 401
    assert call(service, "DELETE", one, query={"apikeyHash": short_hash}).json() == {
        "message": "API key deleted"
    }
    assert len(listed(service)) == 1


def test_the_list_at_the_start_has_the_first_key_in_exactly_this_shape(service: Service) -> None:
    response = call(service, "GET", "/user/api-keys")
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


def test_the_list_tells_names_and_hashes_and_never_a_key(service: Service) -> None:
    keys = [API_KEY, generated(service, keyname="Zwölf"), generated(service, "G")]
    rows = listed(service)
    assert [row["Keyname"] for row in rows] == ["first key", "Zwölf", "till"]
    assert len({row["Apikey"] for row in rows}) == 3
    text = call(service, "GET", "/user/api-keys").text
    assert not any(key in text for key in keys)


def test_no_key_is_kept_in_the_database(service: Service) -> None:
    keys = [API_KEY, generated(service)]
    with closing(service.process.books()) as books:
        kept = "\n".join(books.iterdump())
    assert "merchant_api_key" in kept
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
    service: Service, members: dict[str, object], earliest: int, latest: int
) -> None:
    generated(service, **members)
    row = listed(service)[1]
    assert row["Expirable"] is True
    days = (row["Expiration"] - datetime.now(UTC).timestamp()) / (24 * 60 * 60)
    assert earliest - 0.1 < days < latest + 0.1


@pytest.mark.parametrize(
    "members", [{}, {"expirationInDays": 0}, {"expirationInDays": 0, "expirationInMonths": 0}]
)
def test_without_an_expiration_a_key_works_for_ever(service: Service, members: dict[str, object]) -> None:
    generated(service, **members)
    row = listed(service)[1]
    assert (row["Expirable"], row["Expiration"]) == (False, 0)


def test_a_key_expires_by_the_clock_of_the_service(service: Service) -> None:
    day, week = generated(service, expirationInDays=1), generated(service, expirationInDays=7)
    service.process.advance(timedelta(hours=23).total_seconds())
    assert (status_with(service.process, day), status_with(service.process, week)) == (200, 200)
    service.process.advance(timedelta(hours=2).total_seconds())
    assert (status_with(service.process, day), status_with(service.process, week)) == (401, 200)
    response = call(service, "GET", "/account", key=day)
    assert response.json() == {"success": False, "message": "X-Api-Key has expired"}


def test_a_created_key_expires_on_the_day_that_was_told(service: Service) -> None:
    data = create(service, token=service.process.token()).json()["data"]
    service.process.advance(timedelta(days=364).total_seconds())
    assert status_with(service.process, data["key"]) == 200
    service.process.advance(timedelta(days=1).total_seconds())
    assert status_with(service.process, data["key"]) == 401
    assert data["expires"] <= str(service.process.now().date())


def test_a_replaced_key_stops_working_in_the_same_call(service: Service) -> None:
    old = generated(service)
    new = generated(service, apikey=old)
    assert (status_with(service.process, old), status_with(service.process, new)) == (401, 200)
    assert [row["DeletedAt"] is None for row in listed(service)] == [True, False, True]


def test_a_key_can_replace_the_one_it_was_made_with(service: Service) -> None:
    new = generated(service, apikey=API_KEY)
    assert call(service, "GET", "/user/api-keys").json()["message"] == "X-Api-Key has been invalidated"
    assert status_with(service.process, new) == 200


def test_of_many_replacements_at_once_one_succeeds(service: Service) -> None:
    old = generated(service)

    def replace(_: int) -> int:
        return call(service, "POST", "/user/api-key", {**MASTER, "apikey": old}).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(replace, range(16)))
    assert statuses == [200] + [400] * 15
    assert len(listed(service)) == 3


@pytest.mark.parametrize("code", [SandboxProcess.token, SandboxProcess.one_time_code])
def test_either_kind_of_token_makes_a_key_once(
    service: Service, code: Callable[[SandboxProcess], str]
) -> None:
    body = {**MASTER, "otp": code(service.process)}
    assert call(service, "POST", "/user/api-key", body).status_code == 200
    assert call(service, "POST", "/user/api-key", body).status_code == 400
    assert len(listed(service)) == 2


def test_a_demanded_token_is_asked_for_by_the_name_of_its_member(service: Service) -> None:
    response = call(service, "POST", "/user/api-key", MASTER)
    assert response.status_code == 400
    assert response.json() == {
        "success": False,
        "message": "otp is required",
        "errors": [{"field": "otp", "message": "is required"}],
    }


def test_a_refused_token_leaves_the_old_key_working(service: Service) -> None:
    response = call(service, "POST", "/user/api-key", {**MASTER, "apikey": API_KEY, "otp": "000000x"})
    assert response.status_code == 400
    assert response.json()["message"] == "otp is not valid or has expired"
    assert status_with(service.process, API_KEY) == 200
    assert len(listed(service)) == 1


@pytest.mark.parametrize("wrong", [{"scope": "X"}, {"apikey": "no such key"}, {"keyname": ""}])
def test_a_request_refused_for_another_reason_uses_up_no_token(
    service: Service, wrong: dict[str, str]
) -> None:
    token = service.process.token()
    assert call(service, "POST", "/user/api-key", {**MASTER, "otp": token, **wrong}).status_code == 400
    assert call(service, "POST", "/user/api-key", {**MASTER, "otp": token}).status_code == 200


@pytest.mark.parametrize("scope", ["", "m", "Master", "MG", "X", "\N{FULLWIDTH LATIN CAPITAL LETTER M}"])
def test_an_unknown_scope_is_refused(service: Service, scope: str) -> None:
    response = call(service, "POST", "/user/api-key", {**KEYNAME, "scope": scope})
    assert response.status_code == 400
    assert response.json() == {
        "success": False,
        "message": "invalid API scope",
        "errors": [{"field": "scope", "message": "must be one of M, G, W, N"}],
    }


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"scope": "M"}, "keyname is required"),
        (KEYNAME, "scope is required"),
        ({**MASTER, "keyname": 5}, "keyname must be a string"),
        ({**MASTER, "keyname": "x" * 121}, "keyname must have at most 120 characters"),
        ({**MASTER, "keyname": " "}, "keyname must be printable text and not blank"),
        ({**MASTER, "keyname": "a\x00b"}, "keyname must be printable text and not blank"),
        ({**MASTER, "keyname": "\ud800"}, "keyname must be text in valid Unicode"),
        ({**MASTER, "scope": ["M"]}, "scope must be a string"),
        ({**MASTER, "apikey": ""}, "apikey must have at least 1 characters"),
        ({**MASTER, "apikey": "x" * 129}, "apikey must have at most 128 characters"),
        ({**MASTER, "apikey": {}}, "apikey must be a string"),
        ({**MASTER, "expirationInDays": -1}, "expirationInDays must be at least 0"),
        ({**MASTER, "expirationInDays": 3651}, "expirationInDays must be at most 3650"),
        ({**MASTER, "expirationInDays": 10**30}, "expirationInDays must be at most 3650"),
        ({**MASTER, "expirationInDays": 1.5}, "expirationInDays must be a whole number"),
        ({**MASTER, "expirationInDays": "30"}, "expirationInDays must be a whole number"),
        ({**MASTER, "expirationInMonths": True}, "expirationInMonths must be a whole number"),
        ({**MASTER, "expirationInMonths": 121}, "expirationInMonths must be at most 120"),
        ({**MASTER, "otp": 123456}, "otp must be a string"),
        ({**MASTER, "expires": "never"}, "expires is not a known member"),
        ([MASTER], "the body must be a JSON object"),
    ],
)
def test_a_wrong_member_is_refused_by_name(service: Service, body: object, message: str) -> None:
    response = call(service, "POST", "/user/api-key", body)
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert len(listed(service)) == 1


def test_a_key_is_invalidated_by_its_short_hash_too(service: Service) -> None:
    key = generated(service)
    short_hash = listed(service)[1]["Apikey"]
    response = call(service, "POST", "/user/api-key/invalidate", {"apikey": short_hash})
    assert response.json()["data"] == {"apikey": short_hash}
    assert status_with(service.process, key) == 401


def test_an_invalidated_key_stays_in_the_list_with_the_moment(service: Service) -> None:
    before = datetime.now(UTC)
    call(service, "POST", "/user/api-key/invalidate", {"apikey": generated(service)})
    ended = datetime.fromisoformat(listed(service)[1]["DeletedAt"])
    assert before - timedelta(milliseconds=1) <= ended <= datetime.now(UTC)


def test_a_key_may_end_itself_even_the_last_that_may_do_everything(service: Service) -> None:
    assert call(service, "POST", "/user/api-key/invalidate", {"apikey": API_KEY}).status_code == 200
    response = service.get("/balance")
    assert response.status_code == 401
    assert response.json() == {"success": False, "message": "X-Api-Key has been invalidated"}


@pytest.mark.parametrize("body", [{"apikey": "no such key"}, {"apikey": "00000000"}, {"apikey": "ключ"}])
def test_invalidating_what_is_no_key_is_refused(service: Service, body: dict[str, str]) -> None:
    response = call(service, "POST", "/user/api-key/invalidate", body)
    assert response.status_code == 400
    assert response.json()["message"] == "invalid key"


def test_a_key_is_invalidated_once(service: Service) -> None:
    key = generated(service)
    statuses = [
        call(service, "POST", "/user/api-key/invalidate", {"apikey": key}).status_code for _ in range(2)
    ]
    assert statuses == [200, 400]


@pytest.mark.parametrize("body", [{}, {"apikey": 5}, {"key": "x"}, {"apikey": "x", "y": 1}, []])
def test_a_body_that_names_no_key_to_invalidate_is_refused(service: Service, body: object) -> None:
    response = call(service, "POST", "/user/api-key/invalidate", body)
    assert response.status_code == 400
    assert response.json()["message"]


def test_a_deleted_key_stops_working_and_leaves_the_list(service: Service) -> None:
    key = generated(service)
    short_hash = listed(service)[1]["Apikey"]
    assert call(service, "DELETE", "/user/api-key", query={"apikeyHash": short_hash}).json() == {
        "message": "API key deleted"
    }
    assert status_with(service.process, key) == 401
    assert [row["Keyname"] for row in listed(service)] == ["first key"]
    again = call(service, "DELETE", "/user/api-key", query={"apikeyHash": short_hash})
    assert (again.status_code, again.json()["message"]) == (400, "invalid key")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "apikeyHash is required"),
        ({"apikeyHash": ""}, "apikeyHash must have at least 1 characters"),
        ({"apikeyHash": "00000000"}, "invalid key"),
        ({"apikeyHash": API_KEY}, "invalid key"),
        ({"apikeyHash": "ключ\x00"}, "invalid key"),
        ({"hash": "00000000"}, "apikeyHash is required"),
    ],
)
def test_deleting_what_is_no_key_is_refused(service: Service, query: dict[str, str], message: str) -> None:
    response = call(service, "DELETE", "/user/api-key", query=query)
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert len(listed(service)) == 1


@pytest.mark.parametrize("path", ["/user/api-keys", "/user/api-key/scopes"])
def test_a_query_where_none_is_taken_is_refused(service: Service, path: str) -> None:
    response = call(service, "GET", path, query={"page": 1})
    assert response.status_code == 400
    assert response.json()["message"] == "page is not a known member"


def test_a_reset_brings_back_the_first_key_and_no_other(service: Service) -> None:
    key = generated(service, apikey=API_KEY)
    service.process.reset()
    assert status_with(service.process, key) == 401
    assert [(row["Keyname"], row["DeletedAt"]) for row in listed(service)] == [("first key", None)]


def test_a_database_from_before_there_were_keys_gets_the_first(tmp_path: Path) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with SandboxProcess(database=database) as process, closing(process.books()) as books, books:
        for table in ("merchant_profile", "merchant_api_key"):
            books.execute(f"DELETE FROM {table}")  # noqa: S608 - the two names above
    with SandboxProcess(database=database) as process:
        assert status_with(process, API_KEY) == 200


def test_a_second_start_keeps_the_keys_as_they_were(tmp_path: Path) -> None:
    database = tmp_path / "sandbox.sqlite3"
    with SandboxProcess(database=database) as process, requests.Session() as session:
        new = generated(Service(process, session), apikey=API_KEY)
    with SandboxProcess(database=database) as process:
        assert (status_with(process, API_KEY), status_with(process, new)) == (401, 200)
