"""Possible outcomes of one request that moves money, and of the transaction that it causes."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto


class ProviderReply(Enum):
    """The response."""

    NAMED = auto()  # accepted, with the transaction id
    UNNAMED = auto()  # accepted without a transaction id: normal for withdrawals
    WORDS = auto()  # a status and a message
    UNREACHABLE = auto()  # no connection
    RESET = auto()  # the connection breaks before the first byte of a response
    TRUNCATED = auto()  # it breaks in the middle of the response
    SILENCE = auto()  # nothing, until the deadline
    HTML = auto()


@dataclass(frozen=True)
class RequestOutcome:
    """Whether and when the provider executes a request, and its response; `takes` is how long the sender
    waits.
    """

    reply: ProviderReply
    executed_after: timedelta | None = timedelta()
    takes: timedelta = timedelta()
    status: int = 200
    words: str = "ok"


@dataclass(frozen=True)
class Settlement:
    """How a transaction ends, and how long it is pending."""

    status: str
    after: timedelta = timedelta()


FULFILLED = Settlement("fulfilled")
SETTLEMENTS = (
    FULFILLED,
    Settlement("fulfilled", timedelta(seconds=20)),
    Settlement("fulfilled", timedelta(hours=3)),
    Settlement("failed", timedelta(seconds=20)),
    Settlement("failed"),
)

_DEADLINE = timedelta(seconds=30)
_NEVER = None

COURSES = {
    "named": RequestOutcome(ProviderReply.NAMED),
    "unnamed": RequestOutcome(ProviderReply.UNNAMED),
    "slow": RequestOutcome(ProviderReply.NAMED, takes=timedelta(seconds=29)),
    "unreachable": RequestOutcome(ProviderReply.UNREACHABLE, _NEVER),
    "lost": RequestOutcome(ProviderReply.RESET, _NEVER),
    "cut": RequestOutcome(ProviderReply.RESET),
    "truncated": RequestOutcome(ProviderReply.TRUNCATED),
    "html": RequestOutcome(ProviderReply.HTML),
    "html, not executed": RequestOutcome(ProviderReply.HTML, _NEVER),
    "silence": RequestOutcome(ProviderReply.SILENCE, _NEVER, takes=_DEADLINE),
    "31 seconds late": RequestOutcome(ProviderReply.SILENCE, timedelta(seconds=31), takes=_DEADLINE),
    "10 minutes late": RequestOutcome(ProviderReply.SILENCE, timedelta(minutes=10), takes=_DEADLINE),
    "502, 10 minutes late": RequestOutcome(
        ProviderReply.WORDS, timedelta(minutes=10), status=502, words="Bad gateway"
    ),
    "500, executed": RequestOutcome(ProviderReply.WORDS, status=500, words="Something went wrong"),
    "500, not executed": RequestOutcome(
        ProviderReply.WORDS, _NEVER, status=500, words="Something went wrong"
    ),
    "504, executed": RequestOutcome(
        ProviderReply.WORDS, status=504, takes=_DEADLINE, words="Gateway timeout"
    ),
    "409, executed": RequestOutcome(ProviderReply.WORDS, status=409, words="Conflict"),
    "token refused": RequestOutcome(
        ProviderReply.WORDS, _NEVER, status=401, words="The OTP {token} is not valid"
    ),
    "refused": RequestOutcome(ProviderReply.WORDS, _NEVER, status=403, words="KYC required"),
}
