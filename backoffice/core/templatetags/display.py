"""Money, time and QR codes in templates: `{{ value|money:currency }}`, `{% when moment %}`, `{% qr_code address %}`."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol

import segno
from django import template
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.formatting import (
    exact_time,
    format_amount,
    format_count,
    format_day,
    format_day_of_month,
    local_time,
    time_zone_text,
    whole_ids,
)
from backoffice.core.web.middleware import environment_banner
from payments_gateway.money import CURRENCIES

register = template.Library()
register.filter(whole_ids)
register.filter("day", format_day)
register.filter("grouped", format_count)
register.simple_tag(environment_banner)


@register.simple_tag
def time_zone() -> str:
    """`Africa/Lagos (UTC+1)`: the zone of all times of the page."""
    return time_zone_text(timezone.now())


_UNITS = ((86_400, _("{n} d")), (3_600, _("{n} h")), (60, _("{n} min")))
_COUNTED_IN_HOURS = 4 * 86_400  # until a moment: of three days, "2 d" would remain at once


@register.filter
def money(value: Decimal | None, currency: str) -> SafeString | str:
    """`NGN 250,000.00`, unbreakable, with tabular figures; empty for None."""
    if value is None:
        return ""
    return format_html(
        '<span class="money"><span>{}</span> {}</span>', currency, format_amount(value, currency)
    )


@register.filter
def amount(value: Decimal, currency: str) -> str:
    """`250,000.00`: the amount alone, where the currency is shown beside it."""
    return format_amount(value, currency)


class DayOfFlow(Protocol):
    """What one currency received and sent on one day."""

    @property
    def day(self) -> date: ...
    @property
    def received(self) -> Decimal: ...
    @property
    def sent(self) -> Decimal: ...


@register.filter
def day_rows(days: Iterable[DayOfFlow], currency: str) -> SafeString:
    """A table row for each day: the day, received, sent. One string: as template nodes they took a third of the
    time of the overview.
    """
    return SafeString(
        "".join(
            f'<tr><th scope="row">{escape(format_day_of_month(one.day))}</th>'
            f'<td class="num">{format_amount(one.received, currency)}</td>'
            f'<td class="num">{format_amount(one.sent, currency)}</td></tr>\n'
            for one in days
        )
    )


@register.filter
def signed_amount(value: Decimal, currency: str) -> str:
    """`+250,000.00` or the same with a minus sign; zero has no sign."""
    sign = "" if value == 0 else "+" if value > 0 else "\N{MINUS SIGN}"
    return f"{sign}{format_amount(abs(value), currency)}"


@register.filter
def rate(value: Decimal) -> str:
    """`1,531.2930`: as many decimals as the provider reports, never with an exponent."""
    return f"{value:,f}"


# The client is not translated, so the names of its currencies are marked here.
_CURRENCY_NAMES = (gettext_noop("Nigerian naira"), gettext_noop("US dollar"), gettext_noop("Tether"))


@register.filter
def currency_name(code: str) -> str:
    """`Nigerian naira · NGN`; the code alone for an unknown currency."""
    return f"{gettext(CURRENCIES[code].name)} · {code}" if code in CURRENCIES else code


@register.simple_tag
def when(moment: datetime | None, absent: str = "") -> SafeString | str:
    """`20 Nov 2026, 10:42` in the reader's time zone, with the exact time in the `datetime` attribute."""
    if moment is None:
        return absent
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), local_time(moment))


@register.simple_tag
def clock(moment: datetime) -> SafeString:
    """`20 Nov 2026, 10:42:07`: to the second, where the order of events matters."""
    return format_html('<time datetime="{}">{}</time>', moment.isoformat(), exact_time(moment))


@register.simple_tag
def age(moment: datetime) -> SafeString:
    """`12 min` since the moment; app.js updates it while the page is open."""
    written = '<time datetime="{}" title="{}" data-age>{}</time>'
    return format_html(written, moment.isoformat(), local_time(moment), _since(moment))


@register.simple_tag
def countdown(moment: datetime) -> SafeString:
    """`in 12 min` until the moment, in hours below four days, then `passed`; app.js updates it on the open page."""
    remaining = int((moment - timezone.now()).total_seconds())
    written = '<time datetime="{}" title="{}" data-until>{}</time>'
    return format_html(written, moment.isoformat(), local_time(moment), _until(remaining))


@register.filter
def duration(seconds: int) -> str:
    """`12 min`: the largest whole unit."""
    return _largest_unit(seconds) or gettext("less than 1 min")


def _until(seconds: int) -> str:
    if seconds <= 0:
        return gettext("passed")
    if 3_600 <= seconds < _COUNTED_IN_HOURS:
        return gettext("in {time}").format(time=gettext("{n} h").format(n=seconds // 3_600))
    return gettext("in {time}").format(time=duration(seconds))


def _since(moment: datetime) -> str:
    """The largest whole unit; `less than 1 min` also for a moment ahead of our clock."""
    return duration(int((timezone.now() - moment).total_seconds()))


def _largest_unit(seconds: int) -> str:
    """`12 min`: the largest whole unit; empty for less than a minute."""
    return next((str(unit).format(n=seconds // size) for size, unit in _UNITS if seconds >= size), "")


_MAX_QR_TEXT = 500  # characters; a phone could not read a denser code from a screen
_QR_SIDE = 180


@register.simple_tag
def qr_code(text: str) -> SafeString | str:
    """An image of a QR code with exactly this text; empty if there is no text or too much."""
    if not 0 < len(text) <= _MAX_QR_TEXT:
        return ""
    source = segno.make_qr(text).svg_data_uri(scale=4, border=3, light="#fff")
    return format_html(
        '<img src="{}" width="{}" height="{}" alt="{}">',
        source,
        _QR_SIDE,
        _QR_SIDE,
        gettext("QR code of {text}").format(text=text),
    )
