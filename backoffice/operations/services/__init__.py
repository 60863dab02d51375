"""Everything that changes an operation. Each function is one transaction, or says why it is not."""

from backoffice.operations.services.bulk import Choice, Decision, Line, approve_operations, reject_operations
from backoffice.operations.services.confirming import confirm_operation
from backoffice.operations.services.deciding import (
    approve_operation,
    cancel_operation,
    expire_operation,
    prepare_operation,
    reject_operation,
)
from backoffice.operations.services.filters import delete_filter, rename_filter, save_filter
from backoffice.operations.services.moves import record_refusal
from backoffice.operations.services.recording import fill_in_result, record_silence
from backoffice.operations.services.sending import (
    Claim,
    approve_and_release_operation,
    claim_operation,
    lapse_release,
    release_operation,
    send_operation,
)
from backoffice.operations.services.sweeping import close_due, send_due, tidy_up

__all__ = [
    "Choice",
    "Claim",
    "Decision",
    "Line",
    "approve_and_release_operation",
    "approve_operation",
    "approve_operations",
    "cancel_operation",
    "claim_operation",
    "close_due",
    "confirm_operation",
    "delete_filter",
    "expire_operation",
    "fill_in_result",
    "lapse_release",
    "prepare_operation",
    "record_refusal",
    "record_silence",
    "reject_operation",
    "reject_operations",
    "release_operation",
    "rename_filter",
    "save_filter",
    "send_due",
    "send_operation",
    "tidy_up",
]
