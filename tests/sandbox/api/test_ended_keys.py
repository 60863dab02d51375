"""API keys that end: invalidated, or deleted."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.sandbox.conftest import Service
from tests.sandbox.v4_calls import call, generated, listed, status_with
from tests.sandbox_process import API_KEY


def test_a_key_can_be_invalidated_by_its_short_hash(service: Service) -> None:
    key = generated(service)
    short_hash = listed(service)[1]["Apikey"]
    response = call(service, "POST", "/user/api-key/invalidate", {"apikey": short_hash})
    assert response.json()["data"] == {"apikey": short_hash}
    assert status_with(service.process, key) == 401


def test_an_invalidated_key_stays_listed_with_the_time(service: Service) -> None:
    before = datetime.now(UTC)
    call(service, "POST", "/user/api-key/invalidate", {"apikey": generated(service)})
    ended = datetime.fromisoformat(listed(service)[1]["DeletedAt"])
    assert before - timedelta(milliseconds=1) <= ended <= datetime.now(UTC)


def test_a_key_can_end_itself_even_as_the_last_one(service: Service) -> None:
    assert call(service, "POST", "/user/api-key/invalidate", {"apikey": API_KEY}).status_code == 200
    response = service.get("/balance")
    assert response.status_code == 401
    assert response.json() == {"success": False, "message": "X-Api-Key has been invalidated"}


@pytest.mark.parametrize("body", [{"apikey": "no such key"}, {"apikey": "00000000"}, {"apikey": "ключ"}])
def test_invalidating_an_unknown_key_is_refused(service: Service, body: dict[str, str]) -> None:
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
def test_invalidating_without_a_key_is_refused(service: Service, body: object) -> None:
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
def test_deleting_an_unknown_key_is_refused(service: Service, query: dict[str, str], message: str) -> None:
    response = call(service, "DELETE", "/user/api-key", query=query)
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert len(listed(service)) == 1
