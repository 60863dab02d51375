"""Sample data of the demo: operations in every state, and balance snapshots of the past month.

Each operation is brought to its state by the product's own services: withdrawals, conversions, transfers, wallet
transfers, payments and changes of the callback URL. What is shown as sent was really sent to the simulated provider;
an operation with an unknown outcome was claimed and never requested, as when a worker is killed at that moment.
"""

import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.db.models import F
from django.urls import reverse
from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.demo.people import DEMO_PEOPLE
from backoffice.ledger import accounts as ledger
from backoffice.ledger import callback_url, rates
from backoffice.ledger.balances import LONG_TREND_PERIOD, SNAPSHOT_INTERVAL, TREND_PERIOD, snapshot_slot
from backoffice.ledger.mirror.rows import direction
from backoffice.ledger.models import Balance, BalanceSnapshot
from backoffice.ledger.provider_list import recent_transactions
from backoffice.operations.delivery import record, release, send
from backoffice.operations.delivery.record import CHECK_AFTER
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.callback_url import CallbackUrlPayload
from backoffice.operations.kinds.conversion import ConversionPayload
from backoffice.operations.kinds.payment import PaymentPayload, business_id
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.kinds.transfer import TransferPayload
from backoffice.operations.kinds.wallet_transfer import WalletTransferPayload
from backoffice.operations.kinds.withdrawal import WithdrawalPayload
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.otp import UsedOtp
from backoffice.operations.models.reconciliation import ReconciliationState
from backoffice.operations.outcome import confirmation
from backoffice.operations.workflow import approvals, prepare
from payments_gateway import BANKS, TransactionRecord

_SAMPLE_MEMOS = (
    "Invoice 2026-{}",
    "Diesel, week {}",
    "Rent, store {}",
    "Cold chain {}",
    "Payroll batch {}",
    "",
)
_REASONS = (
    "The invoice says 25,000, not 250,000.",
    "This supplier was paid yesterday. Please check with Ngozi.",
    "The account is not the one in the contract.",
)
_BANK_CODES = ("044", "058", "057", "033", "011", "214")

_UNKNOWN_FOR = timedelta(hours=2)  # after which people may resolve it as not executed
_UNKNOWN_FOR_LONG = CHECK_AFTER[-1] + _UNKNOWN_FOR  # after which nothing is checked any more


@dataclass
class SampleOperations:
    """Makes sample operations, deterministically."""

    people: dict[str, User]
    # Approval times; a generator of its own, so that other random choices do not depend on it.
    timing: random.Random
    random: random.Random
    otp: Callable[
        [], SecretStr
    ]  # asked for at each release, because a code is accepted for a short time only

    def prepare(self, *, ending: str = "", amount: str = "", currency: str = "NGN") -> Operation:
        """A pending withdrawal to an account number with this ending; the sandbox reacts to some endings."""
        return self.prepare_kind("withdrawal", self._withdrawal(ending, amount, currency))

    def prepare_kind(self, kind: str, payload: Payload, *, preparer: str = "") -> Operation:
        """A pending operation of any kind, by this preparer or one of the two.

        Its creation is dated back a little, because its approval happens now and realistic approval times are
        needed.
        """
        then = clock.now() - timedelta(seconds=self.timing.randrange(20, 200))
        with clock.use_clock(lambda: then):
            return prepare.prepare_operation(
                uuid.UUID(int=self.random.getrandbits(128), version=4),
                actor=self.people[preparer or self.random.choice(["Tunde", "Ngozi"])],
                kind=kind,
                payload=payload,
            )

    def approve(self, operation: Operation, approver: str = "") -> Operation:
        """Add one approval."""
        kind, payload = read_content(operation)
        confirmation = kind.confirmation(payload)
        return approvals.approve_operation(
            operation.pk,
            actor=self.people[approver or self.random.choice(["Amara", "Chidi"])],
            digest=operation.digest,
            second_factor_at=clock.now(),
            confirmation=approvals.ApproverConfirmation(confirmation.expected if confirmation else ""),
        )

    def release(self, operation: Operation) -> Operation:
        """Release an approved operation, with a one-time code where its kind needs one."""
        approved = self.approve(operation)
        UsedOtp.objects.all().delete()  # the simulated provider takes its code again while it is valid
        return release.release_operation(
            approved.pk,
            actor=self.people["Amara"],
            digest=approved.digest,
            second_factor_at=clock.now(),
            otp=self.otp() if KINDS[approved.kind].asks_for_otp else None,
        )

    def send(self, operation: Operation) -> Operation:
        """Send it, and check its status once."""
        send.send_operation(self.release(operation).pk)
        return confirmation.confirm_operation(operation.pk)

    def make_succeeded(self) -> None:
        self.send(self.prepare(currency=self.random.choice(["NGN", "NGN", "NGN", "USD"])))

    def make_failed(self) -> None:
        self.send(self.prepare(ending="99"))

    def make_processing(self) -> None:
        self.send(self.prepare(ending="88"))

    def make_rejected(self) -> None:
        operation = self.prepare()
        approvals.reject_operation(
            operation.pk,
            actor=self.people["Chidi"],
            digest=operation.digest,
            second_factor_at=timezone.now(),
            reason=self.random.choice(_REASONS),
        )

    def make_expired(self) -> None:
        operation = self.prepare()
        operation.expires_at = timezone.now()
        operation.make_seal()
        operation.save(update_fields=["expires_at", "seal"])
        approvals.expire_operation(operation.pk)

    def make_cancelled(self) -> None:
        operation = self.prepare()
        approvals.cancel_operation(operation.pk, actor=operation.preparer)

    def make_pending(self) -> None:
        self.prepare()

    def make_half_approved(self) -> None:
        self.approve(self.prepare(amount="12500000.00"), "Chidi")

    def make_approved(self) -> None:
        self.approve(self.prepare())

    def lose_while_sending(self, operation: Operation) -> Attempt:
        """Claim an attempt without a response, as if the worker was killed during the request."""
        released = self.release(operation)
        seen = send.preflight_read(Release.objects.get(pk=released.pk))
        claim = send.claim_operation(released.pk, seen)
        if claim is None:
            raise RuntimeError("Nobody else sends while the history is made")
        later = clock.now() + timedelta(hours=1)
        Attempt.objects.filter(pk=claim.attempt.pk).update(begun_at=F("started_at"), deadline_at=later)
        return Attempt.objects.get(pk=claim.attempt.pk)

    def make_unknown(self, prepare: Callable[[], Operation], ago: timedelta) -> None:
        """An operation that was sent this long ago without a response, and checked since."""
        then = clock.now() - ago
        with clock.use_clock(lambda: then):
            attempt = self.lose_while_sending(prepare())
        recorded_at = attempt.deadline_at + timedelta(minutes=1)
        with clock.use_clock(lambda: recorded_at):
            record.record_timeout(attempt.pk, now=recorded_at)
        seen_at = attempt.watermark_provider_time
        Attempt.objects.filter(pk=attempt.pk).update(watermark_provider_time=seen_at and seen_at - ago)
        confirmation.confirm_operation(attempt.operation_id)

    def account(self, ending: str = "") -> dict[str, str]:
        """A bank account with this ending, with the account name as the bank reports it."""
        bank_code = self.random.choice(_BANK_CODES)
        number = f"{self.random.randrange(10**7, 10**8):08d}"
        number = f"{number}{ending or self.random.choice(['12', '34', '57', '61', '83'])}"
        holder = ledger.resolve_account_holder(number, bank_code).account_name
        return {
            "bank_code": bank_code,
            "bank": BANKS[bank_code],
            "account_number": number,
            "account_name": holder,
            "typed_name": holder.title(),
            "name_reason": "",
        }

    def _withdrawal(self, ending: str, amount: str, currency: str) -> WithdrawalPayload:
        account = self.account(ending)
        return WithdrawalPayload(
            currency=currency,
            amount=Decimal(amount or self._amount(currency)),
            memo=self.random.choice(_SAMPLE_MEMOS).format(self.random.randrange(10, 400)),
            **account,
        )

    def _amount(self, currency: str) -> str:
        thousands = self.random.randrange(25, 1800)
        return (
            f"{thousands * 250}.00"
            if currency == "NGN"
            else f"{thousands}.{self.random.randrange(0, 99):02d}"
        )


def new_sample_operations(otp: Callable[[], SecretStr]) -> SampleOperations:
    """A generator of sample operations, with one-time codes that the sandbox accepts repeatedly.

    The demo's people must exist.
    """
    people = {
        user.first_name: user for user in User.objects.filter(email__in=[one.email for one in DEMO_PEOPLE])
    }
    timing_rng, choice_rng = (random.Random(2026) for _ in range(2))  # noqa: S311 - the same history each time, nothing secret
    return SampleOperations(people, timing_rng, choice_rng, otp)


def begin_reconciliation() -> None:
    """Compare what the provider lists from now on.

    Otherwise everything since the older of the unknown outcomes would be unrecognised: more than a day of the
    provider's sample history.
    """
    ReconciliationState.objects.update_or_create(pk=1, defaults={"begins_at": clock.now()})


def make_sample_unknown_outcomes(history: SampleOperations) -> None:
    """Lose two responses, of some hours and of more than a day ago.

    Call it before the operations of today are made, so that the audit log is in the order of time.
    """

    def payment() -> Operation:
        return history.prepare_kind("payment", _payment(history, "640.00", "uche.obi@customers.example"))

    history.make_unknown(payment, _UNKNOWN_FOR_LONG)
    history.make_unknown(lambda: history.prepare(currency="USD", amount="1250.00"), _UNKNOWN_FOR)


def make_sample_withdrawals(history: SampleOperations) -> None:
    """Make withdrawals in most states. Call once."""
    for make in _plan(history):
        make()


def _plan(history: SampleOperations) -> list[Callable[[], object]]:
    closed_operations = (
        [history.make_succeeded] * 15
        + [history.make_failed] * 2
        + [history.make_rejected, history.make_expired, history.make_cancelled] * 3
    )
    history.random.shuffle(closed_operations)
    open_operations = [history.make_approved] * 3 + [history.make_half_approved] + [history.make_pending] * 6
    return [*closed_operations, *[history.make_processing] * 2, *open_operations]


TRON_ADDRESS = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
_FOREIGN_CALLBACK_URL = "https://hooks.example.com/countersign/"  # an operation to reject
EVM_ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def make_sample_operations(history: SampleOperations) -> None:
    """Send some operations of each kind that moves money, and two payments, leave a few pending, and lose
    a response a moment ago.
    """
    for kind, payload in _sent_payloads(history):
        history.send(history.prepare_kind(kind, payload))
    for kind, payload in _pending_payloads(history):
        history.prepare_kind(kind, payload)
    foreign_payload = CallbackUrlPayload(
        url=_FOREIGN_CALLBACK_URL, previous=callback_url.fetch_callback_url()
    )
    history.prepare_kind("callback_url", foreign_payload, preparer="Zainab")
    history.lose_while_sending(
        history.prepare_kind("payment", _payment(history, "90.00", "sade.cole@customers.example"))
    )
    # Last, because the web process that receives the webhooks is not running yet.
    own_url = f"{settings.PUBLIC_URL}{reverse('webhooks:receive', args=[settings.WEBHOOK_SECRET])}"
    payload = CallbackUrlPayload(url=own_url, previous=callback_url.fetch_callback_url())
    history.send(history.prepare_kind("callback_url", payload, preparer="Zainab"))


def _sent_payloads(history: SampleOperations) -> Iterator[tuple[str, Payload]]:
    yield "conversion", _conversion("USD", "NGN", "2500.00")
    yield "conversion", _conversion("NGN", "USD", "1200000.00")
    yield "transfer", _transfer("kola.traders", "NGN", "385000.00", "Crates, November")
    yield "transfer", _transfer("lekki.freight", "USD", "740.50", "Container 118")
    yield "transfer", _transfer("nobody.knows", "NGN", "15000.00", "Deposit back")
    yield "wallet_transfer", _crypto("TRC20", TRON_ADDRESS, "420.00")
    yield "payment", _payment(history, "250.00", "ada.obi@customers.example")
    yield "payment", _payment(history, "75.00", "musa.bello@customers.example")


def _pending_payloads(history: SampleOperations) -> Iterator[tuple[str, Payload]]:
    yield "transfer", _transfer("kola.traders", "NGN", "96500.00", "Crates, December")
    yield "wallet_transfer", _crypto("ERC20", EVM_ADDRESS, "310.00")
    yield "payment", _payment(history, "120.00", "ife.ade@customers.example")


def _conversion(from_currency: str, to_currency: str, amount: str) -> ConversionPayload:
    rate = rates.last_rate(from_currency, to_currency)
    return ConversionPayload(
        from_currency=from_currency,
        to_currency=to_currency,
        amount=Decimal(amount),
        known_rate=rate.rate if rate else None,
    )


def _transfer(username: str, currency: str, amount: str, memo: str) -> TransferPayload:
    return TransferPayload(receiver_username=username, currency=currency, amount=Decimal(amount), memo=memo)


def _crypto(network: str, address: str, amount: str) -> WalletTransferPayload:
    return WalletTransferPayload(
        network=network, currency="USDT", amount=Decimal(amount), address=address, wallet_type="", memo=""
    )


def _payment(history: SampleOperations, amount: str, customer: str) -> PaymentPayload:
    return PaymentPayload(
        business_id=business_id(),
        reference=f"CS-{history.random.getrandbits(80):020X}",
        incoming_currency="USDT",
        incoming_amount=Decimal(amount),
        outgoing_currency="NGN",
        outgoing_amount=None,
        customer_email=customer,
        rate_key="",
        payment_type="bank",
        service_username="",
        country="NG",
        **history.account(),
    )


def make_sample_balances(balances: Sequence[Balance]) -> None:
    """Store a snapshot for each quarter of an hour of the last day, and for each hour of the month before.

    Call once, before any snapshot of an earlier day exists.
    """
    began = min((balance.as_of for balance in balances), default=None)
    if began is None:
        return
    records = list(recent_transactions("", back_to=began - LONG_TREND_PERIOD))
    for balance in balances:
        own = [record for record in records if record.currency == balance.currency]
        BalanceSnapshot.objects.bulk_create(_snapshots_before(balance, own), ignore_conflicts=True)


def _snapshots_before(
    balance: Balance, newest_first: Iterable[TransactionRecord]
) -> Iterator[BalanceSnapshot]:
    """Computed backwards: transactions after a moment are subtracted, so that the sums are consistent."""
    then, records = _snapshot_at(balance, balance.as_of), iter(newest_first)
    record = next(records, None)
    for at in _snapshot_times(balance.as_of):
        while record is not None and record.created_at is not None and record.created_at >= at:
            _undo(then, record)
            record = next(records, None)
        then = _snapshot_at(then, at)
        yield then


def _undo(then: BalanceSnapshot, record: TransactionRecord) -> None:
    if record.previous_balance is not None:
        then.amount = record.previous_balance
    total = "total_received" if direction(record) == "in" else "total_sent"
    for name, change in ((total, record.amount), ("transaction_count", 1)):
        reported = getattr(then, name)
        setattr(then, name, None if reported is None else reported - change)


def _snapshot_times(began: datetime) -> Iterator[datetime]:
    """The starts of the quarters of an hour, newest first; beyond a day, full hours only."""
    steps = range(1, LONG_TREND_PERIOD // SNAPSHOT_INTERVAL)
    quarters = (snapshot_slot(began) - SNAPSHOT_INTERVAL * step for step in steps)
    return (at for at in quarters if at >= began - TREND_PERIOD or at.minute == 0)


def _snapshot_at(source: Balance | BalanceSnapshot, at: datetime) -> BalanceSnapshot:
    return BalanceSnapshot(
        currency=source.currency,
        slot=snapshot_slot(at),
        as_of=at,
        amount=source.amount,
        total_received=source.total_received,
        total_sent=source.total_sent,
        transaction_count=source.transaction_count,
    )
