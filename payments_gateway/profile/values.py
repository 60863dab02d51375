"""The types of the values in the provider profile: what pydantic checks of each field by itself.

A path such as ("withdrawal", "transactionId") leads through nested objects; the empty path is the object where
the search begins.
"""

import enum
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, TypeVar, get_args

from annotated_types import Ge, Le, MinLen
from pydantic import AfterValidator

from payments_gateway.errors import REJECTION_KINDS

OtpType = Literal["otp", "totp"]

Capability = Literal["banks", "rates", "currencies", "minimums", "wallet_config", "transaction", "payment"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)

Duration = Literal["one day", "one week", "one month", "one year"]


class EventKind(enum.StrEnum):
    """Kinds of event seen so far; there may be others."""

    PAYMENT_CREATED = "payment created"
    PAYMENT_UPDATED = "payment updated"
    TRANSACTION_UPDATED = "transaction updated"
    DEPOSIT = "deposit"
    CONVERT = "convert"
    TRANSFER = "transfer"
    WITHDRAWAL = "withdrawal"
    ONRAMP = "onramp"
    OFFRAMP = "offramp"


def _name(text: str) -> str:
    if not text or text != text.strip():
        raise ValueError("a name is needed, without spaces around it")
    return text


def _lower_case(word: str) -> str:
    if word != word.strip().lower():
        raise ValueError("the provider's values are written in lower case")
    return word


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as exc:
        raise ValueError(f"{text!r} is no pattern ({exc})") from exc
    return text


def _rejection_kind(name: str) -> str:
    if name not in REJECTION_KINDS:
        raise ValueError(f"the kinds of rejection are {', '.join(REJECTION_KINDS)}")
    return name


def _url_path(path: str) -> str:
    """No path may contain `resolve` (GET /payment/resolve moves money), or `..`, which could lead to it."""
    if not _PATH.fullmatch(path):
        raise ValueError("a path is like /user/api-keys, without a query")
    if "resolve" in path.casefold():
        raise ValueError("no path may hold the word resolve, because GET /payment/resolve moves money")
    return path


def _url_path_with_id(path: str) -> str:
    """Exactly one segment, in braces, is the place of the id."""
    plain, places = _ID_SEGMENT.subn("/id", path)
    if places != 1:
        raise ValueError("one segment of the path is for the id, as in /transaction/{transactionId}")
    _url_path(plain)
    return path


_PATH = re.compile(r"(/[A-Za-z0-9_~-]+(\.[A-Za-z0-9_~-]+)*)+")
_ID_SEGMENT = re.compile(r"/\{\w+\}(?=/|$)")

T = TypeVar("T")
K = TypeVar("K")

NonEmpty = Annotated[str, MinLen(1)]
Name = Annotated[str, AfterValidator(_name)]
LowerCase = Annotated[str, AfterValidator(_lower_case)]
AtLeastOne = Annotated[tuple[T, ...], MinLen(1)]
Names = AtLeastOne[Name]
ObjectPaths = AtLeastOne[Names]
ObjectPathsOrData = AtLeastOne[tuple[Name, ...]]
UrlPath = Annotated[str, AfterValidator(_url_path)]
UrlPathWithId = Annotated[str, AfterValidator(_url_path_with_id)]
Pattern = Annotated[Name, AfterValidator(_pattern)]
RejectionKind = Annotated[str, AfterValidator(_rejection_kind)]
SuccessStatus = Annotated[int, Ge(200), Le(299)]
ErrorStatus = Annotated[int, Ge(400), Le(599)]
ClientErrorStatus = Annotated[int, Ge(400), Le(499)]
Table = Annotated[Mapping[K, T], AfterValidator(MappingProxyType)]

REJECTION_PATTERNS: Mapping[RejectionKind, Pattern] = {
    "kyc_required": r"\bkyc\b|know your customer",
    "insufficient_funds": r"insufficient\W+(?:\w+\W+)?(?:funds?|balance)|balance\b.*\b(?:insufficient|too low)"
    r"|(?:funds?|balance)\b.*\bnot (?:enough|sufficient)|not enough (?:funds?|balance|money)",
    "invalid_request": r"\binvalid api scope\b",
    "credentials": r"api[\s_-]*(?:key|user|scope)|\b(?:access|bearer|api) token|credential|\bscope\b"
    r"|endpoint (?:is )?disabled",
    "otp_rejected": r"\b(?:t?otp|2fa|two[\s-]?factor|one[\s-]?time|token|passcode|authenticator)\b"
    r"|(?:verification|security) code",
    "rate_limited": r"too many (?:requests|calls)|rate limit",
}
REPEAT_PATTERN = (
    r"(?<!or )(?<!or has )(?<!or was )\balready (?:been )?(?:used|processed|received|executed|submitted)\b"
    r"|\bduplicate (?:request|reference|transaction|payment)\b|\breference\b.{0,40}\b(?:used|exists)\b"
)
"""That a request arrived before. Not of a message that names this beside another reason, such as a wrong code."""
