"""How money, time and long ids are written for people."""

import re
from datetime import date, datetime
from decimal import Decimal
from html import escape

from django.utils import timezone
from django.utils.safestring import SafeString

from backoffice.core.fields import normalized_text
from payments_gateway.money import CURRENCIES


def format_amount(amount: Decimal, currency: str) -> str:
    """`250,000.00`: grouped, with the currency's own number of decimals, or more if the amount has more."""
    usual = CURRENCIES[currency].decimals if currency in CURRENCIES else 0
    places = max(usual, len(normalized_text(amount).partition(".")[2]))
    return f"{amount:,.{places}f}"


def mask_account(number: str) -> str:
    """`••6789`: enough to recognise an account, not to use it."""
    return f"••{number[-4:]}"


def local_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42 WAT` in the time zone of the person who looks, which is always named."""
    return timezone.localtime(moment).strftime("%-d %b %Y, %H:%M %Z")


def format_day(day: date) -> str:
    """`20 Nov 2026`."""
    return day.strftime("%-d %b %Y")


def local_day(moment: datetime) -> str:
    """The same in the time zone of the person who looks."""
    return format_day(timezone.localtime(moment))


def exact_time(moment: datetime) -> str:
    """`20 Nov 2026, 10:42:07 WAT`: to the second, where two clocks are held against each other."""
    return timezone.localtime(moment).strftime("%-d %b %Y, %H:%M:%S %Z")


def local_time_of_iso(text: str) -> str:
    """The same for a moment that is kept as text, in ISO 8601; any other text as it is."""
    try:
        return local_time(datetime.fromisoformat(text))
    except ValueError:
        return text


_LONG_ID = re.compile(
    r"(?=\w*\d)\w{20,}", re.ASCII
)  # no word of any language has a digit and so many letters


def whole_ids(text: str) -> SafeString:
    """The text as HTML in which a long id goes to a line of its own rather than break in two."""
    return SafeString(_LONG_ID.sub(r'<span class="id">\g<0></span>', escape(text)))
