"""The effect of one transaction record on the accounts. Pure; used by the ledger and by the seed."""

from dataclasses import dataclass

from payments_gateway.sandbox import BANKS, CHAIN, EXCHANGE, FEES, MERCHANT, USERS

DEPOSIT = "deposit"
WITHDRAWAL = "withdrawal"
SENT = "sent"
TRANSFER = "transfer"
INTERNAL_TRANSFER = "internalTransfer"
CONVERSION = "conversion"

FEE_OF_WITHDRAWAL = {"NGN": 50_00, "USD": 1_00}
"""Flat fee in minor units, in addition to the amount."""

_OUTSIDE = {
    DEPOSIT: BANKS,
    WITHDRAWAL: BANKS,
    SENT: CHAIN,
    TRANSFER: USERS,
    INTERNAL_TRANSFER: USERS,
    CONVERSION: EXCHANGE,
}


@dataclass(frozen=True, slots=True)
class Movement:
    """One change of the merchant's balance in one currency, in minor units.

    `sender` and `username` are the paying and the receiving party. A conversion is two movements: what was
    sold, in its own currency, and what was received, whose `from_currency` and `from_amount` repeat what was
    sold.
    """

    type: str
    currency: str
    amount: int
    sender: str
    username: str
    incoming: bool = False
    fee: int = 0
    from_currency: str = ""
    from_amount: int = 0

    @property
    def effect(self) -> int:
        """The change of the merchant's balance. The merchant always pays the fee, in addition to the amount."""
        return (self.amount if self.incoming else -self.amount) - self.fee

    @property
    def given(self) -> tuple[str, int]:
        """`fromCurrency` and `fromAmount` of the record: those of the side sold, in a conversion."""
        return (self.from_currency, self.from_amount) if self.from_currency else (self.currency, self.amount)

    def entries(self) -> list[tuple[str, int]]:
        """Double entry: (owner, amount) pairs that add up to zero."""
        is_fiat = self.currency in FEE_OF_WITHDRAWAL
        outside = CHAIN if self.type == DEPOSIT and not is_fiat else _OUTSIDE[self.type]
        pairs = [(MERCHANT, self.effect), (outside, -self.amount if self.incoming else self.amount)]
        return [*pairs, (FEES, self.fee)] if self.fee else pairs


def reversal_of(transaction_id: str, currency: str, amount: int, *, to: str) -> Movement:
    """The deposit that returns the debit of a failed order, including its fee."""
    return Movement(DEPOSIT, currency, amount, f"Reversal of {transaction_id}", to, incoming=True)
