"""Errors of the API key services. Each message can be shown as it is."""


class ApiKeyError(Exception):
    """The request was refused and nothing was changed. The message says why and what to do."""

    message = "This could not be done."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.message)


class NotSenderOfKeyError(ApiKeyError):
    message = "Only the person who had it sent can be shown it. Your attempt is on record."


class SecretGoneError(ApiKeyError):
    message = "There is nothing to show any more: it was shown before, or taken into use. Only its short hash is left."


class ReservedForRotationError(ApiKeyError):
    message = (
        "This key is for Countersign itself, which needs nobody to see it. Abandon the rotation first if it shall be "
        "used elsewhere. Nothing was shown."
    )


class UnreadableSecretError(ApiKeyError):
    message = (
        "The key cannot be opened: its encryption key is not among the configured ones. Nothing was shown."
    )


class StaleSecondFactorError(ApiKeyError):
    message = "Enter your authenticator code: the last one is more than five minutes old. Nothing was shown."


class RotationOpenError(ApiKeyError):
    message = "A rotation is under way already. There is only one at a time."


class WrongRotationStepError(ApiKeyError):
    message = "The rotation is not at this step any more. Nothing was changed; look at where it stands."
