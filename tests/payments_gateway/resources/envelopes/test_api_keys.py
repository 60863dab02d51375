"""Keys of the list, new keys, and their scopes."""

from typing import Any

import pytest

from payments_gateway import ProviderProfile, ReadFailedError
from tests.payments_gateway.resources.envelopes.conftest import NOON, Answered

KEY = {
    "Apikey": "1a2b3c4d",
    "Keyname": "reports",
    "Username": "merchant",
    "Expirable": True,
    "Expiration": 1763726400,
    "DeletedAt": None,
}


@pytest.mark.parametrize("data", [{"Apikeys": [KEY]}, {"apikeys": [KEY]}, [KEY]])
def test_keys_are_listed_by_their_hashes(answered: Answered, data: object) -> None:
    (key,) = answered("api_keys.list", {"data": data})
    assert (key.short_hash, key.name, key.username) == ("1a2b3c4d", "reports", "merchant")
    assert (key.is_expirable, key.expires_at, key.deleted_at) == (True, NOON, None)


def test_the_field_names_of_a_listed_key_come_from_the_profile(answered: Answered) -> None:
    profile = ProviderProfile().overridden(
        {
            "listed_key_hash_members": ["shortHash", "Apikey"],
            "listed_key_name_members": ["label"],
            "listed_key_username_members": ["owner"],
            "listed_key_expirable_members": ["expires"],
            "listed_key_expiry_members": ["expiresAt"],
            "listed_key_deletion_members": ["deletedOn"],
        }
    )
    listed = {
        "shortHash": "1a2b3c4d",
        "Apikey": "other",
        "label": "reports",
        "owner": "merchant",
        "expires": True,
        "expiresAt": 1763726400,
        "deletedOn": 1763726400,
    }
    (key,) = answered("api_keys.list", {"data": [listed]}, profile=profile)
    assert (key.short_hash, key.name, key.username) == ("1a2b3c4d", "reports", "merchant")
    assert (key.is_expirable, key.expires_at, key.deleted_at) == (True, NOON, NOON)
    assert key.model_extra == {"Apikey": "other"}


@pytest.mark.parametrize("key", ["1a2b3c4d", None, [], {}, {"Keyname": "reports"}, {"Apikey": ""}])
def test_a_malformed_listed_key_is_refused(answered: Answered, key: object) -> None:
    with pytest.raises(ReadFailedError):
        answered("api_keys.list", {"data": [key]})


@pytest.mark.parametrize("never", [None, "", 0, "0", "0001-01-01T00:00:00Z", "never"])
def test_an_empty_time_is_none(answered: Answered, never: object) -> None:
    (key,) = answered("api_keys.list", {"data": [KEY | {"DeletedAt": never, "Expirable": "no"}]})
    assert (key.deleted_at, key.is_expirable) == (None, None)


def test_scopes_are_read_from_names_and_codes(answered: Answered) -> None:
    scopes = {"Master": "M", "GetOnly": "G", "Withdrawal": "W", "NoWithdrawal": "N"}
    assert answered("api_keys.scopes", {"data": scopes}) == scopes


@pytest.mark.parametrize("data", [None, [], {}, {"Master": None}, {"Master": {"a": 1}}])
def test_a_malformed_scope_is_ignored(answered: Answered, data: object) -> None:
    with pytest.raises(ReadFailedError):
        answered("api_keys.scopes", {"data": data})


@pytest.mark.parametrize("data", [{"key": "canary-new-key"}, {"apikey": "canary-new-key"}])
@pytest.mark.parametrize("name", ["api_keys.create", "api_keys.generate"])
def test_a_new_key_is_read_as_a_secret(answered: Answered, name: str, data: dict[str, Any]) -> None:
    created = answered(name, {"data": {**data, "expires": "2025-11-21T12:00:00Z"}})
    assert created.key.get_secret_value() == "canary-new-key"
    assert created.expires == NOON
