"""The descriptions of faults: which there are, their parameters, and what is refused."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from payments_gateway.money import dumps
from payments_gateway.operations import OPERATIONS
from payments_gateway.sandbox.faults.garbage import FORMS
from payments_gateway.sandbox.wire.bodies import validated
from payments_gateway.sandbox.wire.fields import Number

EVERYTHING = "*"
LISTS = ("transactions.page", "transactions.summary")
_NAMES = frozenset(operation.name for operation in OPERATIONS)
_MOST = 1_000_000
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]{0,4000}", re.ASCII)
_FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})


def _operation(name: str) -> str:
    if name not in _NAMES and name != EVERYTHING:
        raise ValueError(f"must be the name of an operation, such as {OPERATIONS[0].name}, or *")
    return name


def _list(name: str) -> str:
    if name not in (*LISTS, EVERYTHING):
        raise ValueError(f"must be {', '.join(LISTS)} or *, because this fault is one of lists")
    return name


def _form(name: str) -> str:
    if name not in FORMS:
        raise ValueError(f"must be one of {', '.join(FORMS)}")
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


Operation = Annotated[str, Field(max_length=60), AfterValidator(_operation)]
Count = Annotated[int, Field(ge=1, le=_MOST)]
Execution = Literal["before_execution", "after_execution"]


class Order(BaseModel):
    """What every fault has: the requests that it hits."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    answers: ClassVar[bool] = True
    """Whether it gives the answer to a request alone."""

    kind: str
    operation: Operation
    times: Count | None = 1
    skip: Annotated[int, Field(ge=0, le=_MOST)] = 0
    containing: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class Delay(Order):
    """The answer comes later."""

    answers = False
    kind: Literal["delay"]
    seconds: Annotated[Number, Field(gt=0, le=3600)]
    when: Execution = "before_execution"


class Status(Order):
    """Another status. Without a body: the error body of the service, with the usual phrase of the status."""

    kind: Literal["status"]
    status: Annotated[int, Field(ge=200, le=599)]
    body: Annotated[object, AfterValidator(_writable)] = None
    headers: Annotated[dict[str, str], Field(max_length=20), AfterValidator(_headers)] = {}
    when: Execution = "before_execution"


class Drop(Order):
    """The connection is cut."""

    kind: Literal["drop"]
    when: Literal["before_read", "after_read", "after_execution", "mid_answer"]
    reset: bool | None = None


class Truncate(Order):
    """The body of the answer is cut."""

    kind: Literal["truncate"]
    at: Annotated[int, Field(ge=0, le=_MOST)]
    content_length: Literal["full", "cut"] = "full"


class Garbage(Order):
    """The answer is nonsense."""

    kind: Literal["garbage"]
    form: Annotated[str, Field(max_length=60), AfterValidator(_form)]
    when: Execution = "after_execution"


class DuplicateRecord(Order):
    """One record of a page of transactions comes twice."""

    answers = False
    kind: Literal["duplicate_record"]
    operation: Annotated[Operation, AfterValidator(_list)]
    position: Annotated[int, Field(ge=0, le=499)] = 0


class HideRecordFor(Order):
    """The list of transactions lags behind the books."""

    answers = False
    kind: Literal["hide_record_for"]
    operation: Annotated[Operation, AfterValidator(_list)]
    times: Count | None = None
    seconds: Annotated[Number, Field(gt=0, le=31_536_000)]


class RateLimit(Order):
    """More requests than a rate are refused."""

    kind: Literal["rate_limit"]
    times: Count | None = None
    per_second: Annotated[Number, Field(ge=Decimal("0.001"), le=100_000)]


ORDERS: Mapping[str, type[Order]] = {
    "delay": Delay,
    "status": Status,
    "drop": Drop,
    "truncate": Truncate,
    "garbage": Garbage,
    "duplicate_record": DuplicateRecord,
    "hide_record_for": HideRecordFor,
    "rate_limit": RateLimit,
}


class Kind(BaseModel):
    """The member that decides what the others are."""

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


def order_of(members: Kind) -> Order:
    """The fault that these members describe; RefusedError 400 whose message names the first wrong one."""
    return validated(ORDERS[members.kind], {**(members.model_extra or {}), "kind": members.kind})
