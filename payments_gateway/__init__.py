"""A client of the Business Payments API. This is its whole public surface."""

from payments_gateway.addresses import AddressError, AddressProof, check_address
from payments_gateway.client import PaymentsGateway
from payments_gateway.config import GatewayConfig
from payments_gateway.dialect import Dialect
from payments_gateway.errors import (
    CapabilityOffError,
    CredentialsError,
    GatewayError,
    InsufficientFundsError,
    InvalidRequestError,
    KycRequiredError,
    NotFoundError,
    NotSentError,
    OutcomeUnknownError,
    RateLimitedError,
    ReadFailedError,
    RejectedError,
    TokenRefusedError,
)
from payments_gateway.money import (
    CURRENCIES,
    AmountError,
    Currency,
    UnreadableError,
    dumps,
    loads,
    parse_amount,
)
from payments_gateway.reference import BANKS
from payments_gateway.schemas import (
    AccountHolder,
    Balance,
    Duration,
    OtpType,
    TransactionPage,
    TransactionRecord,
    TransactionType,
    Withdrawal,
    WithdrawalReceipt,
)

__all__ = [
    "BANKS",
    "CURRENCIES",
    "AccountHolder",
    "AddressError",
    "AddressProof",
    "AmountError",
    "Balance",
    "CapabilityOffError",
    "CredentialsError",
    "Currency",
    "Dialect",
    "Duration",
    "GatewayConfig",
    "GatewayError",
    "InsufficientFundsError",
    "InvalidRequestError",
    "KycRequiredError",
    "NotFoundError",
    "NotSentError",
    "OtpType",
    "OutcomeUnknownError",
    "PaymentsGateway",
    "RateLimitedError",
    "ReadFailedError",
    "RejectedError",
    "TokenRefusedError",
    "TransactionPage",
    "TransactionRecord",
    "TransactionType",
    "UnreadableError",
    "Withdrawal",
    "WithdrawalReceipt",
    "check_address",
    "dumps",
    "loads",
    "parse_amount",
]
