"""The errors of the client, sorted by what the caller may do next.

* `NotSentError`: no byte of the request left this machine. It may be sent again.
* `RejectedError`: the provider rejected the request. Nothing was executed; its subclasses say why.
* `OutcomeUnknownError`: everything else on a call that moves money or makes keys. It must never be sent again
  before its outcome was read from the provider.
* `ReadFailedError`: a read failed. Nothing changed; it may be tried again.

Messages and excerpts hold no credential and no one-time code; they may be stored, logged and shown.
"""

from collections.abc import Mapping
from types import MappingProxyType


class GatewayError(Exception):
    """A call to the service did not end with an answer.

    `status` is the HTTP status where there was one; `body_excerpt` the beginning of what came back.
    """

    def __init__(self, message: str, status: int | None = None, body_excerpt: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.body_excerpt = body_excerpt


class NotSentError(GatewayError):
    """No byte of the request left: the connection, its TLS or the name could not be had, or it was no request at all
    (a token, a key or an id is missing or cannot be sent)."""


class CapabilityOffError(NotSentError):
    """The deployment has not said that the service has this optional read, so it was not asked. Go on without."""


class OutcomeUnknownError(GatewayError):
    """The request may have been executed. Only a later read can tell."""


class ReadFailedError(GatewayError):
    """The service could not be read now. Reading changes nothing and may be tried again."""


class RejectedError(GatewayError):
    """The service understood the request and refused it. Nothing was executed."""


class OtpRefusedError(RejectedError):
    """The one-time token was missing, wrong, used or expired."""


class InsufficientFundsError(RejectedError):
    """The balance does not cover the amount and its fee."""


class KycRequiredError(RejectedError):
    """The merchant has not completed the service's know-your-customer checks."""


class CredentialsError(RejectedError):
    """The API key or user was refused, or lacks the right for this call."""


class InvalidRequestError(RejectedError):
    """The service found a member of the request missing or wrong."""


class NotFoundError(RejectedError):
    """What the request names is unknown to the service."""


class RateLimitedError(RejectedError):
    """The service takes no more requests for now."""


#: The names by which the dialect knows the kinds of refusal.
REJECTION_KINDS: Mapping[str, type[RejectedError]] = MappingProxyType(
    {
        "token_refused": OtpRefusedError,
        "insufficient_funds": InsufficientFundsError,
        "kyc_required": KycRequiredError,
        "credentials": CredentialsError,
        "invalid_request": InvalidRequestError,
        "not_found": NotFoundError,
        "rate_limited": RateLimitedError,
    }
)
