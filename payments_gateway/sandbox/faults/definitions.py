"""The kinds of faults and their parameters: what a network, a proxy or the provider itself may do wrong on demand.

A fault is added with POST /_sandbox/faults and is kept in the memory of this process until it is deleted, until a
reset, or until the process ends. `operation` is a name of `payments_gateway/operations.py`, or "*" for every
request under /v2 and /v4. `times` is how many requests it hits (null: until it is deleted), `skip` how many pass
first, and `containing` a text that the target or the body of a request must contain, byte by byte as it was sent.

What each kind looks like to the client, and whether the provider executed the operation:

kind              what the client receives                                               executed
delay             the response comes `seconds` later                                     yes, also if the client left
  when=before_execution    the wait comes first; nothing is in the books meanwhile
  when=after_execution     the books have changed while the client waits
status            any status from 200 with any body and headers                          see `when`
  when=before_execution    the operation is rejected                                     no
  when=after_execution     its response is replaced                                      yes
drop              no response, or half of one; the connection is closed                  see `when`
  when=before_read         reset (RST) while the body is still unread                    no
  when=after_read          closed (FIN) once the whole request was read                  no
  when=after_execution     closed (FIN) instead of the response                          yes
  when=mid_answer          head and half of the body, then reset (RST)                   yes
truncate          the body ends after `at` bytes                                         yes
  content_length=full      Content-Length promises the whole body; then closed (FIN)
  content_length=cut       Content-Length fits what was sent: a whole response, of half a document
garbage           status 200 and nonsense of the given `form`; see responses.py          yes, or no with
                                                                                         when=before_execution
duplicate_record  the record at `position` of a page of transactions is repeated         it is a read
hide_record_for   the list of transactions lags: a record made since the fault was       it is a read
                  added appears `seconds` (of the provider's clock) after it was made;
                  with operation "*" the extra read of one record lags as well
rate_limit        429 with Retry-After beyond `per_second` requests                      no

`reset` of a drop chooses between RST (true) and FIN (false) against the defaults above. The faults `status`, `drop`,
`truncate`, `garbage` and `rate_limit` produce the response by themselves: at most one of them, the oldest, hits a
request, and the others apply to later requests, so a sequence of responses is a sequence of faults. Delays and
faults of lists combine with each other and with them. `hide_record_for` and `rate_limit` are conditions rather than
events: their `times` defaults to null.

A delay holds one of the eight threads, so at most six requests are held at once; meanwhile, further requests pass
without a hit. Deleting its fault releases the held requests at once; a reset cuts their connections,
and what was held before its execution is never executed.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from payments_gateway.money import dumps
from payments_gateway.operations import OPERATIONS
from payments_gateway.sandbox.api.http import ExactNumber, validated
from payments_gateway.sandbox.faults.responses import GARBAGE_FORMS

ANY_OPERATION = "*"
LIST_OPERATIONS = ("transactions.page", "transactions.summary")
_NAMES = frozenset(operation.name for operation in OPERATIONS)
_MAX_COUNT = 1_000_000
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]{0,4000}", re.ASCII)
_FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})


def _operation(name: str) -> str:
    if name not in _NAMES and name != ANY_OPERATION:
        raise ValueError(f"must be the name of an operation, such as {OPERATIONS[0].name}, or *")
    return name


def _list(name: str) -> str:
    if name not in (*LIST_OPERATIONS, ANY_OPERATION):
        raise ValueError(f"must be {', '.join(LIST_OPERATIONS)} or *, because this fault is one of lists")
    return name


def _form(name: str) -> str:
    if name not in GARBAGE_FORMS:
        raise ValueError(f"must be one of {', '.join(GARBAGE_FORMS)}")
    return name


def _headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ValueError("must be names and values as HTTP allows them, in printable ASCII")
        if name.lower() in _FRAMING:
            raise ValueError(f"must leave {name} to the server; truncate, garbage and drop break the framing")
    return headers


def _writable(body: object) -> object:
    try:
        dumps(body)
    except RecursionError as exc:
        raise ValueError("is nested too deeply") from exc
    return body


OperationName = Annotated[str, Field(max_length=60), AfterValidator(_operation)]
Count = Annotated[int, Field(ge=1, le=_MAX_COUNT)]
Execution = Literal["before_execution", "after_execution"]


class FaultDefinition(BaseModel):
    """Members common to all faults: the requests that the fault hits."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    answers: ClassVar[bool] = True
    """Whether the fault produces the response by itself, so that only one such fault hits a request."""

    kind: str
    operation: OperationName
    times: Count | None = 1
    skip: Annotated[int, Field(ge=0, le=_MAX_COUNT)] = 0
    containing: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class DelayFault(FaultDefinition):
    """The response is delayed."""

    answers = False
    kind: Literal["delay"]
    seconds: Annotated[ExactNumber, Field(gt=0, le=3600)]
    when: Execution = "before_execution"


class StatusFault(FaultDefinition):
    """Another status. Without a body: the error body of the provider, with the standard phrase of the status."""

    kind: Literal["status"]
    status: Annotated[int, Field(ge=200, le=599)]
    body: Annotated[object, AfterValidator(_writable)] = None
    headers: Annotated[dict[str, str], Field(max_length=20), AfterValidator(_headers)] = {}
    when: Execution = "before_execution"


class DropFault(FaultDefinition):
    """The connection is closed without a complete response."""

    kind: Literal["drop"]
    when: Literal["before_read", "after_read", "after_execution", "mid_answer"]
    reset: bool | None = None


class TruncateFault(FaultDefinition):
    """The body of the response is truncated."""

    kind: Literal["truncate"]
    at: Annotated[int, Field(ge=0, le=_MAX_COUNT)]
    content_length: Literal["full", "cut"] = "full"


class GarbageFault(FaultDefinition):
    """The response is malformed."""

    kind: Literal["garbage"]
    form: Annotated[str, Field(max_length=60), AfterValidator(_form)]
    when: Execution = "after_execution"


class DuplicateRecordFault(FaultDefinition):
    """One record of a page of transactions is repeated."""

    answers = False
    kind: Literal["duplicate_record"]
    operation: Annotated[OperationName, AfterValidator(_list)]
    position: Annotated[int, Field(ge=0, le=499)] = 0


class HideRecordFault(FaultDefinition):
    """The list of transactions lags behind the books."""

    answers = False
    kind: Literal["hide_record_for"]
    operation: Annotated[OperationName, AfterValidator(_list)]
    times: Count | None = None
    seconds: Annotated[ExactNumber, Field(gt=0, le=31_536_000)]


class RateLimitFault(FaultDefinition):
    """Requests beyond a rate are rejected."""

    kind: Literal["rate_limit"]
    times: Count | None = None
    per_second: Annotated[ExactNumber, Field(ge=Decimal("0.001"), le=100_000)]


FAULT_TYPES: Mapping[str, type[FaultDefinition]] = {
    "delay": DelayFault,
    "status": StatusFault,
    "drop": DropFault,
    "truncate": TruncateFault,
    "garbage": GarbageFault,
    "duplicate_record": DuplicateRecordFault,
    "hide_record_for": HideRecordFault,
    "rate_limit": RateLimitFault,
}


class FaultMembers(BaseModel):
    """The member that selects the kind of fault."""

    model_config = ConfigDict(strict=True, extra="allow")

    kind: Literal[
        "delay",
        "status",
        "drop",
        "truncate",
        "garbage",
        "duplicate_record",
        "hide_record_for",
        "rate_limit",
    ]


def parse_fault(members: FaultMembers) -> FaultDefinition:
    """The fault with these members; RefusedError 400 whose message names the first invalid one."""
    return validated(FAULT_TYPES[members.kind], {**(members.model_extra or {}), "kind": members.kind})
