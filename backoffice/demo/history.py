"""About forty withdrawals for the demo, in every state, each brought there by the product's own services.

What counts as sent was really sent, to the simulated service; what counts as lost was really lost, by winning the claim
and never making the request, as a worker does that is killed at that moment.
"""

import random
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.demo.cast import CAST
from backoffice.ledger import selectors as ledger
from backoffice.operations import services
from backoffice.operations.kinds import KINDS, content_of
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.withdrawal import WithdrawalPayload
from backoffice.operations.models import Attempt, Operation, Release
from backoffice.operations.services.recording import LOOK_AFTER
from payments_gateway.reference import BANKS

_MEMOS = ("Invoice 2026-{}", "Diesel, week {}", "Rent, store {}", "Cold chain {}", "Payroll batch {}", "")
_REASONS = (
    "The invoice says 25,000, not 250,000.",
    "This supplier was paid yesterday; ask Ngozi.",
    "The account is not the one in the contract.",
)
_BANK_CODES = ("044", "058", "057", "033", "011", "214")

_A_WHILE = timedelta(hours=2)


@dataclass
class History:
    """Makes operations, always the same ones."""

    people: dict[str, User]
    pace: random.Random  # of people, by itself, so that it changes nothing else
    random: random.Random
    token: SecretStr

    def prepare(self, *, ending: str = "", amount: str = "", currency: str = "NGN") -> Operation:
        """A pending withdrawal to an account whose number ends as told; the simulation acts on some endings."""
        return self.propose("withdrawal", self._withdrawal(ending, amount, currency))

    def propose(self, kind: str, payload: Payload, *, maker: str = "") -> Operation:
        """A pending operation of any kind, prepared by one of the two preparers where nobody is named.

        A little while ago: whoever countersigns it does so now, and people take their time.
        """
        then = clock.now() - timedelta(seconds=self.pace.randrange(20, 200))
        with clock.running_by(lambda: then):
            return services.prepare_operation(
                uuid.UUID(int=self.random.getrandbits(128), version=4),
                actor=self.people[maker or self.random.choice(["Tunde", "Ngozi"])],
                kind=kind,
                payload=payload,
            )

    def approve(self, operation: Operation, approver: str = "") -> Operation:
        """One countersignature more."""
        kind, payload = content_of(operation)
        asked = kind.confirmation(payload)
        return services.approve_operation(
            operation.pk,
            actor=self.people[approver or self.random.choice(["Amara", "Chidi"])],
            digest=operation.digest,
            second_factor_at=timezone.now(),
            confirmation=asked.expected if asked else "",
        )

    def release(self, operation: Operation) -> Operation:
        """The word to send an approved operation, with a token where its kind needs one."""
        approved = self.approve(operation)
        return services.release_operation(
            approved.pk,
            actor=self.people["Amara"],
            digest=approved.digest,
            second_factor_at=timezone.now(),
            token=self.token if KINDS[approved.kind].needs_token else None,
        )

    def send(self, operation: Operation) -> Operation:
        """Really sent, and looked up in the service's list once."""
        services.send_operation(self.release(operation).pk)
        return services.confirm_operation(operation.pk)

    def succeed(self) -> None:
        self.send(self.prepare(currency=self.random.choice(["NGN", "NGN", "NGN", "USD"])))

    def fail(self) -> None:
        self.send(self.prepare(ending="99"))

    def stay_in_processing(self) -> None:
        self.send(self.prepare(ending="88"))

    def reject(self) -> None:
        operation = self.prepare()
        services.reject_operation(
            operation.pk,
            actor=self.people["Chidi"],
            digest=operation.digest,
            second_factor_at=timezone.now(),
            reason=self.random.choice(_REASONS),
        )

    def expire(self) -> None:
        operation = self.prepare()
        Operation.objects.filter(pk=operation.pk).update(expires_at=timezone.now())
        services.expire_operation(operation.pk)

    def cancel(self) -> None:
        operation = self.prepare()
        services.cancel_operation(operation.pk, actor=operation.maker)

    def wait_for_one(self) -> None:
        self.prepare()

    def wait_for_two(self) -> None:
        self.approve(self.prepare(amount="12500000.00"), "Chidi")

    def wait_for_release(self) -> None:
        self.approve(self.prepare())

    def be_lost_while_sending(self, operation: Operation) -> Attempt:
        """As if the worker was killed between the claim and the first byte."""
        released = self.release(operation)
        seen = services.look_before(Release.objects.get(pk=released.pk))
        claim = services.claim_operation(released.pk, seen)
        if claim is None:
            raise RuntimeError("Nobody else sends while the history is made")
        later = timezone.now() + timedelta(days=1)
        Attempt.objects.filter(pk=claim.attempt_id).update(deadline_at=later)
        return Attempt.objects.get(pk=claim.attempt_id)

    def be_unknown(self, operation: Operation) -> Attempt:
        """As if that was two hours ago, when people may say by now that it did not happen."""
        attempt = self.be_lost_while_sending(operation)
        services.record_silence(attempt.pk, now=attempt.deadline_at + timedelta(hours=1))
        started, seen_at = attempt.started_at, attempt.watermark_service_time
        Attempt.objects.filter(pk=attempt.pk).update(
            started_at=started - _A_WHILE, watermark_service_time=seen_at and seen_at - _A_WHILE
        )
        services.confirm_operation(attempt.operation_id)
        return attempt

    def need_review(self, operation: Operation) -> None:
        """As if that was a day ago."""
        attempt = self.be_unknown(operation)
        Attempt.objects.filter(pk=attempt.pk).update(started_at=attempt.started_at - LOOK_AFTER[-1])
        services.confirm_operation(attempt.operation_id)

    def account(self, ending: str = "") -> dict[str, str]:
        """The bank account of somebody, with the holder's name as the bank gives it."""
        bank_code = self.random.choice(_BANK_CODES)
        number = f"{self.random.randrange(10**7, 10**8):08d}"
        number = f"{number}{ending or self.random.choice(['12', '34', '57', '61', '83'])}"
        holder = ledger.account_holder(number, bank_code).account_name
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
            memo=self.random.choice(_MEMOS).format(self.random.randrange(10, 400)),
            **account,
        )

    def _amount(self, currency: str) -> str:
        thousands = self.random.randrange(25, 1800)
        return (
            f"{thousands * 250}.00"
            if currency == "NGN"
            else f"{thousands}.{self.random.randrange(0, 99):02d}"
        )


def new_history(token: SecretStr) -> History:
    """A history to be made, with a token that the service accepts repeatedly. The people of the demo exist."""
    people = {user.first_name: user for user in User.objects.filter(email__in=[one.email for one in CAST])}
    pace, chance = (random.Random(2026) for _ in range(2))  # noqa: S311 - the same history each time, nothing secret
    return History(people, pace, chance, token)


def make_withdrawals(history: History) -> None:
    """Make the withdrawals. Call once, on an empty database."""
    for make in _plan(history):
        make()


def _plan(history: History) -> list[Callable[[], object]]:
    closed = (
        [history.succeed] * 15 + [history.fail] * 2 + [history.reject, history.expire, history.cancel] * 3
    )
    history.random.shuffle(closed)
    waiting = [history.wait_for_release] * 3 + [history.wait_for_two] + [history.wait_for_one] * 6
    return [*closed, *[history.stay_in_processing] * 2, *waiting]
