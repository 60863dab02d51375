"""Text forms of amounts, times, codes, errors of the client and long ids, for pages and files."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from html import escape
from typing import Any

from django.db.models import TextChoices
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext_lazy

from backoffice.core.fields import normalized_text
from payments_gateway import CURRENCIES, GatewayError, InputError


def format_amount(amount: Decimal, currency: str) -> str:
    """`250,000.00`: grouped, with the currency's number of decimals, or more if the amount has more."""
    default_decimals = CURRENCIES[currency].decimals if currency in CURRENCIES else 0
    decimals = max(default_decimals, len(normalized_text(amount).partition(".")[2]))
    return f"{amount:,.{decimals}f}"


def mask_account(number: str) -> str:
    """`••6789`: enough to recognise an account, not to use it."""
    return f"••{number[-4:]}"


_MONTHS = (
    *(pgettext_lazy("abbreviated month", "Jan"), pgettext_lazy("abbreviated month", "Feb")),
    *(pgettext_lazy("abbreviated month", "Mar"), pgettext_lazy("abbreviated month", "Apr")),
    *(pgettext_lazy("abbreviated month", "May"), pgettext_lazy("abbreviated month", "Jun")),
    *(pgettext_lazy("abbreviated month", "Jul"), pgettext_lazy("abbreviated month", "Aug")),
    *(pgettext_lazy("abbreviated month", "Sep"), pgettext_lazy("abbreviated month", "Oct")),
    *(pgettext_lazy("abbreviated month", "Nov"), pgettext_lazy("abbreviated month", "Dec")),
)
"""Our own, because Django abbreviates the French June and July alike, and its date formats take 40 times as long."""


def local_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42 WAT` in the reader's time zone, which is always named."""
    local = timezone.localtime(moment)
    return f"{format_day(local)}, {local:%H:%M %Z}"


def format_day(day: date) -> str:
    """`20 Nov 2026`."""
    return f"{format_day_of_month(day)} {day.year}"


def format_day_of_month(day: date) -> str:
    """`20 Nov`."""
    return f"{day.day} {_MONTHS[day.month - 1]}"


def local_day(moment: datetime) -> str:
    """`20 Nov 2026` in the reader's time zone."""
    return format_day(timezone.localtime(moment))


def exact_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42:07 WAT`: to the second, for comparing times."""
    local = timezone.localtime(moment)
    return f"{format_day(local)}, {local:%H:%M:%S %Z}"


def local_time_of_iso(text: str) -> str:
    """`local_time` of an ISO 8601 text; any other text unchanged."""
    try:
        return local_time(datetime.fromisoformat(text))
    except ValueError:
        return text


def code_sentence(codes: type[TextChoices], stored: Mapping[str, Any]) -> str:
    """A stored code and its parameters in words: the label of the code, with the parameters in its braces."""
    return str(codes(stored["code"]).label).format(**with_error_sentence(stored))


def error_sentence(error: GatewayError | InputError) -> str:
    """An error of the client in the reader's language; what the provider itself said stays as it is."""
    return gettext(error.template).format(**error.parameters) if error.template else str(error)


def stored_error(error: GatewayError, *, limit: int = 500) -> dict[str, str]:
    """The parameters to store of an error: its English sentence, and the parts for `with_error_sentence`.

    Only the sentence if it is the provider's own, or longer than `limit` characters.
    """
    if not error.template or len(str(error)) > limit:
        return {"error": str(error)[:limit]}
    parts = {f"{_ERROR_PART}{name}": str(value) for name, value in error.parameters.items()}
    return {"error": str(error), "error_template": error.template, **parts}


_ERROR_PART = "error_parameter_"


def with_error_sentence(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stored parameters with the sentence of their error in the reader's language."""
    template = stored.get("error_template")
    if not template:
        return stored
    parts = {name.removeprefix(_ERROR_PART): value for name, value in stored.items()}
    return {**stored, "error": gettext(template).format(**parts)}


_LONG_ID = re.compile(r"(?=\w*\d)\w{20,}", re.ASCII)  # no word has a digit and so many letters


def whole_ids(text: str) -> SafeString:
    """The text as escaped HTML, with long ids wrapped in a span that CSS does not break."""
    return SafeString(_LONG_ID.sub(r'<span class="id">\g<0></span>', escape(text)))
