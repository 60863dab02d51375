"""A client of the Business Payments API. This is its whole public surface."""

from payments_gateway.addresses import AddressError, AddressProof, check_address
from payments_gateway.callbacks import Delivery, PublicKey, Verdict, load_public_key, verify
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
from payments_gateway.schemas.callbacks import EventKind, PaymentNews, TransactionNews

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
    "Delivery",
    "Dialect",
    "Duration",
    "EventKind",
    "GatewayConfig",
    "GatewayError",
    "InsufficientFundsError",
    "InvalidRequestError",
    "KycRequiredError",
    "NotFoundError",
    "NotSentError",
    "OtpType",
    "OutcomeUnknownError",
    "PaymentNews",
    "PaymentsGateway",
    "PublicKey",
    "RateLimitedError",
    "ReadFailedError",
    "RejectedError",
    "TokenRefusedError",
    "TransactionNews",
    "TransactionPage",
    "TransactionRecord",
    "TransactionType",
    "UnreadableError",
    "Verdict",
    "Withdrawal",
    "WithdrawalReceipt",
    "check_address",
    "dumps",
    "load_public_key",
    "loads",
    "parse_amount",
    "verify",
]
