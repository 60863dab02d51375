"""The list and the page of the mirrored transactions, each with the operation that caused it; the provider's summary.

A row is rendered as one string: a template of many parts takes several times longer than the query.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from html import escape

from django.contrib.auth.decorators import permission_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe
from django_htmx.http import push_url

from backoffice.accounts.access import does_not_extend_session
from backoffice.accounts.sessions import StaffRequest
from backoffice.core.fields import normalized_text
from backoffice.core.web.formatting import (
    exact_time,
    format_amount,
    local_day,
    local_time,
    long_ids,
    whole_ids,
)
from backoffice.core.web.pagination import Page
from backoffice.ledger.forms import JumpToDayForm, SummaryForm, TransactionListForm
from backoffice.ledger.mirror.rows import DECIMAL_COLUMNS, TIME_COLUMNS
from backoffice.ledger.mirror.state import mirror_state
from backoffice.ledger.models import Transaction, TransactionChange
from backoffice.ledger.transactions.listing import (
    TransactionCount,
    cursor_at_day,
    sold_sides,
    transaction_count,
    transaction_page,
)
from backoffice.ledger.transactions.query_planner import FilterTooBroadError
from backoffice.ledger.transactions.summary import cached_summary, discrepancy, refresh_summary
from backoffice.ledger.transactions.volumes import VolumeSummary, volume_summary
from backoffice.operations import selectors
from backoffice.operations.models.operations import Operation
from payments_gateway import TransactionRecord

TONES = {"fulfilled": "succeeded", "processing": "processing", "failed": "failed"}
SIGNS = {"in": "+", "out": "\N{MINUS SIGN}"}
_CLASSES = {"in": "amt num good"}
_ROW = """
<tr>
<th scope="row" class="op"><a class="row" href="{}">{}</a><small class="mono">{}</small>{}</th>
<td class="to">{}</td>
<td class="{}">{}<span class="money"><span>{}</span> {}</span>{}</td>
<td class="st"><span class="badge {}">{}</span></td>
<td class="by">{}</td>
<td class="age quiet nowrap"><time datetime="{}">{}</time></td>
</tr>"""
_NOTE = "<small>{}</small>"
_OPERATION = '<a href="{}" class="mono">{}</a>'


@dataclass(frozen=True)
class TransactionRow:
    """A transaction, and the operation of ours that caused it."""

    transaction: Transaction
    operation: Operation | None

    @property
    def html(self) -> SafeString:
        """The row of the table; every text in it is escaped."""
        one = self.transaction
        return SafeString(
            _ROW.format(
                _transaction_url(one.pk),
                escape(one.type_label or gettext("Type not provided")),
                escape(one.transaction_id),
                _missing_note(one.missing_since) if one.missing_since else "",
                whole_ids(one.counterparty),
                _CLASSES.get(one.direction, "amt num"),
                SIGNS.get(one.direction, ""),
                escape(one.currency),
                format_amount(one.amount, one.currency),
                _fee_note(format_amount(one.fee, one.currency)) if one.fee else "",
                TONES.get(one.status, ""),
                escape(one.status_label),
                self._operation,
                one.occurred_at.isoformat(),
                escape(local_time(one.occurred_at)),
            )
        )

    @property
    def _operation(self) -> str:
        if self.operation is None:
            return ""
        return format_html(_OPERATION, self.operation.get_absolute_url(), self.operation.reference)


def _fee_note(fee: str) -> str:
    return _NOTE.format(escape(gettext("fee {amount}").format(amount=fee)))


def _missing_note(since: datetime) -> str:
    return _NOTE.format(
        escape(gettext("no longer listed by the provider since {date}").format(date=local_day(since)))
    )


def _transaction_url(pk: int) -> str:
    """The URL of one transaction. Reversing it for each row would take as long as all the rest."""
    return _url_pattern().format(pk)


@cache
def _url_pattern() -> str:
    before, _, behind = reverse("operations:transaction", args=[0]).rpartition("0")
    return f"{before}{{}}{behind}"


_FIELD_NAMES = {
    "transaction_id": _("Transaction ID"),
    "type": _("Type"),
    "status": _("Status"),
    "direction": _("Direction"),
    "counterparty": _("Counterparty"),
    "currency": _("Currency"),
    "amount": _("Amount"),
    "fee": _("Fee"),
    "previous_balance": _("Balance before"),
    "sender_previous_balance": _("Sender's balance before"),
    "from_currency": _("Source currency"),
    "from_amount": _("Source amount"),
    "sender": _("Sender"),
    "username": _("Username"),
    "is_from_registered_user": _("From a registered user"),
    "business_id": _("Business ID"),
    "version": _("Version"),
    "date": _("Date"),
    "created_at": _("Created"),
    "updated_at": _("Updated"),
    "missing_since": _("No longer listed since"),
}
_TIMES = {*TIME_COLUMNS, "missing_since"}


@dataclass(frozen=True)
class ChangeText:
    """One change: name, old and new text of each field, and the whole change as it is stored."""

    seen_at: datetime
    members: list[tuple[str, str, str]]
    kept: str


def transaction_facts(one: Transaction) -> list[tuple[str, str]]:
    """The main fields, under names for people."""
    is_converted = one.from_currency not in ("", one.currency)
    facts = {
        gettext("Type"): one.type_label,
        gettext("Counterparty"): one.counterparty,
        gettext("Fee"): _value_text(one, "fee", one.fee),
        gettext("Balance before"): _value_text(one, "previous_balance", one.previous_balance),
        gettext("Converted from"): _value_text(one, "from_amount", one.from_amount) if is_converted else "",
        gettext("Created"): _value_text(one, "created_at", one.created_at) or gettext("not provided"),
        gettext("Updated"): _value_text(one, "updated_at", one.updated_at),
    }
    return [(name, text) for name, text in facts.items() if text]


def reported_fields(one: Transaction) -> list[tuple[str, str, str]]:
    """Every reported field: its name in words, the provider's own name, and the stored value."""
    values = ((name, field.alias or name) for name, field in TransactionRecord.model_fields.items())
    fields = [(str(_FIELD_NAMES[name]), member, _raw_text(getattr(one, name))) for name, member in values]
    return [(name, member, text) for name, member, text in fields if text]


def transaction_changes(one: Transaction) -> list[ChangeText]:
    """Earlier reported values, the newest change first."""
    return [_change_text(one, change) for change in one.changes.all()]


def _change_text(one: Transaction, change: TransactionChange) -> ChangeText:
    def text_of(name: str, values: Mapping[str, object]) -> str:
        return _value_text(one, name, values.get(name)) or gettext("none")

    members = [
        (str(_FIELD_NAMES.get(name, name)), text_of(name, change.before), text_of(name, change.after))
        for name in change.after
    ]
    stored = json.dumps({"before": change.before, "after": change.after}, ensure_ascii=False, indent=2)
    return ChangeText(change.seen_at, members, stored)


def _value_text(one: Transaction, name: str, value: object) -> str:
    """The value in words, whether it comes from the row or from the text of a change; empty for none."""
    if value is None or value == "":
        return ""
    if name in _TIMES:
        return exact_time(value if isinstance(value, datetime) else datetime.fromisoformat(str(value)))
    if name in DECIMAL_COLUMNS:
        currency = one.from_currency if name == "from_amount" else one.currency
        return f"{currency} {format_amount(Decimal(str(value)), currency)}"
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    return str(value)


def _raw_text(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return normalized_text(value)
        case datetime():
            return value.isoformat()
    return str(value)


VIEW_TRANSACTION = "ledger.view_transaction"


@require_safe
@permission_required(VIEW_TRANSACTION, raise_exception=True)
def transactions(request: StaffRequest) -> HttpResponse:
    """One page of the list, narrowed by the filters in the URL; only the rows for htmx."""
    form, jump = TransactionListForm(request.GET), JumpToDayForm(request.GET)
    if form.is_valid() and form.is_by_time and jump.day:
        return redirect(f"{request.path}?{_url_at_day(request, form, jump.day)}")
    page = _transaction_page(request, form) if form.is_valid() else None
    only_rows = request.htmx and not request.htmx.history_restore_request
    context = {
        "form": form,
        "jump": jump,
        "page": page,
        "rows": _transaction_rows(request, page.rows) if page else [],
        "mirror": mirror_state(),
        "only_rows": only_rows,
        **(_sums(form) if page and "count" in request.GET else {}),
    }
    template = "operations/_transactions.html" if only_rows else "operations/transactions.html"
    if page is None:
        # a refused filter is not put into the URL
        return push_url(render(request, template, context, status=422), False)
    return render(request, template, context)


@does_not_extend_session
@require_safe
@permission_required(VIEW_TRANSACTION, raise_exception=True)
def transactions_count(request: StaffRequest) -> HttpResponse:
    """The count and sums, loaded after the page."""
    form = TransactionListForm(request.GET)
    context = {"form": form, **(_sums(form) if form.is_valid() else {})}
    return render(request, "operations/_transaction_count.html", context)


@require_safe
@permission_required(VIEW_TRANSACTION, raise_exception=True)
def transaction_summary(request: StaffRequest) -> HttpResponse:
    """The provider's summary beside the mirror's figures, as last read. htmx reads it anew, and so does `?read=1`."""
    return _summary_page(request, "operations/transaction_summary.html", is_read="read" in request.GET)


@does_not_extend_session
@require_safe
@permission_required(VIEW_TRANSACTION, raise_exception=True)
def transaction_summary_now(request: StaffRequest) -> HttpResponse:
    """The same read now, or as last read if that fails."""
    return _summary_page(request, "operations/_transaction_summary.html", is_read=True)


def _summary_page(request: StaffRequest, template: str, *, is_read: bool) -> HttpResponse:
    form, cached, found = SummaryForm(request.GET), None, None
    if form.is_valid():
        query = form.summary_query()
        cached = (refresh_summary if is_read else cached_summary)(query)
        found = discrepancy(query) if cached.value and cached.value.is_unexplained else None
    context = {
        "form": form,
        "cached": cached,
        "discrepancy": found,
        "mirror": mirror_state(),
        "fresh": is_read,
    }
    return render(request, template, context, status=200 if cached else 422)


@require_safe
@permission_required(VIEW_TRANSACTION, raise_exception=True)
def transaction(request: StaffRequest, pk: int) -> HttpResponse:
    """Everything reported about one transaction, its changes, and the operation that caused it."""
    found = get_object_or_404(Transaction, pk=pk)
    context = {
        "transaction": found,
        "sign": SIGNS.get(found.direction, ""),
        "tone": TONES.get(found.status, ""),
        "operation": _transaction_rows(request, [found])[0].operation,
        "named": _transaction_rows(request, _named_transactions(found)),
        "facts": transaction_facts(found),
        "reported": reported_fields(found),
        "changes": transaction_changes(found),
        "incidents": found.incidents.select_related("acknowledged_by"),
    }
    return render(request, "operations/transaction.html", context)


def _named_transactions(one: Transaction) -> list[Transaction]:
    """The transactions whose ids its counterparty contains, as in a refund. The provider or the payer wrote them: they
    prove nothing.
    """
    ids = long_ids(one.counterparty)
    found = Transaction.objects.filter(transaction_id__in=ids).exclude(pk=one.pk) if ids else ()
    return list(found)


def _transaction_page(request: StaffRequest, form: TransactionListForm) -> Page[Transaction] | None:
    """None with the reason in the form, if the request cannot be answered quickly."""
    try:
        return transaction_page(form.transaction_filter(), order=form.order, cursor=request.GET.get("cursor"))
    except FilterTooBroadError as exc:
        form.add_error("text" if form.transaction_filter().searches_names else "since", str(exc))
        return None


def _sums(form: TransactionListForm) -> dict[str, object]:
    count = _count(form)
    return {"count": count, "sums": _summary(form) if count else None}


def _count(form: TransactionListForm) -> TransactionCount | None:
    """None if counting takes too long."""
    try:
        return transaction_count(form.transaction_filter())
    except FilterTooBroadError:
        return None


def _summary(form: TransactionListForm) -> VolumeSummary | None:
    """None if adding up takes too long."""
    try:
        return volume_summary(form.transaction_filter())
    except FilterTooBroadError:
        return None


def _url_at_day(request: StaffRequest, form: TransactionListForm, day: date) -> str:
    """The same URL, at the page where the chosen day begins."""
    address = request.GET.copy()
    address["cursor"] = cursor_at_day(day, form.transaction_filter(), form.order)
    del address["jump"]
    return address.urlencode()


def _transaction_rows(request: StaffRequest, found: list[Transaction]) -> list[TransactionRow]:
    sold = sold_sides(found)
    ids = {one.transaction_id: sold.get(one.transaction_id, one.transaction_id) for one in found}
    caused = selectors.operations_by_transaction(request.user, ids.values())
    return [TransactionRow(one, caused.get(ids[one.transaction_id])) for one in found]
