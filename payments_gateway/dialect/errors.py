"""Open points of errors: where their words are, and what a status or a word proves."""

from collections.abc import Mapping
from dataclasses import dataclass

from payments_gateway.dialect.points import point

_ERRORS = "Errors"


@dataclass(frozen=True, kw_only=True)
class ErrorPoints:
    """How a refusal is told from a doubt, and one refusal from another."""

    message_members: tuple[str, ...] = point(
        ("message",), "likely", _ERRORS, "What holds the words of an error."
    )
    detail_members: tuple[str, ...] = point(
        ("errors",), "likely", _ERRORS, "What lists the details of an error."
    )
    retry_statuses: tuple[int, ...] = point(
        (429, 502, 503, 504), "likely", _ERRORS, "A read answered so is tried again."
    )
    uncertain_statuses: Mapping[int, str] = point(
        {
            408: "the service gave up waiting, and may have read the whole request",
            409: "a conflict may be with this very request, already executed",
            424: "something behind the service failed, perhaps after the money moved",
            425: "the request was taken too early and may be replayed by what stands between",
            499: "what stands between cut the call while the service went on",
        },
        "unknown",
        _ERRORS,
        "Refusals that do not prove that nothing was executed -> why. On a money call the outcome is unknown.",
    )
    refusal_patterns: Mapping[str, str] = point(
        {
            "kyc_required": r"\bkyc\b|know your customer",
            "insufficient_funds": r"insufficient\W+(?:\w+\W+)?(?:funds?|balance)|balance\b.*\b(?:insufficient|too low)"
            r"|(?:funds?|balance)\b.*\bnot (?:enough|sufficient)|not enough (?:funds?|balance|money)",
            "invalid_request": r"\binvalid api scope\b",
            "credentials": r"api[\s_-]*(?:key|user|scope)|\b(?:access|bearer|api) token|credential|\bscope\b"
            r"|endpoint (?:is )?disabled",
            "token_refused": r"\b(?:t?otp|2fa|two[\s-]?factor|one[\s-]?time|token|passcode|authenticator)\b"
            r"|(?:verification|security) code",
            "rate_limited": r"too many (?:requests|calls)|rate limit",
        },
        "likely",
        _ERRORS,
        "The same refusal is seen under several codes, so its words are read first: kind -> pattern, in this order.",
    )
    refusal_statuses: Mapping[int, str] = point(
        {
            400: "invalid_request",
            401: "credentials",
            403: "credentials",
            404: "not_found",
            422: "invalid_request",
            429: "rate_limited",
        },
        "likely",
        _ERRORS,
        "What a refusal is taken for when its words match no pattern. All of them mean: not executed.",
    )
