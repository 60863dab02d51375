"""How templates write money and time."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.utils import timezone

MOMENT = datetime(2026, 11, 20, 9, 42, 7, tzinfo=UTC)


def rendered(source: str, **values: object) -> str:
    return Template("{% load display %}" + source).render(Context(values))


@pytest.mark.parametrize(
    ("amount", "currency", "written"),
    [
        ("250000", "NGN", "250,000.00"),
        ("19877.25", "USDT", "19,877.250000"),
        ("0.001", "NGN", "0.001"),
        ("5.5", "XAF", "5.5"),
    ],
)
def test_money_has_its_currency_and_decimals(amount: str, currency: str, written: str) -> None:
    html = rendered("{{ amount|money:currency }}", amount=Decimal(amount), currency=currency)
    assert html == f'<span class="money"><span>{currency}</span> {written}</span>'


def test_a_missing_amount_is_empty() -> None:
    assert rendered("{{ amount|money:'NGN' }}", amount=None) == ""


def test_a_currency_with_markup_is_escaped() -> None:
    assert "<b>" not in rendered("{{ amount|money:currency }}", amount=Decimal(1), currency="<b>")


@pytest.mark.parametrize(
    ("zone", "written"),
    [("Africa/Lagos", "20 Nov 2026, 10:42 WAT"), ("Europe/Berlin", "20 Nov 2026, 10:42 CET")],
)
def test_a_time_is_in_the_readers_zone_and_names_it(zone: str, written: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        html = rendered("{% when moment %}", moment=MOMENT)
    assert html == f'<time datetime="2026-11-20T09:42:07+00:00">{written}</time>'


def test_the_timeline_shows_seconds() -> None:
    with timezone.override(ZoneInfo("Africa/Lagos")):
        assert "20 Nov 2026, 10:42:07 WAT" in rendered("{% clock moment %}", moment=MOMENT)


@pytest.mark.parametrize(
    ("ago", "written"),
    [
        (timedelta(seconds=-30), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=12), "12 min"),
        (timedelta(hours=3, minutes=59), "3 h"),
        (timedelta(days=2, hours=3), "2 d"),
    ],
)
def test_an_age_is_its_largest_whole_unit(ago: timedelta, written: str) -> None:
    html = rendered("{% age moment %}", moment=timezone.now() - ago)
    assert html.endswith(f"data-age>{written}</time>")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (
            "Reversal of 6b028d38161a52ca0e4b7609",
            'Reversal of <span class="id">6b028d38161a52ca0e4b7609</span>',
        ),
        ("0123456789 & 66f1c0ffee", "0123456789 &amp; 66f1c0ffee"),
        ("Donaudampfschifffahrtsgesellschaft", "Donaudampfschifffahrtsgesellschaft"),
        ("<b>6b028d38161a52ca0e4b7609", '&lt;b&gt;<span class="id">6b028d38161a52ca0e4b7609</span>'),
        ("", ""),
    ],
)
def test_only_long_ids_are_not_wrapped(text: str, written: str) -> None:
    assert rendered("{{ text|whole_ids }}", text=text) == written
