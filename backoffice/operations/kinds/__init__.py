"""The list of kinds. Adding a kind is adding a file beside this one and a line here; `registry` reads the list."""

from backoffice.operations.kinds.access_review import AccessReviewKind
from backoffice.operations.kinds.api_keys.create import ApiKeyCreateKind
from backoffice.operations.kinds.api_keys.delete import ApiKeyDeleteKind
from backoffice.operations.kinds.api_keys.invalidate import ApiKeyInvalidateKind
from backoffice.operations.kinds.api_keys.switch import ApiKeySwitchKind
from backoffice.operations.kinds.approval_policy import ApprovalPolicyKind
from backoffice.operations.kinds.bank_account import BankAccountKind
from backoffice.operations.kinds.batch import BatchKind
from backoffice.operations.kinds.callback_url import CallbackUrlKind
from backoffice.operations.kinds.conversion import ConversionKind
from backoffice.operations.kinds.delegation import DelegationKind
from backoffice.operations.kinds.otp_secret import OtpSecretKind
from backoffice.operations.kinds.payment import PaymentKind
from backoffice.operations.kinds.recipient import RecipientKind
from backoffice.operations.kinds.recipient_import import RecipientImportKind
from backoffice.operations.kinds.registry import register
from backoffice.operations.kinds.resolution.kind import ResolutionKind
from backoffice.operations.kinds.resume import ResumeKind
from backoffice.operations.kinds.satisfiability import check_policy_stays_satisfiable
from backoffice.operations.kinds.staff_change import StaffChangeKind
from backoffice.operations.kinds.staffing import STAFFING_CHECKS
from backoffice.operations.kinds.transfer import TransferKind
from backoffice.operations.kinds.wallet_transfer import WalletTransferKind
from backoffice.operations.kinds.withdrawal import WithdrawalKind

register(
    ConversionKind(),
    WithdrawalKind(),
    TransferKind(),
    WalletTransferKind(),
    PaymentKind(),
    BatchKind(),
    ApiKeyCreateKind(),
    ApiKeySwitchKind(),
    ApiKeyInvalidateKind(),
    ApiKeyDeleteKind(),
    BankAccountKind(),
    CallbackUrlKind(),
    OtpSecretKind(),
    ApprovalPolicyKind(),
    DelegationKind(),
    RecipientKind(),
    RecipientImportKind(),
    ResolutionKind(),
    ResumeKind(),
    StaffChangeKind(),
    AccessReviewKind(),
)
STAFFING_CHECKS.append(check_policy_stays_satisfiable)
