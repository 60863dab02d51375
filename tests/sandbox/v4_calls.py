"""The v4 operations as a client calls them: with the two headers of v4 and no other."""

from collections.abc import Mapping
from typing import Any

import requests

from tests.sandbox.conftest import SandboxClient
from tests.sandbox_process import API_KEY, API_USER, SandboxProcess

KEYNAME = {"keyname": "till"}
MASTER = {**KEYNAME, "scope": "M"}


def call(
    provider: SandboxClient,
    method: str,
    path: str,
    body: object = None,
    *,
    query: Mapping[str, object] | None = None,
    key: str = API_KEY,
) -> requests.Response:
    """One call of a v4 operation."""
    return requests.request(
        method,
        f"{provider.process.address}/v4{path}",
        json=body,
        params={name: str(value) for name, value in (query or {}).items()},
        headers={"x-api-key": key, "x-api-user": API_USER},
        timeout=30,
    )


def generated(provider: SandboxClient, scope: str = "M", /, **members: object) -> str:
    """A new key of this scope, made without a one-time code."""
    provider.process.options(otp_required=False)
    response = call(provider, "POST", "/user/api-key", {"keyname": "till", "scope": scope, **members})
    assert response.status_code == 200, response.text
    return str(response.json()["data"]["apikey"])


def listed(provider: SandboxClient) -> Any:
    """The keys in the list, oldest first."""
    return call(provider, "GET", "/user/api-keys").json()["data"]["Apikeys"]


def status_with(process: SandboxProcess, key: str) -> int:
    """What GET /balance answers to this key: 200 if it works."""
    headers = {**process.headers, "X-Api-Key": key}
    return requests.get(f"{process.url}/balance", headers=headers, timeout=30).status_code
