"""Ask a service everything that may be asked without changing anything, and say what came back."""

import enum
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

from payments_gateway._answers import Reply
from payments_gateway._transport import Door, Transport
from payments_gateway.config import GatewayConfig
from payments_gateway.conformity import remarks_on
from payments_gateway.dialect import Dialect
from payments_gateway.errors import CredentialsError, GatewayError, NotSentError, RejectedError
from payments_gateway.extras import EXTRA_READS, READERS
from payments_gateway.operations import OPERATIONS, Effect, Operation

_SAMPLE = 20  # transaction records, enough to see their shape


class Outcome(enum.Enum):
    """What became of one question."""

    ANSWERED = "answered"
    REFUSED = "refused"
    FAILED = "failed"
    UNREACHABLE = "unreachable"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one operation showed. `remarks` hold no credential and nothing of an answer's content but words.

    `skew` is how far the service's clock was ahead of ours; whole seconds, because its Date header has no others.
    """

    operation: Operation
    outcome: Outcome
    status: int | None = None
    elapsed: timedelta = timedelta()
    remarks: tuple[str, ...] = ()
    skew: timedelta | None = None
    is_misconfigured: bool = False


@dataclass(frozen=True, slots=True)
class Account:
    """The bank account that POST /bank/resolve is tried with."""

    account_number: str
    bank_code: str


def reads(dialect: Dialect) -> list[Operation]:
    """The operations that change nothing and need no id: the specification's, then the optional ones that are on."""
    optional = [EXTRA_READS[name] for name in EXTRA_READS if name in dialect.capabilities]
    harmless = [operation for operation in OPERATIONS if operation.effect is Effect.READS]
    return harmless + [operation for operation in optional if "{" not in operation.path]


def examine(config: GatewayConfig, account: Account | None = None) -> Iterator[Finding]:
    """Yield a finding for each read, as it comes. Each is asked once, and none at an address that is out of reach.

    Without an account, POST /bank/resolve is not asked. Never raises GatewayError.
    """
    transport = Transport(replace(config, tries=1))
    out_of_reach: set[str] = set()
    try:
        for operation in reads(config.dialect):
            base = base_of(operation, config)
            if base in out_of_reach:
                yield Finding(operation, Outcome.NOT_ASKED, remarks=("the address is out of reach",))
                continue
            finding = _asked(transport, config.dialect, operation, account)
            if finding.outcome is Outcome.UNREACHABLE:
                out_of_reach.add(base)
            yield finding
    finally:
        transport.close()


def base_of(operation: Operation, config: GatewayConfig) -> str:
    """The base address that the operation is under."""
    return config.base_url_v4 if operation.door_in(config.dialect) is Door.V4 else config.base_url


def _asked(transport: Transport, dialect: Dialect, operation: Operation, account: Account | None) -> Finding:
    if operation.door is Door.V2_OPEN and account is None:
        return Finding(operation, Outcome.NOT_ASKED, remarks=("needs an account number and a bank code",))
    started = time.monotonic()
    try:
        reply = transport.read(
            operation.method,
            operation.path_in(dialect),
            query=_query(operation, dialect),
            body=_body(operation, account),
            door=operation.door_in(dialect),
            into=partial(_whole, READERS.get(operation.name)),
        )
    except GatewayError as exc:
        return _failed(operation, exc, timedelta(seconds=time.monotonic() - started))
    return Finding(
        operation,
        Outcome.ANSWERED,
        reply.status,
        timedelta(seconds=time.monotonic() - started),
        (*remarks_on(operation.name, reply.members), *_unknown_statuses(operation, dialect, reply)),
        _skew(reply),
    )


def _whole(reader: Callable[[Reply], object] | None, reply: Reply) -> Reply:
    """The answer itself; that of an optional read, once the client's own reader could read it."""
    if reader is not None:
        reader(reply)
    return reply


def _query(operation: Operation, dialect: Dialect) -> Mapping[str, object] | None:
    if not operation.name.startswith("transactions."):
        return None
    return {
        dialect.transaction_page_query: dialect.first_page,
        dialect.transaction_per_page_query: _SAMPLE,
    }


def _body(operation: Operation, account: Account | None) -> Mapping[str, object] | None:
    if operation.door is not Door.V2_OPEN or account is None:
        return None
    return {"accountNumber": account.account_number, "bankCode": account.bank_code}


def _failed(operation: Operation, exc: GatewayError, elapsed: timedelta) -> Finding:
    """Sort an error: whose address or credentials are wrong is a fault of the configuration."""
    outcome = Outcome.REFUSED if isinstance(exc, RejectedError) else Outcome.FAILED
    if isinstance(exc, NotSentError) or isinstance(exc.__cause__, NotSentError):
        outcome = Outcome.UNREACHABLE
    is_ours = outcome is Outcome.UNREACHABLE or isinstance(exc, CredentialsError) or exc.status in {401, 403}
    return Finding(operation, outcome, exc.status, elapsed, (exc.message,), is_misconfigured=is_ours)


def _unknown_statuses(operation: Operation, dialect: Dialect, reply: Reply) -> list[str]:
    """Statuses of transaction records that the dialect has no word for. They are kept and shown as they are."""
    if not operation.name.startswith("transactions."):
        return []
    data = reply.members.get("data")
    page = data.get("txn", data) if isinstance(data, dict) else None
    records = page.get("data") if isinstance(page, dict) else None
    found = {
        str(record.get("status", "")).strip()
        for record in (records if isinstance(records, list) else [])
        if isinstance(record, dict)
    }
    unknown = sorted(status for status in found if status and status.lower() not in dialect.statuses)
    return [f"status {status[:40]!r} is not in the dialect" for status in unknown]


def _skew(reply: Reply) -> timedelta | None:
    if reply.date is None:
        return None
    return timedelta(seconds=round((reply.date - datetime.now(UTC)).total_seconds()))
