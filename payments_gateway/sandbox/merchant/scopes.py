"""The permissions of an API key: which operations of `payments_gateway.operations` its scope allows."""

import enum

from payments_gateway.operations import ApiOperation, CallEffect


class Scope(enum.StrEnum):
    """The scopes, as in the API."""

    MASTER = "M"
    GET_ONLY = "G"
    WITHDRAWAL = "W"
    NO_WITHDRAWAL = "N"


NAMES = {
    "Master": Scope.MASTER,
    "GetOnly": Scope.GET_ONLY,
    "Withdrawal": Scope.WITHDRAWAL,
    "NoWithdrawal": Scope.NO_WITHDRAWAL,
}
"""The scopes by name, as returned by GET /user/api-key/scopes."""

_KEY_MANAGEMENT = "api_keys."
_MONEY_THAT_STAYS = "balances.convert"


def allows(scope: Scope, operation: ApiOperation) -> bool:
    """Whether a key of this scope may call the operation.

    M: everything. G: reads. W: reads and calls that take money out. N: everything except those calls and the
    keys. Managing keys, including reading their list, needs M, because it gives every other permission.
    """
    if scope is Scope.MASTER:
        return True
    if operation.name.startswith(_KEY_MANAGEMENT):
        return False
    if operation.effect is CallEffect.READS:
        return True
    return scope is (Scope.WITHDRAWAL if takes_money_out(operation) else Scope.NO_WITHDRAWAL)


def takes_money_out(operation: ApiOperation) -> bool:
    """Whether money leaves the merchant. A conversion moves it between the merchant's own balances only."""
    return operation.effect is CallEffect.MOVES_MONEY and operation.name != _MONEY_THAT_STAYS
