"""The register for its pages: how each recipient was paid, and the filters of the list."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django import forms
from django.db.models import Count, Max, Min, QuerySet, Sum
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.field_errors import PageForm
from backoffice.operations.kinds.recipient import RecipientKind
from backoffice.operations.models.operations import Operation
from backoffice.operations.selectors import IS_EXECUTED, IS_OPEN
from backoffice.recipients.models import RecipientState, RecipientType, RecipientVersion
from backoffice.recipients.register import find_recipients


class RecipientFilterForm(PageForm):
    """Filters of the list and of the report. Every field is optional."""

    q = forms.CharField(
        label=_("Name, alias, account or notes"),
        required=False,
        max_length=128,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    state = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("All")), *RecipientState.choices]
    )
    type = forms.ChoiceField(
        label=_("Type"), required=False, choices=[("", _("All")), *RecipientType.choices]
    )

    def apply(self) -> QuerySet[RecipientVersion]:
        """The newest versions that match the filters. Call only on a valid form."""
        values = self.cleaned_data
        return find_recipients(values["q"], state=values["state"], kind=values["type"])


@dataclass(frozen=True)
class CurrencyPaid:
    """What was paid to a recipient in one currency."""

    currency: str
    count: int
    amount: Decimal


@dataclass(frozen=True)
class PaymentsTo:
    """The payments to a recipient that were executed."""

    totals: tuple[CurrencyPaid, ...]
    first: datetime
    last: datetime


def payments_to(keys: Collection[str]) -> dict[str, PaymentsTo]:
    """Of each of these keys that was paid: what, and when first and last. One query."""
    executed = Operation.objects.filter(IS_EXECUTED, recipient_key__in=keys).order_by()
    at = Coalesce("closed_at", "prepared_at")
    rows = executed.values("recipient_key", "currency").annotate(
        count=Count("pk"), total=Sum("amount"), first=Min(at), last=Max(at)
    )
    found: dict[str, PaymentsTo] = {}
    for row in sorted(rows, key=lambda row: row["currency"]):
        paid = CurrencyPaid(row["currency"], row["count"], row["total"])
        key = row["recipient_key"] or ""
        earlier = found.get(key)
        found[key] = PaymentsTo(
            (*(earlier.totals if earlier else ()), paid),
            min(row["first"], earlier.first) if earlier else row["first"],
            max(row["last"], earlier.last) if earlier else row["last"],
        )
    return found


def waiting_change(key: str) -> Operation | None:
    """The change of this recipient that waits for approval, if there is one."""
    return Operation.objects.filter(IS_OPEN, kind=RecipientKind.name, payload__key=key).first()
