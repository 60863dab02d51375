"""What an API key may do, by its scope and by the effect of the operation (`payments_gateway.operations`)."""

import enum

from payments_gateway.operations import ApiOperation, CallEffect


class Scope(enum.StrEnum):
    """The scopes, as on the wire."""

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
"""What GET /user/api-key/scopes answers."""

_KEY_MANAGEMENT = "api_keys."
_MONEY_THAT_STAYS = "balances.convert"


def allows(scope: Scope, operation: ApiOperation) -> bool:
    """Whether a key of this scope may do the operation.

    M everything · G reads · W reads and what takes money out · N everything but that and the keys.
    Managing keys needs M, reading the list of keys included: with that right goes every other.
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
