"""Compares our operations with the simulated provider's own ledger: every debit is known, and none is double."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.states import Outcome, Status
from tests.sandbox_process import SandboxProcess

# The recipient: fields of the ledger's record, and the same in the approved payload.
_DESTINATION = {
    "withdrawal": {"accountNumber": "account_number", "bankCode": "bank_code"},
    "transfer": {"receiverUsername": "receiver_username"},
    "wallet_transfer": {"network": "network", "address": "address"},
    "conversion": {},
}
_PAYMENT = "payment"  # debits no balance; the provider has it under our reference
_CURRENCY = {"conversion": "from_currency"}  # where the payload uses another name
_FAILED = "failed"  # the ledger's word: debited and refunded
_WITHOUT_EFFECT = {Outcome.NOT_SENT, Outcome.OTP_REJECTED, Outcome.REJECTED}

Content = tuple[object, ...]
Debit = Mapping[str, str]


@dataclass(frozen=True)
class _SentOperation:
    """An operation that moves money, with its attempts."""

    operation: Operation
    attempts: list[Attempt]

    @property
    def named(self) -> set[str]:
        return {
            attempt.provider_transaction_id for attempt in self.attempts if attempt.provider_transaction_id
        }

    @property
    def content(self) -> Content:
        kind, payload = self.operation.kind, self.operation.payload
        destination = [payload[member] for member in _DESTINATION[kind].values()]
        return (kind, payload[_CURRENCY.get(kind, "currency")], Decimal(payload["amount"]), *destination)

    def may_have_caused(self, debit: Debit) -> bool:
        """Whether an unclaimed debit can be this operation's: it is open, or closed as failed and refunded."""
        for attempt in self.attempts:
            if attempt.outcome == Outcome.OPEN:
                return True
            if attempt.outcome == Outcome.FAILED and debit["status"] == _FAILED:
                return True
        return False

    def __str__(self) -> str:
        return f"{self.operation.reference} ({self.operation.status})"


def assert_accounted_for(sandbox: SandboxProcess, *, by_others: Collection[str] = ()) -> None:
    """Every operation in the database agrees with the provider's ledger, and every debit there belongs to one
    operation.

    `by_others` are the ids of transactions that others caused, through another channel.
    """
    found = disagreements(sandbox.ledger(), by_others=by_others)
    assert not found, "The ledger of the service disagrees:\n" + "\n".join(found)


def disagreements(ledger: Any, *, by_others: Collection[str] = ()) -> list[str]:
    """The differences, one sentence each."""
    debits = {debit["transactionId"]: debit for debit in ledger["orders"]}
    ours = {pk: debit for pk, debit in debits.items() if pk not in by_others}
    sent = [_SentOperation(operation, list(operation.attempts.all())) for operation in _money()]
    return [
        *(f"The service's books differ: {difference}" for difference in ledger["differences"]),
        *(problem for each in sent for problem in _problems(each, debits)),
        *(f"{each} took the debit of somebody else" for each in sent if each.named & set(by_others)),
        *_without_owner(sent, ours),
        *_payments(ledger["payments"]),
    ]


def _money() -> list[Operation]:
    return list(Operation.objects.filter(kind__in=_DESTINATION).prefetch_related("attempts"))


def _problems(sent: _SentOperation, debits: Mapping[str, Debit]) -> Iterator[str]:
    """The differences between one operation and the debit it names."""
    if len(sent.named) > 1:
        yield f"{sent} names several transactions: {sorted(sent.named)}"
    if sent.operation.status == Status.SUCCEEDED and not sent.named:
        yield f"{sent} names no transaction"
    for transaction_id in sent.named:
        debit = debits.get(transaction_id)
        if debit is None:
            yield f"{sent} names {transaction_id}, which is no debit since the seed"
        else:
            yield from _unlike(sent, debit)


def _unlike(sent: _SentOperation, debit: Debit) -> Iterator[str]:
    if _content(debit) != sent.content:
        yield f"{sent} was approved as {sent.content}, and the service did {_content(debit)}"
    status = sent.operation.status
    if status == Status.SUCCEEDED and debit["status"] == _FAILED:
        yield f"{sent} succeeded here, and failed at the service"
    if status not in {
        Status.SUCCEEDED,
        Status.PROCESSING,
        Status.UNKNOWN,
        Status.REVIEW,
        Status.SENDING,
    } and (debit["status"] != _FAILED):
        yield f"{sent} hides the debit {debit['transactionId']}"


def _without_owner(sent: list[_SentOperation], debits: Mapping[str, Debit]) -> Iterator[str]:
    """Unclaimed debits must each match an operation whose outcome is open, or that was refunded."""
    named = {transaction_id for each in sent for transaction_id in each.named}
    waiting: dict[Content, list[_SentOperation]] = defaultdict(list)
    for each in sent:
        if not each.named:
            waiting[each.content].append(each)
    # Refunded debits are assigned last, since they have more possible owners.
    for debit in sorted(debits.values(), key=lambda debit: debit["status"] == _FAILED):
        if debit["transactionId"] in named:
            continue
        owners = [each for each in waiting[_content(debit)] if each.may_have_caused(debit)]
        if owners:
            waiting[_content(debit)].remove(owners[0])
        else:
            yield f"The debit {debit['transactionId']} ({_content(debit)}, {debit['status']}) belongs to no operation"


def _payments(payments: list[Mapping[str, str]]) -> Iterator[str]:
    """Off-ramp payments: the provider has each at most once, under the approved reference."""
    there: dict[str, int] = defaultdict(int)
    for payment in payments:
        there[payment["reference"]] += 1
    for operation in Operation.objects.filter(kind=_PAYMENT).prefetch_related("attempts"):
        number = there.pop(operation.payload["reference"], 0)
        attempts = operation.attempts.all()
        may_be_there = any(attempt.outcome not in _WITHOUT_EFFECT for attempt in attempts)
        if number > int(may_be_there):
            yield f"{operation.reference} ({operation.status}) made {number} payments at the service"
        if operation.status == Status.SUCCEEDED and not number:
            yield f"{operation.reference} succeeded here, and the service has no such payment"
    yield from (f"The payment {reference} belongs to no operation" for reference in there)


def _content(debit: Debit) -> Content:
    """The same form as `_SentOperation.content`."""
    destination = [debit[member] for member in _DESTINATION[debit["kind"]]]
    return (debit["kind"], debit["currency"], Decimal(debit["amount"]), *destination)
