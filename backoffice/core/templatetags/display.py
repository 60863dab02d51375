"""Money and time in templates: `{{ value|money:currency }}`, `{% when moment %}`, `{% age moment %}`."""

from datetime import datetime
from decimal import Decimal

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from backoffice.core.display import exact_time, format_amount, local_time
from backoffice.core.ids import whole_ids
from payments_gateway.money import CURRENCIES

register = template.Library()
register.filter(whole_ids)
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


@register.filter
def money(value: Decimal | None, currency: str) -> SafeString | str:
    """`NGN 250,000.00`, unbreakable, with tabular figures; nothing for no amount."""
    if value is None:
        return ""
    return format_html(
        '<span class="money"><span>{}</span> {}</span>', currency, format_amount(value, currency)
    )


@register.filter
def amount(value: Decimal, currency: str) -> str:
    """`250,000.00`: the amount alone, where the currency stands beside it."""
    return format_amount(value, currency)


@register.filter
def grouped(number: int) -> str:
    """`1,234,567`."""
    return f"{number:,}"


@register.filter
def currency_name(code: str) -> str:
    """`Nigerian naira`; the code itself for a currency we have no name for."""
    return CURRENCIES[code].name if code in CURRENCIES else code


@register.simple_tag
def when(moment: datetime | None, absent: str = "") -> SafeString | str:
    """`20 Nov 2026, 10:42 WAT` in the reader's own time zone, exact for machines."""
    if moment is None:
        return absent
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), local_time(moment))


@register.simple_tag
def clock(moment: datetime) -> SafeString:
    """`20 Nov 2026, 10:42:07 WAT`: to the second, where the order of things matters."""
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), exact_time(moment))


@register.simple_tag
def age(moment: datetime) -> SafeString:
    """`12 min` since the moment; app.js lets it grow while the page stays open."""
    written = '<time datetime="{}" title="{}" data-age>{}</time>'
    return format_html(written, moment.isoformat(), local_time(moment), _since(moment))


@register.simple_tag
def countdown(moment: datetime) -> SafeString:
    """`in 12 min` until the moment, then `passed`; app.js counts the seconds while the page stays open."""
    left = int((moment - timezone.now()).total_seconds())
    written = '<time datetime="{}" title="{}" data-until>{}</time>'
    words = "passed" if left <= 0 else f"in {_whole(left) or 'less than 1 min'}"
    return format_html(written, moment.isoformat(), local_time(moment), words)


def _since(moment: datetime) -> str:
    """The largest whole unit. A moment ahead of our clock counts as now."""
    return _whole(int((timezone.now() - moment).total_seconds())) or "just now"


def _whole(seconds: int) -> str:
    """`12 min`: the largest unit that fits; empty for less than a minute."""
    return next((f"{seconds // size} {unit}" for size, unit in _UNITS if seconds >= size), "")
