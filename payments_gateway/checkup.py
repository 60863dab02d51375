"""Ask a service everything that may be asked without changing anything, and say what came back."""

import enum
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from payments_gateway._answers import Reply
from payments_gateway._transport import Transport
from payments_gateway.client import PaymentsGateway
from payments_gateway.config import GatewayConfig
from payments_gateway.conformity import remarks_on
from payments_gateway.dialect import Dialect
from payments_gateway.door import Door
from payments_gateway.errors import CredentialsError, GatewayError, NotSentError, RejectedError
from payments_gateway.extras import EXTRA_READS
from payments_gateway.operations import OPERATIONS, Effect, Operation

T = TypeVar("T")

_SAMPLE = 20  # transaction records, enough to see their shape


class Outcome(enum.Enum):
    """What became of one question. UNUSABLE is an answer in JSON out of which the client cannot read what it asked."""

    ANSWERED = "answered"
    UNUSABLE = "not usable"
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
    transport = _Watched(replace(config, tries=1))
    out_of_reach: set[str] = set()
    with PaymentsGateway(config, transport=transport) as client:
        for operation in reads(config.dialect):
            base = base_of(operation, config)
            if base in out_of_reach:
                yield Finding(operation, Outcome.NOT_ASKED, remarks=("the address is out of reach",))
                continue
            finding = _asked(client, transport, config.dialect, operation, account)
            if finding.outcome is Outcome.UNREACHABLE:
                out_of_reach.add(base)
            yield finding


def base_of(operation: Operation, config: GatewayConfig) -> str:
    """The base address that the operation is under."""
    return config.base_url_v4 if operation.door_in(config.dialect) is Door.V4 else config.base_url


class _Watched(Transport):
    """Keeps the answers that the client was given to read, whether or not it could."""

    def __init__(self, config: GatewayConfig) -> None:
        super().__init__(config)
        self.replies: list[Reply] = []

    def read(self, method: str, path: str, *, into: Callable[[Reply], T], **particulars: Any) -> T:
        """Read as ever, and keep the answer."""

        def keep(reply: Reply) -> T:
            self.replies.append(reply)
            return into(reply)

        return super().read(method, path, into=keep, **particulars)


def _asked(
    client: PaymentsGateway,
    transport: _Watched,
    dialect: Dialect,
    operation: Operation,
    account: Account | None,
) -> Finding:
    """Ask by the client's own method, so that an answer counts only if the back office could use it."""
    if operation.door is Door.V2_OPEN and account is None:
        return Finding(operation, Outcome.NOT_ASKED, remarks=("needs an account number and a bank code",))
    resource, method = operation.name.split(".")
    started, problem = time.monotonic(), ""
    try:
        getattr(getattr(client, resource), method)(**_arguments(operation, account))
    except GatewayError as exc:
        problem = exc.message
        if not transport.replies:
            return _failed(operation, exc, timedelta(seconds=time.monotonic() - started))
    elapsed = timedelta(seconds=time.monotonic() - started)
    return _answered(operation, dialect, transport.replies.pop(), problem, elapsed)


def _answered(
    operation: Operation, dialect: Dialect, reply: Reply, problem: str, elapsed: timedelta
) -> Finding:
    outcome = Outcome.UNUSABLE if problem else Outcome.ANSWERED
    remarks = (*remarks_on(operation.name, reply.members), *_unknown_statuses(operation, dialect, reply))
    remarks = (problem, *remarks) if problem else remarks
    return Finding(operation, outcome, reply.status, elapsed, remarks, _skew(reply))


def _arguments(operation: Operation, account: Account | None) -> Mapping[str, object]:
    if operation.name.startswith("transactions."):
        return {"per_page": _SAMPLE}
    if operation.door is Door.V2_OPEN and account is not None:
        return {"account_number": account.account_number, "bank_code": account.bank_code}
    return {}


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
