"""The control API and the console page of the simulation, under /_sandbox/. The real service has nothing like it.

It wants no credentials. Members that repeat the service are spelled as on the wire; options as on the command line.

GET  /_sandbox/          a page for people: what this is, the tokens, the balances, the latest withdrawals
GET  /_sandbox/token     {"totp", "secondsLeft", "used", "otp", "secret"}: the present codes
GET  /_sandbox/ledger    what was asked of the service since its seed, and whether the books agree: the oracle of tests
GET  /_sandbox/options   the options now in force
POST /_sandbox/options   change some of them: settle_after (seconds; null: never by itself), token_required,
                         token_reuse (a code may be used again), fail_next (that many next withdrawals will fail),
                         customer_pays_after (seconds until the customer of a new payment pays; null: never by itself)
POST /_sandbox/settle    settle every open withdrawal now; {"outcome": "fullfiled" | "failed"} overrides how each ends
POST /_sandbox/reset     back to the seeded history; options as at the start, tokens fresh

Options last until the next start or reset.
"""

from typing import Annotated, Literal

from django.db.models import QuerySet
from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from pydantic import BaseModel, ConfigDict, Field

from payments_gateway.sandbox import clock, lifecycle, otp
from payments_gateway.sandbox.books import ledger, settlement
from payments_gateway.sandbox.faults.plan import PLAN
from payments_gateway.sandbox.models import Simulation, Withdrawal
from payments_gateway.sandbox.wire import credentials
from payments_gateway.sandbox.wire.amounts import amount_text
from payments_gateway.sandbox.wire.answers import answer, operation
from payments_gateway.sandbox.wire.bodies import Body, read_body, read_optional_body
from payments_gateway.sandbox.wire.fields import Number

_LATEST = 10


class OptionsBody(BaseModel):
    """Body of POST /_sandbox/options: what is absent stays as it is."""

    model_config = ConfigDict(strict=True, extra="forbid")

    settle_after: Annotated[Number, Field(ge=0, le=31_536_000)] | None = None
    token_required: bool = True
    token_reuse: bool = False
    fail_next: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    customer_pays_after: Annotated[Number, Field(ge=0, le=31_536_000)] | None = None


class SettleBody(Body):
    """Body of POST /_sandbox/settle."""

    outcome: Literal["fullfiled", "failed"] | None = None


@operation("GET", credentials=False)
def token(request: HttpRequest) -> HttpResponse:
    """The codes that the service would accept."""
    return answer(_codes())


@operation("GET", credentials=False)
def ledger_now(request: HttpRequest) -> HttpResponse:
    """Withdrawals since the seed, oldest first; what they and their fees took; balances; disagreements of the books."""
    withdrawals = list(_withdrawals().order_by("transaction_id"))
    return answer(
        {
            "debits": {"count": len(withdrawals), "amounts": _debited(withdrawals)},
            "withdrawals": [_withdrawal(withdrawal) for withdrawal in withdrawals],
            "balances": _balances(),
            "differences": ledger.differences(),
        }
    )


@operation("GET", "POST", credentials=False)
def options(request: HttpRequest) -> HttpResponse:
    """The options in force, after the change if one was asked for."""
    if request.method == "POST":
        body = read_body(request, OptionsBody)
        lifecycle.change_options(body.model_dump(include=body.model_fields_set))
    return answer(_options())


@operation("POST", credentials=False)
def settle(request: HttpRequest) -> HttpResponse:
    """Settle what is open, due or not."""
    outcome = read_optional_body(request, SettleBody).outcome
    failed = None if outcome is None else outcome == "failed"
    return answer({"settled": settlement.settle_now(failed=failed)})


@operation("POST", credentials=False)
def reset(request: HttpRequest) -> HttpResponse:
    """Forget everything since the seed, and the faults; what faults still hold is never executed."""
    PLAN.clear(abandon=True)
    return answer({"transactions": lifecycle.reset()})


@operation("GET", credentials=False)
@atomic
def console(request: HttpRequest) -> HttpResponse:
    """The page for people."""
    context = {
        "codes": _codes(),
        "accounts": ledger.merchant_accounts().values(),
        "balances": _balances().items(),
        "withdrawals": [_withdrawal(row) for row in _withdrawals().order_by("-transaction_id")[:_LATEST]],
        "options": _options().items(),
        "credentials": credentials,
    }
    return render(request, "sandbox/console.html", context)


def _codes() -> dict[str, object]:
    simulation, at = Simulation.objects.get(), clock.wall()
    step = otp.step_of(at)
    return {
        "totp": otp.totp(simulation.totp_secret, step),
        "secondsLeft": (step + 1) * otp.STEP_SECONDS - int(at.timestamp()),
        "used": step <= simulation.last_totp_step,
        "otp": simulation.one_time_code,
        "secret": simulation.totp_secret,
    }


def _options() -> dict[str, object]:
    return lifecycle.options_of(Simulation.objects.get())


def _balances() -> dict[str, str]:
    return {
        currency: amount_text(account.balance, currency)
        for currency, account in ledger.merchant_accounts().items()
    }


def _withdrawals() -> QuerySet[Withdrawal]:
    last_seeded_id = Simulation.objects.get().last_seeded_id
    return Withdrawal.objects.filter(transaction_id__gt=last_seeded_id).select_related("transaction")


def _debited(withdrawals: list[Withdrawal]) -> dict[str, str]:
    units: dict[str, int] = {}
    for withdrawal in withdrawals:
        record = withdrawal.transaction
        units[record.currency] = units.get(record.currency, 0) + record.amount + record.fee
    return {currency: amount_text(total, currency) for currency, total in units.items()}


def _withdrawal(withdrawal: Withdrawal) -> dict[str, object]:
    record = withdrawal.transaction
    return {
        "transactionId": record.transaction_id,
        "currency": record.currency,
        "amount": amount_text(record.amount, record.currency),
        "fee": amount_text(record.fee, record.currency),
        "accountNumber": withdrawal.account_number,
        "accountName": withdrawal.account_name,
        "bank": withdrawal.bank,
        "bankCode": withdrawal.bank_code,
        "status": record.status,
        "receivedAt": clock.stamp(record.created_at),
    }
