"""The control API of the simulation, under /_sandbox/. The real service has nothing like it.

JSON in, JSON out, no credentials. Members that repeat the service are spelled as on the wire; options and faults as on
the command line. A wrong body is refused with 400 and a message that names the wrong member; nothing is changed then.
Requests that a browser sends on behalf of a foreign page are refused with 403 (guard.py).

GET    /_sandbox/               the console: a page for people; /_sandbox/watch has no forms and refreshes itself

GET    /_sandbox/token          {"totp", "secondsLeft", "used", "otp", "secret"}: the present codes
GET    /_sandbox/options        the options now in force
POST   /_sandbox/options        change some of them: settle_after (seconds; null: never by itself), token_required,
                                token_reuse (a code may be used again), fail_next (that many next orders will fail),
                                customer_pays_after (seconds after which customers pay payments; null: never)
POST   /_sandbox/settle         settle all that is open; {"outcome": "fullfiled" | "failed"} overrides how each ends
POST   /_sandbox/reset          back to the seeded history; options as at the start, fresh tokens, one key, no callback
                                URL, no deliveries, no faults, the right time

GET    /_sandbox/ledger         the oracle of tests (oracle.py): what was asked of the service since its seed
                                {"debits": {"count", "amounts"}, "orders": [{"kind", …}], "withdrawals": […],
                                "payments": […], "balances": {…}, "differences": […]}

GET    /_sandbox/clock          {"now", "wall", "aheadSeconds"}: the service's clock and real time (world.py)
POST   /_sandbox/clock          {"advance": seconds}: put the service's clock forward, and settle what is due by then
POST   /_sandbox/deposits       {"currency", "amount", "sender"}: money arrives; amounts are text, as on the wire
POST   /_sandbox/payments       {"reference", "amount"}: a customer pays; without amount, what is still missing
GET    /_sandbox/kyc            {"completed"}
POST   /_sandbox/kyc            {"completed": true | false}

GET    /_sandbox/webhooks       {"callbackUrl", "deliveries": […]}, newest first; ?limit=50, at most 500 (webhooks.py)
GET    /_sandbox/webhooks/keys  {"keys": [{"pem", "madeAt"}]}: who may have signed, newest first
POST   /_sandbox/webhooks/keys  make a new key; the one before signs every other delivery for an hour
GET    /_sandbox/webhooks/faults     {"faults": {kind: {"left", "applied", …}}}
POST   /_sandbox/webhooks/faults     the next `deliveries` are wrong: {"kind": "duplicate", "copies"},
                                     {"kind": "reorder"}, {"kind": "delay", "seconds"}, {"kind": "forge", "forgery"}
DELETE /_sandbox/webhooks/faults     take them all away

GET    /_sandbox/faults         {"faults": [{"id", "kind", …, "hits", "left", "passed"}]}, oldest first (faults.py)
POST   /_sandbox/faults         {"operation", "kind", …}: provoke one; the kinds are told in ../faults/__init__.py
DELETE /_sandbox/faults         take them all away; what they hold goes on
DELETE /_sandbox/faults/<id>    take this one away

Options, faults and KYC last until the next start or reset.
"""

from typing import Annotated, Literal

from django.http import HttpRequest, HttpResponse
from pydantic import Field

from payments_gateway.sandbox import lifecycle
from payments_gateway.sandbox.books import settlement
from payments_gateway.sandbox.control.actions import back_to_the_seed
from payments_gateway.sandbox.control.bodies import ControlBody
from payments_gateway.sandbox.control.present import present_codes, present_options
from payments_gateway.sandbox.merchant.entrance import operation
from payments_gateway.sandbox.wire.answers import answer
from payments_gateway.sandbox.wire.bodies import read_body, read_optional_body
from payments_gateway.sandbox.wire.fields import Number

Seconds = Annotated[Number, Field(ge=0, le=31_536_000)]


class OptionsBody(ControlBody):
    """Body of POST /_sandbox/options: what is absent stays as it is."""

    settle_after: Seconds | None = None
    token_required: bool = True
    token_reuse: bool = False
    fail_next: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    customer_pays_after: Seconds | None = None


class SettleBody(ControlBody):
    """Body of POST /_sandbox/settle."""

    outcome: Literal["fullfiled", "failed"] | None = None


@operation("GET", credentials=False)
def token(request: HttpRequest) -> HttpResponse:
    """The codes that the service would accept."""
    return answer(present_codes())


@operation("GET", "POST", credentials=False)
def options(request: HttpRequest) -> HttpResponse:
    """The options in force, after the change if one was asked for."""
    if request.method == "POST":
        body = read_body(request, OptionsBody)
        lifecycle.change_options(body.model_dump(include=body.model_fields_set))
    return answer(present_options())


@operation("POST", credentials=False)
def settle(request: HttpRequest) -> HttpResponse:
    """Settle what is open, due or not."""
    outcome = read_optional_body(request, SettleBody).outcome
    failed = None if outcome is None else outcome == "failed"
    return answer({"settled": settlement.settle_now(failed=failed)})


@operation("POST", credentials=False)
def reset(request: HttpRequest) -> HttpResponse:
    """Forget everything since the seed."""
    return answer({"transactions": back_to_the_seed()})
