"""The errors of refused actions. Nothing was changed; each message can be shown to the user.

The codes and their sentences are in `refusals`.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from backoffice.accounts.restrictions import Restriction, RestrictionCause
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.refusals.sentences import ANYBODY, sentence
from backoffice.policies.document import Level


class OperationError(Exception):
    """The action was refused and nothing was changed. `refusal` holds the code and its parameters."""

    code = Refusal.REFUSED

    def __init__(self, code: Refusal | None = None, **parameters: str) -> None:
        self.refusal = {"code": (code or self.code).value, **parameters}
        super().__init__(sentence(self.refusal))


class PermissionMissingError(OperationError):
    code = Refusal.PERMISSION_MISSING


_CAUSES = {
    RestrictionCause.BREAK_GLASS: Refusal.ACCOUNT_RESTRICTED,
    RestrictionCause.NEW_RIGHTS: Refusal.NEW_RIGHTS_WAIT,
    RestrictionCause.RECOVERED_ACCOUNT: Refusal.RECOVERY_WAIT,
}


class AccountRestrictedError(OperationError):
    """A change of the account, with break-glass or by two people, is in effect until this moment."""

    def __init__(self, restriction: Restriction) -> None:
        super().__init__(_CAUSES[restriction.cause], until=restriction.until.astimezone(UTC).isoformat())


class AdministratorsMissingError(OperationError):
    code = Refusal.ADMINISTRATORS_MISSING


class OwnAccountError(OperationError):
    code = Refusal.OWN_ACCOUNT


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


class AlteredRecordError(OperationError):
    """The stored rows are not those that people made with Countersign; `faults` are codes of `RecordFault`."""

    def __init__(self, code: Refusal, faults: Sequence[str]) -> None:
        super().__init__(code)
        self.faults = list(faults)


class PolicyRefusedError(OperationError):
    """A rule refuses the operation, with the reason that the policy gives."""

    def __init__(self, reason: str) -> None:
        super().__init__(Refusal.POLICY_REFUSED, reason=reason)


class PolicyAlteredError(OperationError):
    code = Refusal.POLICY_ALTERED


class NotInLevelError(OperationError):
    """The user is not one of the people who can approve at the open level."""

    def __init__(self, level: Level) -> None:
        super().__init__(Refusal.NOT_IN_LEVEL, level=level.model_dump_json())


class ApprovalsMissingError(OperationError):
    code = Refusal.APPROVALS_MISSING


class PolicyOutdatedError(OperationError):
    code = Refusal.POLICY_OUTDATED


class PolicyUnsatisfiableError(OperationError):
    """A level of a rule needs more people than can approve it besides `preparer`, which is empty for any preparer."""

    def __init__(self, number: int, kind: str, level: Level, preparer: str) -> None:
        super().__init__(
            Refusal.POLICY_UNSATISFIABLE,
            number=str(number),
            kind=kind,
            level=level.model_dump_json(),
            preparer=preparer or ANYBODY,
        )


class PolicyNamesOutdatedError(OperationError):
    def __init__(self, number: int, name: str) -> None:
        super().__init__(Refusal.POLICY_NAMES_OUTDATED, number=str(number), name=name)


class ContentUnreadableError(OperationError):
    code = Refusal.CONTENT_UNREADABLE


class SecondFactorStaleError(OperationError):
    code = Refusal.SECOND_FACTOR_STALE


class ReasonMissingError(OperationError):
    code = Refusal.REASON_MISSING


class OtpMissingError(OperationError):
    code = Refusal.OTP_MISSING


class OtpUsedError(OperationError):
    """The code was entered before, for the operation with this reference."""

    def __init__(self, reference: str) -> None:
        super().__init__(Refusal.OTP_USED, reference=reference)


class AlreadyReleasedError(OperationError):
    code = Refusal.ALREADY_RELEASED


class PaymentsPausedError(OperationError):
    code = Refusal.PAYMENTS_PAUSED


class BatchPausedError(OperationError):
    code = Refusal.BATCH_PAUSED


class BatchCancelledError(OperationError):
    code = Refusal.BATCH_CANCELLED


class BatchClosedError(OperationError):
    code = Refusal.BATCH_CLOSED


class FileNotReadyError(OperationError):
    code = Refusal.FILE_NOT_READY


class NothingToRetryError(OperationError):
    code = Refusal.NOTHING_TO_RETRY


class FileOutdatedError(OperationError):
    code = Refusal.FILE_OUTDATED


class SubmissionReusedError(OperationError):
    code = Refusal.SUBMISSION_REUSED


class ConfirmationWrongError(OperationError):
    code = Refusal.CONFIRMATION_WRONG


class AcknowledgementMissingError(OperationError):
    code = Refusal.ACKNOWLEDGEMENT_MISSING


class NotPreparedTogetherError(Exception):
    """One of several operations was refused for this reason, so none of them was prepared."""

    def __init__(self, operation_id: UUID, reason: OperationError) -> None:
        super().__init__(str(reason))
        self.operation_id, self.reason = operation_id, reason


class DuplicatePendingError(OperationError):
    """An operation with the same content, or about the same, is pending or approved; `duplicate_id` is its id."""

    def __init__(self, reference: str, waiting: UUID, *, is_same_content: bool = True) -> None:
        code = Refusal.DUPLICATE_PENDING if is_same_content else Refusal.CHANGE_PENDING
        super().__init__(code, reference=reference)
        self.duplicate_id = waiting


class DuplicateUnknownError(OperationError):
    """A duplicate was sent and its outcome is unknown; `duplicate_id` is the id of that operation."""

    def __init__(self, reference: str, waiting: UUID) -> None:
        super().__init__(Refusal.DUPLICATE_UNKNOWN, reference=reference)
        self.duplicate_id = waiting


class RetriedInBatchError(OperationError):
    """A later batch retries the payment to copy; `duplicate_id` is the id of `selectors.retry_of_payment`."""

    def __init__(self, reference: str, retry: UUID) -> None:
        super().__init__(Refusal.RETRIED_IN_BATCH, reference=reference)
        self.duplicate_id = retry


class ReferenceUsedError(OperationError):
    """Another operation has this reference at the provider."""

    def __init__(self, operation: str, used: str) -> None:
        super().__init__(Refusal.REFERENCE_USED, operation=operation, used=used)


class DuplicatePaymentError(OperationError):
    code = Refusal.DUPLICATE_PAYMENT


class PossiblyExecutedError(OperationError):
    """The provider's list shows what an earlier attempt may have caused after all."""

    def __init__(self, transaction_ids: str) -> None:
        super().__init__(Refusal.POSSIBLY_EXECUTED, transactions=transaction_ids)


class LookAlikeError(OperationError):
    """The provider's list shows a similar transaction that belongs to no attempt here."""

    def __init__(self, transaction_ids: Iterable[str]) -> None:
        super().__init__(Refusal.LOOK_ALIKE, transactions=", ".join(transaction_ids))


class HolderChangedError(OperationError):
    """The bank gives another name of the account's holder now than was approved; none if it finds no account."""

    def __init__(self, approved: str, current: str) -> None:
        code = Refusal.HOLDER_CHANGED if current else Refusal.HOLDER_NOT_FOUND
        super().__init__(code, approved=approved, **({"current": current} if current else {}))


class HolderReasonMissingError(OperationError):
    code = Refusal.HOLDER_REASON_MISSING


class ListTooLongError(OperationError):
    """The provider's list could not be read in time before sending."""

    code = Refusal.LIST_TOO_LONG


class LookAlikeReasonMissingError(OperationError):
    code = Refusal.LOOK_ALIKE_REASON_MISSING


class DatabaseRestoredError(OperationError):
    """The database lacks what a journal outside it proves."""

    code = Refusal.DATABASE_RESTORED


class JournalLostError(DatabaseRestoredError):
    """This machine has no journal, so what the database lacks cannot be known."""


class MaybeExecutedError(OperationError):
    """The operation must not be closed as unsent: a journal shows an attempt that the database does not have, or a
    pending resolution says that it is paid.
    """

    code = Refusal.MAYBE_EXECUTED


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


class PauseChangedError(OperationError):
    code = Refusal.PAUSE_CHANGED


class AlreadyAcknowledgedError(OperationError):
    code = Refusal.ALREADY_ACKNOWLEDGED


class NoteMissingError(OperationError):
    code = Refusal.NOTE_MISSING


class RecipientNotApprovedError(OperationError):
    code = Refusal.RECIPIENT_NOT_APPROVED


class RecipientAlteredError(OperationError):
    code = Refusal.RECIPIENT_ALTERED


class ImportOutdatedError(OperationError):
    """A recipient of the file is not, or no longer, in the register as its row needs it."""

    def __init__(self, name: str) -> None:
        super().__init__(Refusal.IMPORT_OUTDATED, name=name)


class RecipientCurrencyError(OperationError):
    """The register allows payments to the recipient in this currency only."""

    def __init__(self, currency: str) -> None:
        super().__init__(Refusal.RECIPIENT_CURRENCY, currency=currency)


class RecipientNetworkError(OperationError):
    """The register allows payments to the address on these networks only."""

    def __init__(self, networks: str) -> None:
        super().__init__(Refusal.RECIPIENT_NETWORK, networks=networks)


class RecipientUsernameError(OperationError):
    """The register allows payments to exactly this username only."""

    def __init__(self, username: str) -> None:
        super().__init__(Refusal.RECIPIENT_USERNAME, username=username)


class RecipientCoolingError(OperationError):
    """The recipient can be paid from this moment."""

    def __init__(self, until: datetime) -> None:
        super().__init__(Refusal.RECIPIENT_COOLING, until=until.astimezone(UTC).isoformat())


class SavedViewError(Exception):
    """A view was not saved or renamed. The message says why and what to do."""
