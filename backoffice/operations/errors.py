"""Why an operation was refused. Nothing was changed; each message can be shown to the user."""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import TextChoices

from backoffice.core.web.formatting import code_sentence


class OperationAction(TextChoices):
    """The action that was refused, as the audit log names it."""

    PREPARE = "prepare"
    APPROVE = "approve"
    APPROVE_AND_RELEASE = "approve_and_release"
    REJECT = "reject"
    CANCEL = "cancel"
    RELEASE = "release"
    SEND = "send"


class Refusal(TextChoices):
    """Why it was refused. The label is the sentence, with its parameters in braces."""

    REFUSED = "refused", "This could not be done."
    PERMISSION_MISSING = "permission_missing", "You do not have the permission for this."
    PREPARER_NOT_ENTITLED = (
        "preparer_not_entitled",
        "Whoever prepared it may not prepare such operations any more, so it is not countersigned "
        "and not sent. Somebody else who may has to cancel it and prepare it again.",
    )
    SELF_APPROVAL = (
        "self_approval",
        "You prepared this operation, so somebody else has to countersign and send it.",
    )
    ALREADY_APPROVED = (
        "already_approved",
        "You have countersigned this operation already; another person is needed.",
    )
    WRONG_STATUS = (
        "wrong_status",
        "The operation is no longer in the state you saw. Nothing was changed; look at it again.",
    )
    EXPIRED = (
        "expired",
        "The operation has expired. Nothing was changed; prepare it again if it is still wanted.",
    )
    CONTENT_CHANGED = (
        "content_changed",
        "The content is not the one you saw, so nothing was done. Look at the operation again.",
    )
    CONTENT_UNREADABLE = (
        "content_unreadable",
        "The content cannot be read by this version of the program, so nothing can be done with it.",
    )
    SECOND_FACTOR_STALE = (
        "second_factor_stale",
        "Enter your authenticator code: the last one is more than five minutes old.",
    )
    REASON_MISSING = "reason_missing", "Say why: the person who prepared it will read the reason."
    OTP_MISSING = "otp_missing", "Enter the service's one-time token."
    ALREADY_RELEASED = "already_released", "The operation is being sent already. Nothing was changed."
    PAYMENTS_PAUSED = (
        "payments_paused",
        "Sending is paused, so nothing was done, and no token was kept. It can be sent when two "
        "people have let sending go on.",
    )
    SUBMISSION_REUSED = (
        "submission_reused",
        "This form was submitted before with other content. Open a new form to prepare another operation.",
    )
    CONFIRMATION_WRONG = (
        "confirmation_wrong",
        "What you typed from the content does not fit it. Nothing was done; compare them again.",
    )
    DUPLICATE_PAYMENT = (
        "duplicate_payment",
        "The same amount for the same beneficiary waits already, or was sent within the last 24 "
        "hours. Say that this is a further payment, and why. Nothing was prepared.",
    )
    CANNOT_RESOLVE = (
        "cannot_resolve",
        "The outcome cannot be settled like this any more. Nothing was changed.",
    )
    NOT_IN_BULK = "not_in_bulk", "It is countersigned on its own page."
    NOT_PAUSED = (
        "not_paused",
        "This pause does not stand any more, so there is nothing to end. Nothing was changed.",
    )
    ALREADY_ACKNOWLEDGED = (
        "already_acknowledged",
        "Somebody took note of this incident before. Nothing was changed.",
    )
    NOTE_MISSING = (
        "note_missing",
        "Say what you found: it stays with the incident, and others rely on it. Nothing was changed.",
    )
    DUPLICATE_PENDING = (
        "duplicate_pending",
        "{reference} with exactly this content is waiting already. Nothing was prepared.",
    )
    DUPLICATE_UNKNOWN = (
        "duplicate_unknown",
        "{reference} is the same, was sent, and its outcome is not known. Nothing was prepared. If "
        "it does not settle by itself, two people have to say first what became of it.",
    )
    POSSIBLY_EXECUTED = (
        "possibly_executed",
        "An earlier attempt may have been executed after all: the service shows {transactions}. "
        "Nothing was sent; compare it with this operation, and cancel it if it is paid.",
    )
    ALREADY_PAUSED = "already_paused", "Sending is paused already. Nothing was changed."
    ALREADY_PAUSED_BY = "already_paused_by", "Sending is paused already, by {by}. Nothing was changed."
    FURTHER_APPROVAL_NEEDED = (
        "further_approval_needed",
        "Another person must countersign before this can be sent. Choose “Approve” alone.",
    )
    KIND_NOT_IN_BULK = "kind_not_in_bulk", "{kinds} are countersigned one by one, each on its own page."
    DUPLICATE_NOT_IN_BULK = (
        "duplicate_not_in_bulk",
        "The same was paid before: read why, and countersign it on its own page.",
    )
    TWO_APPROVALS_NOT_IN_BULK = (
        "two_approvals_not_in_bulk",
        "Two people must countersign it, so it is countersigned on its own page.",
    )
    CONFIRMATION_NOT_IN_BULK = (
        "confirmation_not_in_bulk",
        "Part of its content has to be typed, so it is countersigned on its own page.",
    )
    CAUTION_NOT_IN_BULK = (
        "caution_not_in_bulk",
        "Its page warns of something: read that, and countersign it there.",
    )
    NOT_THE_PREPARER = "not_the_preparer", "Only the person who prepared an operation can cancel it."
    APPROVER_NOT_ENTITLED = (
        "approver_not_entitled",
        "Somebody who countersigned is no longer entitled to: nothing was sent.",
    )
    APPLIED_LOCALLY = (
        "applied_locally",
        "This is applied here when it is countersigned; there is nothing to send.",
    )
    STATUS_CHANGED = (
        "status_changed",
        "The operation is {status} by now, so nothing was changed. Look at it again.",
    )
    OTP_OF_OTHER_CONTENT = (
        "otp_of_other_content",
        "The token was not sealed for this content, so nothing was sent.",
    )
    PAUSE_REASON_MISSING = (
        "pause_reason_missing",
        "Say why: everybody who works here reads the reason. Sending goes on.",
    )
    LIST_UNREADABLE = (
        "list_unreadable",
        "The service's list cannot be read now, and its word may have changed. Nothing was changed. {error}",
    )
    RECORD_CHANGED = (
        "record_changed",
        "The service does not show transaction {transaction} as {status} any more. Nothing was "
        "changed; look at it again.",
    )
    OUTCOME_KNOWN = (
        "outcome_known",
        "{reference} is {status} by now, without this. Nothing was changed.",
    )
    MAY_STILL_BE_EXECUTED = (
        "may_still_be_executed",
        "{reference} may still be executed. Nothing was changed.",
    )
    TRANSACTION_CLAIMED = (
        "transaction_claimed",
        "Transaction {transaction} is another operation's by now, or the service named another one "
        "for this. Nothing was changed.",
    )
    NO_FREE_REFERENCE = (
        "no_free_reference",
        "No free reference was found. Nothing was prepared; try again.",
    )
    FORM_INVALID = "form_invalid", "The form was not accepted: {fields}."


def sentence(refusal: Mapping[str, str]) -> str:
    """A stored refusal (its code and parameters) in words."""
    return code_sentence(Refusal, refusal)


class OperationError(Exception):
    """The action was refused and nothing was changed. `refusal` holds the code and its parameters."""

    code = Refusal.REFUSED

    def __init__(self, code: Refusal | None = None, **parameters: str) -> None:
        self.refusal = {"code": (code or self.code).value, **parameters}
        super().__init__(sentence(self.refusal))


class PermissionMissingError(OperationError):
    code = Refusal.PERMISSION_MISSING


class PreparerNotEntitledError(OperationError):
    code = Refusal.PREPARER_NOT_ENTITLED


class SelfApprovalError(OperationError):
    code = Refusal.SELF_APPROVAL


class AlreadyApprovedError(OperationError):
    code = Refusal.ALREADY_APPROVED


class WrongStatusError(OperationError):
    code = Refusal.WRONG_STATUS


class ExpiredError(OperationError):
    code = Refusal.EXPIRED


class ContentChangedError(OperationError):
    code = Refusal.CONTENT_CHANGED


class ContentUnreadableError(OperationError):
    code = Refusal.CONTENT_UNREADABLE


class SecondFactorStaleError(OperationError):
    code = Refusal.SECOND_FACTOR_STALE


class ReasonMissingError(OperationError):
    code = Refusal.REASON_MISSING


class OtpMissingError(OperationError):
    code = Refusal.OTP_MISSING


class AlreadyReleasedError(OperationError):
    code = Refusal.ALREADY_RELEASED


class PaymentsPausedError(OperationError):
    code = Refusal.PAYMENTS_PAUSED


class SubmissionReusedError(OperationError):
    code = Refusal.SUBMISSION_REUSED


class ConfirmationWrongError(OperationError):
    code = Refusal.CONFIRMATION_WRONG


class DuplicatePendingError(OperationError):
    """An operation with the same content is pending or approved. `waiting` is its id."""

    def __init__(self, reference: str, waiting: UUID) -> None:
        super().__init__(Refusal.DUPLICATE_PENDING, reference=reference)
        self.duplicate_id = waiting


class DuplicateUnknownError(OperationError):
    """A duplicate was sent and its outcome is unknown. `waiting` is the id of that operation."""

    def __init__(self, reference: str, waiting: UUID) -> None:
        super().__init__(Refusal.DUPLICATE_UNKNOWN, reference=reference)
        self.duplicate_id = waiting


class DuplicatePaymentError(OperationError):
    code = Refusal.DUPLICATE_PAYMENT


class PossiblyExecutedError(OperationError):
    """The provider's list shows what an earlier attempt may have caused after all."""

    def __init__(self, transaction_ids: str) -> None:
        super().__init__(Refusal.POSSIBLY_EXECUTED, transactions=transaction_ids)


class CannotResolveError(OperationError):
    code = Refusal.CANNOT_RESOLVE


class NotInBulkError(OperationError):
    code = Refusal.NOT_IN_BULK


class AlreadyPausedError(OperationError):
    def __init__(self, by: str) -> None:
        if by:
            super().__init__(Refusal.ALREADY_PAUSED_BY, by=by)
        else:
            super().__init__(Refusal.ALREADY_PAUSED)


class NotPausedError(OperationError):
    code = Refusal.NOT_PAUSED


class AlreadyAcknowledgedError(OperationError):
    code = Refusal.ALREADY_ACKNOWLEDGED


class NoteMissingError(OperationError):
    code = Refusal.NOTE_MISSING


class SavedAccountError(Exception):
    """A bank account was not saved or renamed. The message says why and what to do."""


class SavedFilterError(Exception):
    """A filter was not saved or renamed. The message says why and what to do."""
