"""Every operation of the specification in one table, and its description in openapi.yaml for each named profile.

Sources: the sections Endpoints, Authentication (8: key management) and Address families of the specification.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from payments_gateway.profile.model import ProfileName, ProviderProfile


class Endpoint(enum.Enum):
    """Base addresses of the API, with the credentials that each requires."""

    V2 = "v2, with the three headers of the v2 operations"
    V2_OPEN = "v2, without credentials"
    V4 = "v4, with the two headers of the v4 operations"


def key_management_endpoint(profile: ProviderProfile) -> Endpoint:
    """Return the endpoint of the five key management operations (specification, Authentication 8: not shown)."""
    return Endpoint.V2 if profile.key_base == "v2" else Endpoint.V4


class CallEffect(enum.Enum):
    """What a call changes at the provider. Only reads are ever retried by the client."""

    READS = "reads"
    MOVES_MONEY = "moves money"
    MAKES_KEYS = "makes keys"
    CHANGES = "changes settings"


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One operation. `name` is the client's method (`balances.withdraw`) and its operationId in openapi.yaml.

    * `path` is relative to the base address of the endpoint (`endpoint`); `path_point` names the profile's point
      that can replace it.
    * `has_open_base`: the profile decides which base address serves it; `has_open_credentials`: and whether it
      takes the credential headers.
    * `needs_otp`: requires a one-time code, unless the profile makes it optional.
    * `kind` is the kind of operation that must be approved before this call; empty for a read.
    """

    name: str
    method: str
    path: str
    endpoint: Endpoint
    effect: CallEffect = CallEffect.READS
    needs_otp: bool = False
    kind: str = ""
    path_point: str = ""
    has_open_base: bool = False
    has_open_credentials: bool = False

    def path_in(self, profile: ProviderProfile) -> str:
        """The path in this profile."""
        return str(getattr(profile, self.path_point)) if self.path_point else self.path

    def endpoint_in(self, profile: ProviderProfile) -> Endpoint:
        """The endpoint in this profile."""
        if self.has_open_credentials and not profile.extra_credentials:
            return Endpoint.V2_OPEN
        return key_management_endpoint(profile) if self.has_open_base else self.endpoint


_MONEY, _KEYS, _SETTINGS = CallEffect.MOVES_MONEY, CallEffect.MAKES_KEYS, CallEffect.CHANGES

OPERATIONS = (
    ApiOperation("balances.convert", "POST", "/balance/convert", Endpoint.V2, _MONEY, kind="conversion"),
    ApiOperation(
        "balances.withdraw",
        "POST",
        "/balance/withdraw",
        Endpoint.V2,
        _MONEY,
        needs_otp=True,
        kind="withdrawal",
    ),
    ApiOperation(
        "balances.transfer",
        "POST",
        "/balance/transfer",
        Endpoint.V2,
        _MONEY,
        needs_otp=True,
        kind="transfer",
    ),
    ApiOperation("balances.list", "GET", "/balance", Endpoint.V2),
    ApiOperation("wallets.transfer", "POST", "/wallet/transfer", Endpoint.V2, _MONEY, kind="wallet_transfer"),
    ApiOperation("wallets.get", "GET", "/wallet", Endpoint.V2),
    ApiOperation("payments.create", "POST", "/payment", Endpoint.V2, _MONEY, kind="payment"),
    ApiOperation("transactions.page", "GET", "/transaction", Endpoint.V2),
    ApiOperation("transactions.summary", "GET", "/transaction/summary", Endpoint.V2),
    ApiOperation("banks.resolve", "POST", "/bank/resolve", Endpoint.V2_OPEN),
    ApiOperation(
        "api_keys.create",
        "POST",
        "/auth/api-key",
        Endpoint.V2,
        _KEYS,
        needs_otp=True,
        kind="api_key_create",
    ),
    ApiOperation("callbacks.set_url", "PUT", "/callbackurl", Endpoint.V2, _SETTINGS, kind="callback_url"),
    ApiOperation("callbacks.url", "GET", "/callbackurl", Endpoint.V2),
    ApiOperation("accounts.create", "PUT", "/account", Endpoint.V4, _SETTINGS, kind="bank_account"),
    ApiOperation("accounts.list", "GET", "/account", Endpoint.V4),
    ApiOperation(
        "api_keys.generate",
        "POST",
        "/user/api-key",
        Endpoint.V4,
        _KEYS,
        needs_otp=True,
        kind="api_key_create",
        path_point="key_generate_path",
        has_open_base=True,
    ),
    ApiOperation(
        "api_keys.list", "GET", "/user/api-keys", Endpoint.V4, path_point="key_list_path", has_open_base=True
    ),
    ApiOperation(
        "api_keys.scopes",
        "GET",
        "/user/api-key/scopes",
        Endpoint.V4,
        path_point="key_scopes_path",
        has_open_base=True,
    ),
    ApiOperation(
        "api_keys.invalidate",
        "POST",
        "/user/api-key/invalidate",
        Endpoint.V4,
        _SETTINGS,
        kind="api_key_invalidate",
        path_point="key_invalidate_path",
        has_open_base=True,
    ),
    ApiOperation(
        "api_keys.delete",
        "DELETE",
        "/user/api-key",
        Endpoint.V4,
        _SETTINGS,
        kind="api_key_delete",
        path_point="key_delete_path",
        has_open_base=True,
    ),
)
"""The twenty operations of the specification, by resource."""

OPENAPI_FILE = Path(__file__).with_name("openapi.yaml")
_PATCHES = "x-profiles"


@cache
def api_description(profile: ProfileName = "specification") -> Any:
    """The document `openapi.yaml` as one named profile has it: with the merge patch of that profile applied."""
    import yaml  # imported here: rarely needed, and takes several megabytes of memory

    document = yaml.safe_load(OPENAPI_FILE.read_text(encoding="utf-8"))
    patches = document.pop(_PATCHES)
    return _patched(document, patches.get(profile, {}))


def _patched(value: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396): null removes a member, an object is merged, all else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    kept = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            kept.pop(name, None)
        else:
            kept[name] = _patched(kept.get(name), change)
    return kept
