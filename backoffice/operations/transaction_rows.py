"""One transaction as a row of the list, written in one piece: a template of as many parts takes several times longer
than the database takes to find it."""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from backoffice.core.display import format_amount, local_time
from backoffice.ledger.mirrored import Transaction
from backoffice.operations.models import Operation

TONES = {"fulfilled": "succeeded", "processing": "processing", "failed": "failed"}
SIGNS = {"in": "+", "out": "\N{MINUS SIGN}"}
_CLASSES = {"in": "amt num good"}
_ROW = """
<tr>
<th scope="row" class="op"><a class="row" href="{}">{}</a><small class="mono">{}</small></th>
<td class="to">{}</td>
<td class="{}">{}<span class="money"><span>{}</span> {}</span>{}</td>
<td class="st"><span class="badge {}">{}</span></td>
<td class="by">{}</td>
<td class="age quiet nowrap"><time datetime="{}">{}</time></td>
</tr>"""
_FEE = "<small>fee {}</small>"
_OPERATION = '<a href="{}" class="mono">{}</a>'


@dataclass(frozen=True)
class Row:
    """A transaction, and the operation of ours that caused it."""

    transaction: Transaction
    operation: Operation | None

    @property
    def html(self) -> SafeString:
        """The row of the table; every text in it is escaped."""
        one = self.transaction
        return format_html(
            _ROW,
            reverse("operations:transaction", args=[one.pk]),
            one.type or "Not told",
            one.transaction_id,
            one.counterparty,
            _CLASSES.get(one.direction, "amt num"),
            SIGNS.get(one.direction, ""),
            one.currency,
            format_amount(one.amount, one.currency),
            format_html(_FEE, format_amount(one.fee, one.currency)) if one.fee else "",
            TONES.get(one.status, ""),
            one.status,
            self._operation,
            one.occurred_at.isoformat(),
            local_time(one.occurred_at),
        )

    @property
    def _operation(self) -> SafeString | str:
        if self.operation is None:
            return ""
        return format_html(_OPERATION, self.operation.get_absolute_url(), self.operation.reference)
