"""The errors of the client, by what the caller may do next.

* `NotSentError`: no byte of the request was sent. It may be sent again.
* `RejectedError`: the provider rejected the request. Nothing was executed; its subclasses give the reason.
* `OutcomeUnknownError`: any other failure of a call that is sent once. It must not be sent again before its
  outcome was read from the provider.
* `ReadFailedError`: a read failed. Nothing changed; it may be retried.

Messages and excerpts hold no credential and no one-time code: they may be stored, logged and shown. What the client
itself says is a template with parameters, so that an application can show it in another language; `_` marks the
templates for its catalogues.
"""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Self


def gettext_noop(template: str) -> str:
    """The same text, marked for translation by the application that shows it."""
    return template


_ = gettext_noop


class TemplateError(ValueError):
    """A value is not acceptable; the message gives the reason, `template` and `parameters` its parts."""

    def __init__(self, template: str, **parameters: object) -> None:
        super().__init__(template.format(**parameters))
        self.template = template
        self.parameters = parameters


class InputError(TemplateError):
    """What a person typed is not acceptable; the message gives the reason."""


_PLACE = re.compile(r"\{(\w+)\}")


def sentence(
    template: str, parameters: Mapping[str, Any], translate: Callable[[str], str] = gettext_noop
) -> str:
    """The template in the language of `translate`, with its parameters.

    The parameter `why` is itself a template: it is translated and filled with the other parameters. It may come
    from a deployment's profile, so braces in it that name no parameter are kept.
    """
    if why := parameters.get("why"):
        filled = _PLACE.sub(lambda place: str(parameters.get(place[1], place[0])), translate(why))
        parameters = {**parameters, "why": filled}
    return translate(template).format(**parameters)


class GatewayError(Exception):
    """A call to the provider failed.

    `status` is the HTTP status, if a response arrived; `body_excerpt` is the beginning of its body. `template` and
    `parameters` are the parts of the message; the template is empty if the message is the provider's.
    """

    template = ""
    parameters: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, message: str, status: int | None = None, body_excerpt: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.body_excerpt = body_excerpt

    @classmethod
    def of(
        cls, template: str, status: int | None = None, body_excerpt: str = "", **parameters: object
    ) -> Self:
        """An error whose message is the client's own: this template with these parameters and the status."""
        parts = parameters if status is None else {**parameters, "status": status}
        error = cls(sentence(template, parts), status, body_excerpt)
        error.template, error.parameters = template, parts
        return error


class NotSentError(GatewayError):
    """No byte of the request was sent.

    The connection failed (DNS, TCP or TLS), a time limit passed before the first write, or the request could not
    be built: a member, one-time code, key or id is missing, invalid or cannot be encoded.
    """


class CapabilityOffError(NotSentError):
    """This optional read is not in the profile's `capabilities`, so nothing was sent. Continue without it."""


class OutcomeUnknownError(GatewayError):
    """The request may have been executed. Only a later read can determine whether it was."""


class ReadFailedError(GatewayError):
    """The provider could not be read. Nothing changed; the read may be retried."""


class RejectedError(GatewayError):
    """The provider rejected the request. Nothing was executed."""


class OtpRejectedError(RejectedError):
    """The one-time code was missing, wrong, used or expired.

    `is_used` says that it arrived before, and that codes are accepted once. If it was made for this request alone, the
    request may have arrived twice, and been executed: then the outcome is unknown to the caller.
    """

    is_used = False


class InsufficientFundsError(RejectedError):
    """The balance does not cover the amount and its fee."""


class KycRequiredError(RejectedError):
    """The merchant has not completed the provider's know-your-customer checks."""


class CredentialsError(RejectedError):
    """The API key or user was rejected, or lacks the permission for this call."""


class InvalidRequestError(RejectedError):
    """A member of the request is missing or invalid."""


class NotFoundError(RejectedError):
    """The provider does not know what the request names."""


class RateLimitedError(RejectedError):
    """The provider accepts no more requests for now."""


#: Names of the kinds of rejection in the provider profile -> error raised for them.
REJECTION_KINDS: Mapping[str, type[RejectedError]] = MappingProxyType(
    {
        "otp_rejected": OtpRejectedError,
        "insufficient_funds": InsufficientFundsError,
        "kyc_required": KycRequiredError,
        "credentials": CredentialsError,
        "invalid_request": InvalidRequestError,
        "not_found": NotFoundError,
        "rate_limited": RateLimitedError,
    }
)
