"""What faults do to the list of transactions: it lags, or a record comes twice."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import QuerySet

from payments_gateway.money import dumps
from payments_gateway.sandbox import clock
from payments_gateway.sandbox.faults.answers import Answer
from payments_gateway.sandbox.models import Transaction

Lag = tuple[datetime, timedelta]
_LAGS: ContextVar[Sequence[Lag]] = ContextVar("lags", default=())


def visible(records: QuerySet[Transaction]) -> QuerySet[Transaction]:
    """The records that the list shows by now: all, unless a fault `hide_record_for` hits this request."""
    for since, behind in _LAGS.get():
        records = records.exclude(created_at__gte=since, created_at__gt=clock.now() - behind)
    return records


@contextmanager
def lagging(lags: Sequence[Lag]) -> Iterator[None]:
    """Let the list lag while the block runs in this thread."""
    token = _LAGS.set(lags)
    try:
        yield
    finally:
        _LAGS.reset(token)


def with_record_twice(answer: Answer, position: int) -> Answer:
    """The page with the record at this position, from 0, given twice; a refusal or a shorter page stays as it is."""
    if not answer.status.startswith("200 "):
        return answer
    document = json.loads(answer.body, parse_float=Decimal)
    page = document["data"].get("txn", document["data"])
    page["data"][position:position] = page["data"][position : position + 1]
    return with_body(answer, dumps(document).encode())


def with_body(answer: Answer, body: bytes) -> Answer:
    """The same answer around another body, with the length that fits."""
    headers = [(name, value) for name, value in answer.headers if name.lower() != "content-length"]
    return replace(answer, headers=[*headers, ("Content-Length", str(len(body)))], body=body)
