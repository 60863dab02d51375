"""Everything that changes an operation. Each function is one transaction, or says why it is not."""

from backoffice.operations.services.apart import do_apart
from backoffice.operations.services.approving import approve_operation
from backoffice.operations.services.bulk import Choice, Decision, Line, approve_operations, reject_operations
from backoffice.operations.services.confirming import confirm_operation
from backoffice.operations.services.deciding import (
    cancel_operation,
    expire_operation,
    prepare_operation,
    reject_operation,
)
from backoffice.operations.services.filters import delete_filter, rename_filter, save_filter
from backoffice.operations.services.heartbeats import note_round
from backoffice.operations.services.incidents import acknowledge_incident
from backoffice.operations.services.inspecting import inspect_due
from backoffice.operations.services.moves import record_refusal
from backoffice.operations.services.news import expect_news, look_at_news
from backoffice.operations.services.pausing import pause_sending
from backoffice.operations.services.reconciling import reconcile_due
from backoffice.operations.services.recording import fill_in_result, record_silence
from backoffice.operations.services.releasing import (
    approve_and_release_operation,
    lapse_release,
    release_operation,
)
from backoffice.operations.services.saved_accounts import delete_account, rename_account, save_account
from backoffice.operations.services.sending import (
    Claim,
    Preflight,
    claim_operation,
    look_before,
    send_operation,
)
from backoffice.operations.services.sweeping import close_due, send_due, tidy_up
from backoffice.operations.services.watching import watch_due

__all__ = [
    "Choice",
    "Claim",
    "Decision",
    "Line",
    "Preflight",
    "acknowledge_incident",
    "approve_and_release_operation",
    "approve_operation",
    "approve_operations",
    "cancel_operation",
    "claim_operation",
    "close_due",
    "confirm_operation",
    "delete_account",
    "delete_filter",
    "do_apart",
    "expect_news",
    "expire_operation",
    "fill_in_result",
    "inspect_due",
    "lapse_release",
    "look_at_news",
    "look_before",
    "note_round",
    "pause_sending",
    "prepare_operation",
    "reconcile_due",
    "record_refusal",
    "record_silence",
    "reject_operation",
    "reject_operations",
    "release_operation",
    "rename_account",
    "rename_filter",
    "save_account",
    "save_filter",
    "send_due",
    "send_operation",
    "tidy_up",
    "watch_due",
]
