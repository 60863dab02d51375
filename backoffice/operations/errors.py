"""Why an operation could not do what was asked. Each message can be shown to the person who asked."""

from uuid import UUID


class OperationError(Exception):
    """Nothing was changed. The message says why and what to do."""

    message = "This could not be done."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.message)


class NotAllowedError(OperationError):
    message = "You do not have the permission for this."


class MakerNotEntitledError(OperationError):
    message = (
        "Whoever prepared it may not prepare such operations any more, so it is not countersigned and not sent. "
        "Somebody else who may has to cancel it and prepare it again."
    )


class SelfApprovalError(OperationError):
    message = "You prepared this operation, so somebody else has to countersign and send it."


class AlreadyApprovedError(OperationError):
    message = "You have countersigned this operation already; another person is needed."


class WrongStatusError(OperationError):
    message = "The operation is no longer in the state you saw. Nothing was changed; look at it again."


class ExpiredError(OperationError):
    message = "The operation has expired. Nothing was changed; prepare it again if it is still wanted."


class ContentChangedError(OperationError):
    message = "The content is not the one you saw, so nothing was done. Look at the operation again."


class UnreadableContentError(OperationError):
    message = "The content cannot be read by this version of the program, so nothing can be done with it."


class SecondFactorStaleError(OperationError):
    message = "Enter your authenticator code: the last one is more than five minutes old."


class ReasonMissingError(OperationError):
    message = "Say why: the person who prepared it will read the reason."


class TokenMissingError(OperationError):
    message = "Enter the service's one-time token."


class AlreadyReleasedError(OperationError):
    message = "The operation is being sent already. Nothing was changed."


class SendingPausedError(OperationError):
    message = (
        "Sending is paused, so nothing was done, and no token was kept. "
        "It can be sent when two people have let sending go on."
    )


class SubmissionReusedError(OperationError):
    message = (
        "This form was submitted before with other content. Open a new form to prepare another operation."
    )


class ConfirmationWrongError(OperationError):
    message = "What you typed from the content does not fit it. Nothing was done; compare them again."


class SameContentWaitsError(OperationError):
    """The same content waits already. `waiting` is the id of that operation."""

    def __init__(self, reference: str, waiting: UUID) -> None:
        super().__init__(f"{reference} with exactly this content is waiting already. Nothing was prepared.")
        self.waiting = waiting


class SameInDoubtError(OperationError):
    """The same was sent, and nobody knows whether it happened. `waiting` is the id of that operation."""

    def __init__(self, reference: str, waiting: UUID) -> None:
        super().__init__(
            f"{reference} is the same, was sent, and its outcome is not known. Nothing was prepared. If it does not "
            "settle by itself, two people have to say first what became of it."
        )
        self.waiting = waiting


class PaidBeforeError(OperationError):
    message = (
        "The same amount for the same beneficiary waits already, or was sent within the last 24 hours. Say that this "
        "is a further payment, and why. Nothing was prepared."
    )


class SeemsExecutedError(OperationError):
    """The service's list shows what an earlier attempt may have caused after all."""

    def __init__(self, transaction_ids: str) -> None:
        super().__init__(
            f"An earlier attempt may have been executed after all: the service shows {transaction_ids}. "
            "Nothing was sent; compare it with this operation, and cancel it if it is paid."
        )


class CannotSettleError(OperationError):
    message = "The outcome cannot be settled like this any more. Nothing was changed."


class OneByOneError(OperationError):
    message = "It is countersigned on its own page."


class AlreadyPausedError(OperationError):
    def __init__(self, by: str) -> None:
        super().__init__(f"Sending is paused already{f', by {by}' if by else ''}. Nothing was changed.")


class NotPausedError(OperationError):
    message = "This pause does not stand any more, so there is nothing to end. Nothing was changed."


class IncidentSeenError(OperationError):
    message = "Somebody took note of this incident before. Nothing was changed."


class NoteMissingError(OperationError):
    message = "Say what you found: it stays with the incident, and others rely on it. Nothing was changed."


class SavedAccountError(Exception):
    """A bank account was not saved or renamed. The message says why and what to do."""


class FilterError(Exception):
    """A filter was not saved or renamed. The message says why and what to do."""
