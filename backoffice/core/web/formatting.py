"""Text forms of amounts, times, codes and long ids, for pages and files."""

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from html import escape
from typing import Any

from django.db.models import TextChoices
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext, pgettext_lazy

from backoffice.core.fields import normalized_text
from payments_gateway.money import CURRENCIES


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
    """`20 Nov 2026, 10:42` in the reader's time zone, for pages: each page names the zone once."""
    local = timezone.localtime(moment)
    return f"{format_day(local)}, {local:%H:%M}"


def zoned_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42 WAT`, for what is stored, mailed or exported."""
    return f"{local_time(moment)} {timezone.localtime(moment):%Z}"


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
    """`20 Nov 2026, 10:42:07`: `local_time` to the second, for comparing times."""
    local = timezone.localtime(moment)
    return f"{format_day(local)}, {local:%H:%M:%S}"


def exact_zoned_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42:07 WAT`: `zoned_time` to the second."""
    return f"{exact_time(moment)} {timezone.localtime(moment):%Z}"


def time_zone_text(now: datetime) -> str:
    """`Africa/Lagos (UTC+1)`, `Europe/Berlin (UTC+1 today)` or `UTC`: the reader's time zone."""
    zone = str(timezone.get_current_timezone())
    offset = _offset(now)
    if zone == offset:
        return zone
    if _offset(now + timedelta(days=182)) == offset:
        return f"{zone} ({offset})"
    return gettext("{zone} ({offset} today)").format(zone=zone, offset=offset)


def _offset(moment: datetime) -> str:
    """`UTC+1`, `UTC+5:30` or `UTC`."""
    minutes = int((timezone.localtime(moment).utcoffset() or timedelta()).total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    amount = f"{hours}:{rest:02}" if rest else f"{hours}"
    return f"UTC{'-' if minutes < 0 else '+'}{amount}" if minutes else "UTC"


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
