"""Text forms of amounts, times, codes, errors of client and system, and long ids, for pages and files."""

import errno
import logging
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from html import escape
from typing import Any, ParamSpec, Protocol

from django.db.models import TextChoices
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import get_language, gettext, gettext_noop, pgettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from backoffice.core.fields import normalized_text
from payments_gateway import CURRENCIES
from payments_gateway.errors import sentence


def format_amount(amount: Decimal, currency: str) -> str:
    """`250,000.00`: grouped, with the currency's number of decimals, or more if the amount has more."""
    default_decimals = CURRENCIES[currency].decimals if currency in CURRENCIES else 0
    decimals = max(default_decimals, len(normalized_text(amount).partition(".")[2]))
    return f"{amount:,.{decimals}f}"


_BETWEEN_THOUSANDS = {"fr": "\N{NARROW NO-BREAK SPACE}"}


def format_count(number: int) -> str:
    """`1,234`, grouped as in the reader's language. Amounts are the same in every language (`format_amount`)."""
    return f"{number:,}".replace(",", _BETWEEN_THOUSANDS.get(get_language() or "", ","))


_COUNTRIES = {
    "AE": _("United Arab Emirates"),
    "BF": _("Burkina Faso"),
    "BJ": _("Benin"),
    "BW": _("Botswana"),
    "CI": _("Côte d'Ivoire"),
    "CM": _("Cameroon"),
    "CN": _("China"),
    "EG": _("Egypt"),
    "ET": _("Ethiopia"),
    "GA": _("Gabon"),
    "GB": _("United Kingdom"),
    "GH": _("Ghana"),
    "GM": _("Gambia"),
    "GN": _("Guinea"),
    "IN": _("India"),
    "KE": _("Kenya"),
    "LR": _("Liberia"),
    "MA": _("Morocco"),
    "ML": _("Mali"),
    "NE": _("Niger"),
    "NG": _("Nigeria"),
    "RW": _("Rwanda"),
    "SL": _("Sierra Leone"),
    "SN": _("Senegal"),
    "TG": _("Togo"),
    "TZ": _("Tanzania"),
    "UG": _("Uganda"),
    "US": _("United States"),
    "ZA": _("South Africa"),
    "ZM": _("Zambia"),
}


def country_name(code: str) -> str:
    """`Nigeria` for `NG`; a code without a name here unchanged."""
    return str(_COUNTRIES.get(code.upper(), code))


def quoted(text: str) -> str:
    """`“text”`, with the quotation marks of the reader's language."""
    return gettext("“{text}”").format(text=text)


def labelled(label: object, text: str) -> str:
    """`label: text`, with the space before the colon that the reader's language needs."""
    return gettext("{label}: {text}").format(label=label, text=text)


def sort_key(text: str) -> str:
    """Sorts texts for readers: without case and accents."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().casefold()


_SEPARATED_AMOUNT = re.compile(
    r"[1-9][0-9]{0,2}(?P<separator>[, \u00a0\u2009\u202f])[0-9]{3}((?P=separator)[0-9]{3})*(\.[0-9]+)?"
)


def without_separators(text: str) -> str:
    """`5000.50` for `5,000.50` or `5 000.50`; any other text unchanged.

    The decimal point is a point in every language, as on the screen. So `5.000,50`, `1,5` and `0,005`, which no one
    writes for five, remain and are refused.
    """
    separated = _SEPARATED_AMOUNT.fullmatch(text)
    return text.replace(separated["separator"], "") if separated else text


_AMOUNT = re.compile(r"[0-9]{1,22}(\.[0-9]{1,18})?")


def searched_amount(text: str) -> Decimal | None:
    """`125000`, `125,000` and `125 000.00` as 125000; None for any other text."""
    plain = without_separators(text.strip())
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
    language = get_language()
    return f"{_day(language, day.day)} {_month(language, day.month)}"


@cache
def _day(_language: str | None, number: int) -> str:
    """In the active language: French writes the first of a month as an ordinal."""
    return pgettext("first day of a month", "1") if number == 1 else str(number)


@cache
def _month(_language: str | None, number: int) -> str:
    """In the active language: looking it up takes most of the time of a table of days."""
    return str(_MONTHS[number - 1])


def local_day(moment: datetime) -> str:
    """`20 Nov 2026` in the reader's time zone."""
    return format_day(timezone.localtime(moment))


def last_day(end: datetime) -> str:
    """The last day before this end, which is a midnight; the time of the end where it is none for the reader."""
    is_midnight = timezone.localtime(end).time() == time.min
    return local_day(end - timedelta(seconds=1)) if is_midnight else local_time(end)


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


logger = logging.getLogger(__name__)
Stored = ParamSpec("Stored")
UNREADABLE_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a function raises that reads stored values, if someone altered them in the database."""


def in_words(words: Callable[Stored, str], *stored: Stored.args, **named: Stored.kwargs) -> str:
    """The sentence that `words` makes of stored values; if someone altered them, `Cannot be read:` and the values.

    So that a page shows a forged row and all others.
    """
    try:
        return words(*stored, **named)
    except UNREADABLE_ERRORS:
        logger.exception("Stored values cannot be read")
        return unreadable_text(*stored)


_MOST_UNREADABLE = 500  # characters


def unreadable_text(*stored: object) -> str:
    """`Cannot be read: ['x']`."""
    values = ", ".join(map(str, stored))
    return gettext("Cannot be read: {value}").format(value=Truncator(values).chars(_MOST_UNREADABLE))


def code_sentence(codes: type[TextChoices], stored: Mapping[str, Any]) -> str:
    """A stored code and its parameters in words: the label of the code, with the parameters in its braces.

    A number among them is a count.
    """
    parameters = {
        name: format_count(value) if isinstance(value, int) else value
        for name, value in with_error_sentence(stored).items()
    }
    return str(codes(stored["code"]).label).format(**parameters)


class TranslatableError(Protocol):
    """An error whose message is a template of our own with parameters, or, without a template, someone else's."""

    @property
    def template(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...


def error_sentence(error: TranslatableError) -> str:
    """An error of the client in the reader's language; what the provider itself said stays as it is."""
    return sentence(error.template, error.parameters, gettext) if error.template else str(error)


def stored_error(error: TranslatableError, *, limit: int = 500) -> dict[str, str]:
    """The parameters to store of an error: its English sentence, and the parts for `with_error_sentence`.

    Only the sentence if it is the provider's own, or longer than `limit` characters.
    """
    if not error.template or len(str(error)) > limit:
        return {"error": str(error)[:limit]}
    parts = {f"{_ERROR_PART}{name}": str(value) for name, value in error.parameters.items()}
    return {"error": str(error), "error_template": error.template, **parts}


_ERROR_PART = "error_parameter_"

_SYSTEM_ERRORS = {
    errno.ENOSPC: gettext_noop("the disk is full"),
    errno.EDQUOT: gettext_noop("the disk is full"),
    errno.EROFS: gettext_noop("the disk is read-only"),
    errno.EACCES: gettext_noop("access is denied"),
    errno.EPERM: gettext_noop("access is denied"),
    errno.ENOENT: gettext_noop("the file or its folder does not exist"),
    errno.EISDIR: gettext_noop("it is a folder"),
    errno.ECONNREFUSED: gettext_noop("the connection was refused"),
    errno.ETIMEDOUT: gettext_noop("the time limit was exceeded"),
}
_OTHER_SYSTEM_ERROR = gettext_noop("the disk or the network failed")


def system_error_template(error: Exception) -> str:
    """The English sentence of an error of the operating system, for `gettext` or as a stored `error_template`."""
    if isinstance(error, TimeoutError):
        return _SYSTEM_ERRORS[errno.ETIMEDOUT]
    return _SYSTEM_ERRORS.get(getattr(error, "errno", None) or 0, _OTHER_SYSTEM_ERROR)


def with_error_sentence(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """The stored parameters with the sentence of their error in the reader's language."""
    template = stored.get("error_template")
    if not template:
        return stored
    parts = {name.removeprefix(_ERROR_PART): value for name, value in stored.items()}
    return {**stored, "error": sentence(template, parts, gettext)}


_LONG_ID = re.compile(r"(?=\w*\d)\w{20,}", re.ASCII)  # no word has a digit and so many letters


def long_ids(text: str) -> list[str]:
    """The long ids in the text, such as that of the transaction in `Reversal of 6b028d38161a52ca0e4b7609`."""
    return _LONG_ID.findall(text)


def whole_ids(text: str) -> SafeString:
    """The text as escaped HTML, with long ids wrapped in a span that CSS does not break."""
    return SafeString(_LONG_ID.sub(r'<span class="id">\g<0></span>', escape(text)))


_SINGLE_SLASH = re.compile(r"(?<!/)/(?=[^/\s])")


def breakable_urls(text: str) -> SafeString:
    """The text as escaped HTML, in which a line may end after the slashes of a URL, but not after https://."""
    return SafeString(_SINGLE_SLASH.sub("/<wbr>", escape(text)) if "://" in text else escape(text))
