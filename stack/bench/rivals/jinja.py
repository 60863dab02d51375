"""Jinja2 as Django's documentation sets it up, with `static`, `url`, and the product's own words for money and time."""

from typing import Any

from django.template.defaultfilters import pluralize
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from jinja2 import Environment

from backoffice.core.display import format_amount, local_day, local_time
from backoffice.operations.transaction_rows import SIGNS, TONES


def environment(**options: Any) -> Environment:
    """What the backend asks for."""
    made = Environment(**{"trim_blocks": True, "lstrip_blocks": True, **options})  # noqa: S701 - the backend sets autoescape
    made.globals.update(
        static=static,
        url=_url,
        local_time=local_time,
        clock=_clock,
        signs=SIGNS,
        tones=TONES,
        local_day=local_day,
    )
    made.filters.update(amount=format_amount, plural=pluralize)
    return made


def _url(name: str, *args: Any) -> str:
    return reverse(name, args=args)


def _clock(moment: Any) -> str:
    return timezone.localtime(moment).strftime("%-d %b %Y, %H:%M:%S %Z")
