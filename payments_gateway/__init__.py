"""Client of the provider's Business Payments API. Import from here: this module is its whole public surface."""

from payments_gateway.client import PaymentsGateway
from payments_gateway.config import GatewayConfig
from payments_gateway.connection import write_only_while
from payments_gateway.crypto_addresses import AddressError, AddressProof, check_address
from payments_gateway.errors import (
    CapabilityOffError,
    CredentialsError,
    GatewayError,
    InputError,
    InsufficientFundsError,
    InvalidRequestError,
    KycRequiredError,
    NotFoundError,
    NotSentError,
    OtpRejectedError,
    OutcomeUnknownError,
    RateLimitedError,
    ReadFailedError,
    RejectedError,
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
from payments_gateway.operations import OPERATIONS, ApiOperation, CallEffect
from payments_gateway.profile.model import ProviderProfile
from payments_gateway.profile.values import Duration, EventKind, OtpType
from payments_gateway.resources.transactions import PageReader
from payments_gateway.schemas.accounts import (
    BANKS,
    Account,
    AccountHolder,
    AccountRequest,
    Asset,
    CreatedAccount,
)
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
from payments_gateway.schemas.payments import Payment, PaymentRequest, PaymentUpdate
from payments_gateway.schemas.transactions import (
    TransactionPage,
    TransactionRecord,
    TransactionSummary,
    TransactionType,
    TransactionUpdate,
)
from payments_gateway.schemas.wallets import Wallet, WalletAddress, WalletTransfer, WalletTransferDetail
from payments_gateway.webhooks import (
    PublicKey,
    ReceivedWebhook,
    SignatureStatus,
    load_public_key,
    verify_webhook,
)

__all__ = [
    "BANKS",
    "CURRENCIES",
    "OPERATIONS",
    "Account",
    "AccountHolder",
    "AccountRequest",
    "AddressError",
    "AddressProof",
    "AmountError",
    "ApiOperation",
    "Asset",
    "Balance",
    "CallEffect",
    "CapabilityOffError",
    "Conversion",
    "CreatedAccount",
    "CreatedKey",
    "CredentialsError",
    "Currency",
    "Duration",
    "EventKind",
    "FiatCurrency",
    "GatewayConfig",
    "GatewayError",
    "InputError",
    "InsufficientFundsError",
    "InvalidRequestError",
    "KeyInfo",
    "KeyRequest",
    "KycRequiredError",
    "NotFoundError",
    "NotSentError",
    "OtpRejectedError",
    "OtpType",
    "OutcomeUnknownError",
    "PageReader",
    "Payment",
    "PaymentRequest",
    "PaymentUpdate",
    "PaymentsGateway",
    "ProviderProfile",
    "PublicKey",
    "RateLimitedError",
    "ReadFailedError",
    "ReceivedWebhook",
    "RejectedError",
    "SignatureStatus",
    "TransactionPage",
    "TransactionRecord",
    "TransactionSummary",
    "TransactionType",
    "TransactionUpdate",
    "Transfer",
    "TransferDetail",
    "UnreadableError",
    "Wallet",
    "WalletAddress",
    "WalletTransfer",
    "WalletTransferDetail",
    "Withdrawal",
    "WithdrawalReceipt",
    "check_address",
    "dumps",
    "load_public_key",
    "loads",
    "parse_amount",
    "verify_webhook",
    "write_only_while",
]
