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


def local_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42 WAT` in the reader's time zone, which is always named."""
    return timezone.localtime(moment).strftime("%-d %b %Y, %H:%M %Z")


def format_day(day: date) -> str:
    """`20 Nov 2026`."""
    return day.strftime("%-d %b %Y")


def local_day(moment: datetime) -> str:
    """`20 Nov 2026` in the reader's time zone."""
    return format_day(timezone.localtime(moment))


def exact_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42:07 WAT`: to the second, for comparing times."""
    return timezone.localtime(moment).strftime("%-d %b %Y, %H:%M:%S %Z")


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
