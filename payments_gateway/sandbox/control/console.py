"""The sandbox console: a web page that shows and changes the simulation, without JavaScript.

The page with the forms does not refresh itself, so that no input is lost; /_sandbox/watch shows the same
state without the forms and refreshes every five seconds.
"""

import threading
from collections import deque
from datetime import UTC, datetime, timedelta
from itertools import count

from django.db.models import QuerySet
from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext

from payments_gateway import sandbox
from payments_gateway.sandbox import clock
from payments_gateway.sandbox.amounts import amount_text
from payments_gateway.sandbox.api.authentication import api_view
from payments_gateway.sandbox.books.settlement import order_of
from payments_gateway.sandbox.control.examples import destinations
from payments_gateway.sandbox.control.forms import FORMS, ConsoleForm
from payments_gateway.sandbox.errors import RefusedError
from payments_gateway.sandbox.faults.registry import FAULTS, ActiveFault
from payments_gateway.sandbox.lifecycle import (
    LATEST_SHOWN,
    balances,
    current_codes,
    current_options,
    missing_amount,
    open_payments,
)
from payments_gateway.sandbox.merchant import details as merchant_details
from payments_gateway.sandbox.merchant import keys
from payments_gateway.sandbox.models import ApiKey, Payment, Transaction, WalletTransfer, Withdrawal
from payments_gateway.sandbox.webhooks import outbox

_NOTES_KEPT = 50
_notes_lock = threading.Lock()
_note_numbers = count(1)
_notes: deque[tuple[str, str]] = deque(maxlen=_NOTES_KEPT)


def leave_note(text: str) -> str:
    """Store a note for the next page and return its number.

    Only the number goes into the URL, so that a link cannot put its own text on the page.
    """
    with _notes_lock:
        number = str(next(_note_numbers))
        _notes.append((number, text))
    return number


def find_note(number: str) -> str:
    """The note with this number, or an empty text."""
    with _notes_lock:
        return dict(_notes).get(number, "")


_LATEST_DELIVERIES = 5
_COUNTERS = ("id", "kind", "operation", "times", "skip", "containing")


def console_state() -> dict[str, object]:
    """The template context; call it inside one transaction, so that it is consistent."""
    return {
        "codes": current_codes(),
        "balances": balances().items(),
        "movements": [_transaction_row(record) for record in _latest_transactions()],
        "payments": [_payment_row(payment) for payment in open_payments()],
        "keys": [_key_row(key) for key in keys.all_keys()],
        "kyc": merchant_details.kyc(),
        "callback_url": merchant_details.callback_url(),
        "deliveries": [_delivery_row(row) for row in outbox.list_deliveries(_LATEST_DELIVERIES)],
        "webhook_faults": [(kind, row) for kind, row in outbox.delivery_faults().items() if row["left"]],
        "faults": [_fault_row(fault) for fault in FAULTS.listed()],
        "clock": {
            "now": _local_time(clock.now()),
            "wall": _local_time(clock.real_now()),
            "ahead": _offset_text(clock.offset()),
        },
        "options": current_options().items(),
        "credentials": sandbox,
        "destinations": destinations(),
    }


def _latest_transactions() -> QuerySet[Transaction]:
    orders = Transaction.objects.select_related("withdrawal", "transfer", "wallet_transfer")
    return orders.order_by("-id")[:LATEST_SHOWN]


def _transaction_row(record: Transaction) -> dict[str, object]:
    return {
        "at": _local_time(record.created_at),
        "type": record.type,
        "party": _counterparty(record),
        "sign": "+" if record.incoming else "-",
        "amount": f"{record.currency} {amount_text(record.amount, record.currency)}",
        "fee": amount_text(record.fee, record.currency) if record.fee else "",
        "status": record.status,
    }


def _counterparty(record: Transaction) -> str:
    match order_of(record):
        case Withdrawal() as to:
            return f"{to.account_name}, {to.bank} {to.account_number}"
        case WalletTransfer() as to:
            return f"{to.network} {to.address}"
        case _:
            return record.sender if record.incoming else record.username


def _payment_row(payment: Payment) -> dict[str, object]:
    incoming, outgoing = payment.incoming_currency, payment.outgoing_currency
    return {
        "reference": payment.reference,
        "incoming": f"{incoming} {amount_text(payment.incoming_amount, incoming)}",
        "missing": missing_amount(payment),
        "outgoing": f"{outgoing} {amount_text(payment.outgoing_amount, outgoing)}",
        "address": payment.address,
        "expires": _local_time(payment.expires_at),
        "state": payment.state,
    }


def _key_row(key: ApiKey) -> dict[str, object]:
    names = {scope.value: name for name, scope in keys.NAMES.items()}
    expires = None if key.expires_at is None else datetime.fromtimestamp(key.expires_at, UTC)
    return {
        "short_hash": key.short_hash,
        "name": key.name,
        "scope": names[key.scope],
        "expires": _local_time(expires) if expires else gettext("never"),
        "state": _key_state(key, expires),
    }


def _key_state(key: ApiKey, expires: datetime | None) -> str:
    if key.invalidated_at is not None:
        return "invalidated"
    return "expired" if expires and expires <= clock.now() else "works"


def _delivery_row(row: dict[str, object]) -> dict[str, object]:
    attempts = row["attempts"]
    tries = attempts if isinstance(attempts, list) else []
    announced = _local_time(datetime.fromisoformat(str(row["announcedAt"])))
    return {**row, "announced": announced, "tries": len(tries), "last": tries[-1] if tries else None}


def _fault_row(fault: ActiveFault) -> dict[str, object]:
    order = fault.definition.model_dump(exclude_none=True)
    particulars = {name: value for name, value in order.items() if name not in _COUNTERS}
    return {
        "id": fault.id,
        "operation": fault.definition.operation,
        "kind": fault.definition.kind,
        "containing": fault.definition.containing,
        "particulars": ", ".join(f"{name} {value}" for name, value in particulars.items()),
        "hits": fault.hits,
        "left": gettext("until cleared") if fault.left is None else fault.left,
        "waiting": fault.definition.skip - fault.passed,
    }


def _local_time(moment: datetime) -> str:
    return f"{moment.astimezone(clock.LAGOS):%Y-%m-%d %H:%M:%S}"


def _offset_text(offset: timedelta) -> str:
    days, seconds = offset.days, offset.seconds
    if not offset:
        return ""
    return gettext("{days} d {hours} h {minutes} min {seconds} s").format(
        days=days, hours=seconds // 3600, minutes=seconds // 60 % 60, seconds=seconds % 60
    )


_SEE_OTHER = 303


@api_view("GET", credentials=False)
def console(request: HttpRequest) -> HttpResponse:
    """The page with the state and the forms."""
    return _page(request, note=find_note(request.GET.get("note", "")))


@api_view("GET", credentials=False)
@atomic
def watch(request: HttpRequest) -> HttpResponse:
    """The state without forms, which refreshes every five seconds."""
    return render(request, "sandbox/watch.html", console_state())


@api_view("POST", credentials=False)
def submit_form(request: HttpRequest, name: str) -> HttpResponse:
    """Perform the action of a form and show the console again; a rejected form keeps its input."""
    if name not in FORMS:
        raise RefusedError(404, "there is no such form")
    form = FORMS[name](request.POST)
    if form.is_valid():
        try:
            note = form.perform()
        except RefusedError as exc:
            form.add_error(None, exc.message)
        else:
            return HttpResponseRedirect(f"/_sandbox/?note={leave_note(note)}", status=_SEE_OTHER)
    return _page(request, refused=form)


@atomic
def _page(request: HttpRequest, *, note: str = "", refused: ConsoleForm | None = None) -> HttpResponse:
    forms = [refused if refused and refused.name == name else kind() for name, kind in FORMS.items()]
    context = {**console_state(), "forms": forms, "note": note}
    return render(request, "sandbox/console.html", context, status=422 if refused else 200)
