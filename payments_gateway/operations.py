"""Every operation of the specification in one table: where it is, who calls it, and what it does.

Sources: the sections Endpoints, Authentication (8: key management) and Address families of the specification.
"""

import enum
from dataclasses import dataclass

from payments_gateway.dialect import Dialect
from payments_gateway.door import Door, door_of_keys


class Effect(enum.Enum):
    """What a call does at the service. Whatever is not a read goes out once and is never repeated by the client."""

    READS = "reads"
    MOVES_MONEY = "moves money"
    MAKES_KEYS = "makes keys"
    CHANGES = "changes settings"


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. `name` is the client's method (`balances.withdraw`) and its operationId in openapi.yaml.

    `path` is relative to the base address of its door; `path_point` names the point of the dialect that may spell
    it otherwise. Of an operation with an open base, the dialect also says which address serves it. `needs_token` is
    said of calls that are not made without a one-time token, unless the dialect makes it optional. `kind` is the kind
    of operation that must be countersigned before this call, or nothing for a read.
    """

    name: str
    method: str
    path: str
    door: Door
    effect: Effect = Effect.READS
    needs_token: bool = False
    kind: str = ""
    path_point: str = ""
    has_open_base: bool = False

    def path_in(self, dialect: Dialect) -> str:
        """The path as this dialect spells it."""
        return str(getattr(dialect, self.path_point)) if self.path_point else self.path

    def door_in(self, dialect: Dialect) -> Door:
        """Where this dialect has the operation."""
        return door_of_keys(dialect) if self.has_open_base else self.door


_MONEY, _KEYS, _CHANGES = Effect.MOVES_MONEY, Effect.MAKES_KEYS, Effect.CHANGES

OPERATIONS = (
    Operation("balances.convert", "POST", "/balance/convert", Door.V2, _MONEY, kind="conversion"),
    Operation(
        "balances.withdraw", "POST", "/balance/withdraw", Door.V2, _MONEY, needs_token=True, kind="withdrawal"
    ),
    Operation(
        "balances.transfer", "POST", "/balance/transfer", Door.V2, _MONEY, needs_token=True, kind="transfer"
    ),
    Operation("balances.list", "GET", "/balance", Door.V2),
    Operation("wallets.transfer", "POST", "/wallet/transfer", Door.V2, _MONEY, kind="wallet_transfer"),
    Operation("wallets.get", "GET", "/wallet", Door.V2),
    Operation("payments.create", "POST", "/payment", Door.V2, _MONEY, kind="payment"),
    Operation("transactions.page", "GET", "/transaction", Door.V2),
    Operation("transactions.summary", "GET", "/transaction/summary", Door.V2),
    Operation("banks.resolve", "POST", "/bank/resolve", Door.V2_OPEN),
    Operation(
        "api_keys.create", "POST", "/auth/api-key", Door.V2, _KEYS, needs_token=True, kind="api_key_create"
    ),
    Operation("callbacks.set_url", "PUT", "/callbackurl", Door.V2, _CHANGES, kind="callback_url"),
    Operation("callbacks.url", "GET", "/callbackurl", Door.V2),
    Operation("accounts.create", "PUT", "/account", Door.V4, _CHANGES, kind="bank_account"),
    Operation("accounts.list", "GET", "/account", Door.V4),
    Operation(
        "api_keys.generate",
        "POST",
        "/user/api-key",
        Door.V4,
        _KEYS,
        needs_token=True,
        kind="api_key_create",
        path_point="key_generate_path",
        has_open_base=True,
    ),
    Operation(
        "api_keys.list", "GET", "/user/api-keys", Door.V4, path_point="key_list_path", has_open_base=True
    ),
    Operation(
        "api_keys.scopes",
        "GET",
        "/user/api-key/scopes",
        Door.V4,
        path_point="key_scopes_path",
        has_open_base=True,
    ),
    Operation(
        "api_keys.invalidate",
        "POST",
        "/user/api-key/invalidate",
        Door.V4,
        _CHANGES,
        kind="api_key_invalidate",
        path_point="key_invalidate_path",
        has_open_base=True,
    ),
    Operation(
        "api_keys.delete",
        "DELETE",
        "/user/api-key",
        Door.V4,
        _CHANGES,
        kind="api_key_delete",
        path_point="key_delete_path",
        has_open_base=True,
    ),
)
"""The twenty operations, in the order of the specification."""
