"""Typed requests and answers: our names in the code, the specification's names on the wire, Decimal only.

One module per resource, beside the module of its operations.
"""

from payments_gateway.dialect import OtpType
from payments_gateway.schemas.balances import Balance, Withdrawal, WithdrawalReceipt
from payments_gateway.schemas.banks import AccountHolder
from payments_gateway.schemas.transactions import (
    Duration,
    TransactionPage,
    TransactionRecord,
    TransactionType,
)

__all__ = [
    "AccountHolder",
    "Balance",
    "Duration",
    "OtpType",
    "TransactionPage",
    "TransactionRecord",
    "TransactionType",
    "Withdrawal",
    "WithdrawalReceipt",
]
