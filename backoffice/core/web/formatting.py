"""Text forms of amounts, times, codes and long ids, for pages and files."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from html import escape
from typing import Any

from django.db.models import TextChoices
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import pgettext_lazy

from backoffice.core.fields import normalized_text
from payments_gateway.money import CURRENCIES


def format_amount(amount: Decimal, currency: str) -> str:
    """`250,000.00`: grouped, with the currency's number of decimals, or more if the amount has more."""
    default_decimals = CURRENCIES[currency].decimals if currency in CURRENCIES else 0
    decimals = max(default_decimals, len(normalized_text(amount).partition(".")[2]))
    return f"{amount:,.{decimals}f}"


_AMOUNT = re.compile(r"[0-9]{1,22}(\.[0-9]{1,18})?")
_GROUPED_AMOUNT = re.compile(r"[0-9]{1,3}([ ,\u00a0\u202f][0-9]{3})+(\.[0-9]+)?")
_SEPARATOR = re.compile(r"[ ,\u00a0\u202f]")


def parse_amount(text: str) -> Decimal | None:
    """`125000`, `125,000` and `125 000.00` as 125000; None for any other text. For searches, not for payments."""
    plain = _SEPARATOR.sub("", text.strip()) if _GROUPED_AMOUNT.fullmatch(text.strip()) else text.strip()
    return Decimal(plain) if _AMOUNT.fullmatch(plain) else None


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
    return str(codes(stored["code"]).label).format(**stored)


_LONG_ID = re.compile(r"(?=\w*\d)\w{20,}", re.ASCII)  # no word has a digit and so many letters


def whole_ids(text: str) -> SafeString:
    """The text as escaped HTML, with long ids wrapped in a span that CSS does not break."""
    return SafeString(_LONG_ID.sub(r'<span class="id">\g<0></span>', escape(text)))
