"""How templates write money, counts and time."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template
from django.utils import timezone, translation

from backoffice.audit.destinations import ProblemCode, problem_sentence
from backoffice.audit.verification import ChainVerification, FaultCode, fault_sentence
from backoffice.core.web.formatting import (
    exact_zoned_time,
    format_day,
    last_day,
    time_zone_text,
    zoned_time,
)
from backoffice.ledger.statements.continuity import CappedCount
from backoffice.ledger.transactions.listing import TransactionCount
from backoffice.reports.errors import FailureCode, failure_sentence

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
    [("Africa/Lagos", "20 Nov 2026, 10:42"), ("America/New_York", "20 Nov 2026, 04:42")],
)
def test_a_time_is_in_the_readers_zone(zone: str, written: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        html = rendered("{% when moment %}", moment=MOMENT)
    assert html == f'<time datetime="2026-11-20T09:42:07+00:00">{written}</time>'


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("Africa/Lagos", "Africa/Lagos (UTC+1)"),
        ("Europe/Berlin", "Europe/Berlin (UTC+1 today)"),
        ("America/New_York", "America/New_York (UTC-5 today)"),
        ("Asia/Kolkata", "Asia/Kolkata (UTC+5:30)"),
        ("America/Caracas", "America/Caracas (UTC-4)"),
        ("Pacific/Marquesas", "Pacific/Marquesas (UTC-9:30)"),
        ("Africa/Accra", "Africa/Accra (UTC)"),
        ("UTC", "UTC"),
    ],
)
def test_a_page_names_the_zone_and_its_offset(zone: str, written: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        assert time_zone_text(MOMENT) == written


def test_a_time_that_is_stored_mailed_or_exported_names_its_zone() -> None:
    with timezone.override(ZoneInfo("Africa/Lagos")):
        assert zoned_time(MOMENT) == "20 Nov 2026, 10:42 WAT"
        assert exact_zoned_time(MOMENT) == "20 Nov 2026, 10:42:07 WAT"


@pytest.mark.parametrize(
    ("language", "day", "written"),
    [
        ("en", 1, "1 Nov 2026"),
        ("fr", 1, "1er nov. 2026"),
        ("fr", 2, "2 nov. 2026"),
        ("en", 21, "21 Nov 2026"),
    ],
)
def test_the_first_day_of_a_month_is_an_ordinal_in_french(language: str, day: int, written: str) -> None:
    with translation.override(language):
        assert format_day(date(2026, 11, day)) == written


def test_the_timeline_shows_seconds() -> None:
    with timezone.override(ZoneInfo("Africa/Lagos")):
        assert ">20 Nov 2026, 10:42:07<" in rendered("{% clock moment %}", moment=MOMENT)


@pytest.mark.parametrize(
    ("ago", "written"),
    [
        (timedelta(seconds=-30), "less than 1 min"),
        (timedelta(seconds=59), "less than 1 min"),
        (timedelta(minutes=12), "12 min"),
        (timedelta(hours=3, minutes=59), "3 h"),
        (timedelta(days=2, hours=3), "2 d"),
    ],
)
def test_an_age_is_its_largest_whole_unit(ago: timedelta, written: str) -> None:
    html = rendered("{% age moment %}", moment=timezone.now() - ago)
    assert html.endswith(f"data-age>{written}</time>")


@pytest.mark.parametrize(
    ("remaining", "written"),
    [
        (timedelta(seconds=-1), "passed"),
        (timedelta(minutes=12, seconds=30), "in 12 min"),
        (timedelta(days=3, seconds=-30), "in 71 h"),
        (timedelta(days=4, seconds=-30), "in 95 h"),
        (timedelta(days=4, seconds=30), "in 4 d"),
    ],
)
def test_a_countdown_is_in_hours_below_four_days(remaining: timedelta, written: str) -> None:
    html = rendered("{% countdown moment %}", moment=timezone.now() + remaining)
    assert html.endswith(f"data-until>{written}</time>")


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


@pytest.mark.parametrize(
    ("rate", "written"), [("1531.2930", "1,531.2930"), ("0.00000065", "0.00000065"), ("1.5E+3", "1,500")]
)
@pytest.mark.parametrize("language", ["en", "fr"])
def test_a_rate_is_alike_in_every_language_and_has_no_exponent(
    rate: str, written: str, language: str
) -> None:
    with translation.override(language):
        assert rendered("{{ rate|rate }}", rate=Decimal(rate)) == written


COUNTS = [
    ("en", "999", "1,234,567"),
    ("fr", "999", "1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567"),
]


@pytest.mark.parametrize(("language", "small", "large"), COUNTS)
def test_a_count_is_grouped_as_in_the_readers_language_and_an_amount_is_not(
    language: str, small: str, large: str
) -> None:
    with translation.override(language):
        assert rendered("{{ n|grouped }}", n=999) == small
        assert rendered("{{ n|grouped }}", n=1_234_567) == large
        assert rendered("{{ n|amount:'NGN' }}", n=Decimal(1_234_567)) == "1,234,567.00"


@pytest.mark.parametrize(("language", "_small", "large"), COUNTS)
def test_a_count_within_a_sentence_is_grouped_as_in_the_readers_language(
    language: str, _small: str, large: str
) -> None:
    number = 1_234_567
    fault = {"code": FaultCode.MISSING, "position": number, "other": number}
    with translation.override(language):
        texts = [
            str(CappedCount(number)),
            str(CappedCount(number, is_more=True)),
            TransactionCount(number, is_exact=True).text,
            str(ChainVerification(number, "")),
            failure_sentence({"code": FailureCode.CELL_TOO_LONG, "limit": number}),
            problem_sentence({"code": ProblemCode.TOO_LARGE, "limit": number}),
        ]
        assert all(text.count(large) == 1 for text in texts), texts
        assert fault_sentence(fault).count(large) == 2


@pytest.mark.parametrize(
    ("zone", "written"), [("Africa/Lagos", "20 Nov 2026"), ("Asia/Tokyo", "21 Nov 2026, 08:00")]
)
def test_the_last_day_is_a_time_where_it_ends_within_a_day(zone: str, written: str) -> None:
    with timezone.override(ZoneInfo(zone)):
        assert last_day(datetime(2026, 11, 20, 23, tzinfo=UTC)) == written
