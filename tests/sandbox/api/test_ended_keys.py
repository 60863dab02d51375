"""API keys that end: invalidated, or deleted."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.sandbox.conftest import SandboxClient
from tests.sandbox.v4_calls import call, generated, listed, status_with
from tests.sandbox_process import API_KEY


def test_a_key_can_be_invalidated_by_its_short_hash(provider: SandboxClient) -> None:
    key = generated(provider)
    short_hash = listed(provider)[1]["Apikey"]
    response = call(provider, "POST", "/user/api-key/invalidate", {"apikey": short_hash})
    assert response.json()["data"] == {"apikey": short_hash}
    assert status_with(provider.process, key) == 401


def test_an_invalidated_key_stays_listed_with_the_time(provider: SandboxClient) -> None:
    before = datetime.now(UTC)
    call(provider, "POST", "/user/api-key/invalidate", {"apikey": generated(provider)})
    ended = datetime.fromisoformat(listed(provider)[1]["DeletedAt"])
    assert before - timedelta(milliseconds=1) <= ended <= datetime.now(UTC)


def test_a_key_can_end_itself_even_as_the_last_one(provider: SandboxClient) -> None:
    assert call(provider, "POST", "/user/api-key/invalidate", {"apikey": API_KEY}).status_code == 200
    response = provider.get("/balance")
    assert response.status_code == 401
    assert response.json() == {"success": False, "message": "X-Api-Key has been invalidated"}


@pytest.mark.parametrize("body", [{"apikey": "no such key"}, {"apikey": "00000000"}, {"apikey": "ключ"}])
def test_invalidating_an_unknown_key_is_refused(provider: SandboxClient, body: dict[str, str]) -> None:
    response = call(provider, "POST", "/user/api-key/invalidate", body)
    assert response.status_code == 400
    assert response.json()["message"] == "invalid key"


def test_a_key_is_invalidated_once(provider: SandboxClient) -> None:
    key = generated(provider)
    statuses = [
        call(provider, "POST", "/user/api-key/invalidate", {"apikey": key}).status_code for _ in range(2)
    ]
    assert statuses == [200, 400]


@pytest.mark.parametrize("body", [{}, {"apikey": 5}, {"key": "x"}, {"apikey": "x", "y": 1}, []])
def test_invalidating_without_a_key_is_refused(provider: SandboxClient, body: object) -> None:
    response = call(provider, "POST", "/user/api-key/invalidate", body)
    assert response.status_code == 400
    assert response.json()["message"]


def test_a_deleted_key_stops_working_and_leaves_the_list(provider: SandboxClient) -> None:
    key = generated(provider)
    short_hash = listed(provider)[1]["Apikey"]
    assert call(provider, "DELETE", "/user/api-key", query={"apikeyHash": short_hash}).json() == {
        "message": "API key deleted"
    }
    assert status_with(provider.process, key) == 401
    assert [row["Keyname"] for row in listed(provider)] == ["first key"]
    again = call(provider, "DELETE", "/user/api-key", query={"apikeyHash": short_hash})
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
def test_deleting_an_unknown_key_is_refused(
    provider: SandboxClient, query: dict[str, str], message: str
) -> None:
    response = call(provider, "DELETE", "/user/api-key", query=query)
    assert response.status_code == 400
    assert response.json()["message"] == message
    assert len(listed(provider)) == 1
