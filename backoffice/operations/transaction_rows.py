"""One transaction as a row of the list, written in one piece: a template of as many parts takes several times longer
than the database takes to find it, and `format_html` twice as long as escaping the texts among them."""

from dataclasses import dataclass
from functools import cache
from html import escape

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from backoffice.core.display import format_amount, local_day, local_time
from backoffice.core.ids import whole_ids
from backoffice.ledger.mirrored import Transaction
from backoffice.operations.models import Operation

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
_FEE = "<small>fee {}</small>"
_MISSING = "<small>no longer listed by the service since {}</small>"
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
        return SafeString(
            _ROW.format(
                _address(one.pk),
                escape(one.type or "Not told"),
                escape(one.transaction_id),
                _MISSING.format(local_day(one.missing_since)) if one.missing_since else "",
                whole_ids(one.counterparty),
                _CLASSES.get(one.direction, "amt num"),
                SIGNS.get(one.direction, ""),
                escape(one.currency),
                format_amount(one.amount, one.currency),
                _FEE.format(format_amount(one.fee, one.currency)) if one.fee else "",
                TONES.get(one.status, ""),
                escape(one.status),
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


def _address(pk: int) -> str:
    """The page of one transaction. Looking its pattern up for each row would take as long as all the rest."""
    return _pattern().format(pk)


@cache
def _pattern() -> str:
    before, _, behind = reverse("operations:transaction", args=[0]).rpartition("0")
    return f"{before}{{}}{behind}"
