"""Typed requests and answers: our names in the code, the specification's names on the wire, Decimal only.

One module per resource, beside the module of its operations.
"""

from payments_gateway.dialect import OtpType
from payments_gateway.schemas.accounts import Account, AccountRequest, Asset, CreatedAccount
from payments_gateway.schemas.api_keys import CreatedKey, KeyInfo, KeyRequest
from payments_gateway.schemas.balances import (
    Balance,
    Conversion,
    FiatCurrency,
    Transfer,
    TransferDetail,
    Withdrawal,
    WithdrawalReceipt,
)
from payments_gateway.schemas.banks import AccountHolder
from payments_gateway.schemas.payments import Payment, PaymentRequest
from payments_gateway.schemas.transactions import (
    Duration,
    TransactionPage,
    TransactionRecord,
    TransactionSummary,
    TransactionType,
)
from payments_gateway.schemas.wallets import Wallet, WalletAddress, WalletTransfer, WalletTransferDetail

__all__ = [
    "Account",
    "AccountHolder",
    "AccountRequest",
    "Asset",
    "Balance",
    "Conversion",
    "CreatedAccount",
    "CreatedKey",
    "Duration",
    "FiatCurrency",
    "KeyInfo",
    "KeyRequest",
    "OtpType",
    "Payment",
    "PaymentRequest",
    "TransactionPage",
    "TransactionRecord",
    "TransactionSummary",
    "TransactionType",
    "Transfer",
    "TransferDetail",
    "Wallet",
    "WalletAddress",
    "WalletTransfer",
    "WalletTransferDetail",
    "Withdrawal",
    "WithdrawalReceipt",
]
