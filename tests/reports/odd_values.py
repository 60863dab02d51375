"""Rows with everything that a file of values can trip over, in a table of the product."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from backoffice.ledger.models import Facet, Transaction

TEXTS = (
    "",
    "plain",
    'say "yes"',
    "a,b",
    "two\nlines",
    "two\r\nlines",
    "one\rreturn",
    " spaced ",
    "Ada Obí, ₦ 漢字 🏦",
    "\\.",
    "\\N",
    "NULL",
    '""',
    "'=1",
    "1-2",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    '=HYPERLINK("http://example.com","pay")',
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1",
    "\uff20SUM(A1)",
    " =1+1",
    "\u00a0=1+1",
    "\ufeff+1",
    "\u200b-1",
    "\u3000@x",
    " \t=1",
    "  ",
    "\u00a0",
    "100%",
    "%s",
    "Ada;=1+1",
    "Ada\t-1",
    "Ada;  @SUM(A1);\u00a0\uff0b1",
    'Ada; "=1+1"',
    "two\n=lines\r\n+1\r-1",
    "\t;=1",
    "a;b;'=1;1-2;\t;",
    "\u200b;\ufeff=1",
    '{"a": ";=1"}',
)
MOMENTS = (
    datetime(2026, 3, 29, 0, 59, 59, 999_999, tzinfo=UTC),  # London goes to summer time at one o'clock
    datetime(2026, 3, 29, 1, 0, tzinfo=UTC),
    datetime(2026, 10, 25, 0, 30, tzinfo=UTC),  # half past one for the first time
    datetime(2026, 10, 25, 1, 30, 0, 1, tzinfo=UTC),  # and for the second
    datetime(2026, 7, 1, 12, 0, 0, 250, tzinfo=UTC),
    None,
)
AMOUNTS = (
    Decimal("0"),
    Decimal("0.000000000000000001"),
    Decimal("9999999999999999999999.999999999999999999"),
    Decimal("250000.00"),
    Decimal("1E+3"),
    Decimal("0.10"),
)
SIGNED = (
    None,
    Decimal("-5"),
    Decimal("-0.000000000000000001"),
    Decimal("0.00"),
    Decimal("1.50"),
    Decimal("-0"),
)
FLAGS = (None, True, False)


def stored() -> list[Transaction]:
    """The rows, the first one first in the order of the report."""
    facet = Facet.objects.create(currency="NGN", type="withdrawal", status="fulfilled", direction="out")
    newest = datetime(2026, 12, 31, tzinfo=UTC)
    return Transaction.objects.bulk_create(
        _row(number, text, facet, newest - timedelta(hours=number)) for number, text in enumerate(TEXTS)
    )


def _row(number: int, text: str, facet: Facet, occurred_at: datetime) -> Transaction:
    return Transaction(
        transaction_id=f"odd-{number:02}",
        facet=facet,
        currency="NGN",
        type="withdrawal",
        status="fulfilled",
        direction="out",
        occurred_at=occurred_at,
        created_at=MOMENTS[number % len(MOMENTS)],
        date="",
        amount=AMOUNTS[number % len(AMOUNTS)],
        fee=SIGNED[number % len(SIGNED)],
        is_from_registered_user=FLAGS[number % len(FLAGS)],
        from_currency="",
        sender=text[::-1],
        username="",
        counterparty=text,
        business_id="",
        version="",
        digest=b"",
        first_seen_at=occurred_at,
    )
