"""Money in the database: the same number comes back on either engine, is found again, and is sorted by its value. JSON
in the database: it can be loaded even if it was altered.
"""

from collections.abc import Callable
from decimal import Decimal, localcontext

import pytest
from django.core.exceptions import FieldError
from django.db import connection, transaction
from django.db.models import JSONField, Value
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.core.fields import DecimalSumField, ExactDecimalField, UnsignedDecimalField, normalized_text
from backoffice.core.web.formatting import format_amount
from backoffice.ledger.models import Balance, DayTotal, Facet, Transaction
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.forgeries import make_unreadable

pytestmark = pytest.mark.django_db

NUMBERS = [
    "0",
    "-0",
    "0.00",
    "-0.00",
    "0E+5",
    "1",
    "-1",
    "0.1",
    "0.3",
    "1E-18",
    "-1E-18",
    "1E+3",
    "1.10",
    "100",
    "250000.00",
    "1E+21",
    "12345678901234567890.12",
    "0.000001",
    "9007199254740993",
    "1.7976931348623157",
    "2.675",
    "9999999999999999999999.999999999999999999",
    "-9999999999999999999999.999999999999999999",
]


def kept(amount: Decimal, currency: str = "NGN") -> Balance:
    zero = Decimal(0)
    return Balance.objects.create(
        currency=currency,
        amount=amount,
        total_received=zero,
        total_sent=zero,
        transaction_count=0,
        as_of=timezone.now(),
    )


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_round_trips_without_trailing_zeros(text: str) -> None:
    kept(Decimal(text))
    [amount] = Balance.objects.values_list("amount", flat=True)
    assert amount == Decimal(text)
    assert f"{amount:f}" == normalized_text(Decimal(text))


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_found_in_any_notation(text: str) -> None:
    number = Decimal(text)
    kept(number)
    for way in (number, text, f"{number:f}", f"{number:E}", f"{number:.18f}"):
        assert Balance.objects.filter(amount=way).exists(), way
        assert Balance.objects.filter(amount__in=[way, Decimal("-77")]).exists(), way
    assert not Balance.objects.filter(amount=Decimal("-77")).exists()


def test_numbers_equal_as_floats_stay_distinct() -> None:
    kept(Decimal("12345678901234567890.12"), "NGN")
    kept(Decimal("12345678901234567890.13"), "USD")
    assert Balance.objects.get(amount=Decimal("12345678901234567890.13")).currency == "USD"
    assert set(Balance.objects.values_list("amount", flat=True)) == {
        Decimal("12345678901234567890.12"),
        Decimal("12345678901234567890.13"),
    }


def test_the_same_number_is_the_same_text_on_sqlite() -> None:
    kept(Decimal("1.50"), "NGN")
    kept(Decimal("1.5"), "USD")
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(DISTINCT amount) FROM ledger_balance")
        assert cursor.fetchone() == (1,)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("0.30000000000000000449", "0.300000000000000004"),
        ("1E-19", "0"),
        ("-1E-19", "0"),
        ("5E-19", "0"),
        ("1.5E-18", "0.000000000000000002"),
    ],
)
def test_rounding_after_eighteen_decimals_is_the_same_on_both_engines(given: str, stored: str) -> None:
    kept(Decimal(given))
    assert f"{Balance.objects.get().amount:f}" == stored
    assert Balance.objects.filter(amount=Decimal(given)).exists()


@pytest.mark.parametrize(
    "text", ["1E+22", "-1E+22", "9" * 22 + "." + "9" * 19, "NaN", "Infinity", "-Infinity"]
)
def test_numbers_out_of_range_are_refused_before_the_database(text: str) -> None:
    with (
        pytest.raises(ValueError, match=r"a number has too many digits|a value is not a number"),
        transaction.atomic(),
    ):
        kept(Decimal(text))
    assert not Balance.objects.exists()


@pytest.mark.parametrize("lookup", ["gt", "gte", "lt", "lte", "range", "contains", "startswith"])
def test_comparisons_that_are_wrong_for_text_are_not_offered(lookup: str) -> None:
    with pytest.raises(FieldError, match=lookup):
        Balance.objects.filter(**{f"amount__{lookup}": Decimal(9)}).exists()


@pytest.mark.parametrize("text", NUMBERS)
def test_every_stored_number_is_shown_with_all_digits(text: str) -> None:
    shown = format_amount(Decimal(text), "NGN")
    assert Decimal(shown.replace(",", "")) == Decimal(text)
    assert len(shown.partition(".")[2]) >= 2


def test_null_stays_null() -> None:
    field: ExactDecimalField = ExactDecimalField(null=True)
    assert field.get_db_prep_value(None, connection) is None
    assert field.to_python(None) is None
    assert not Balance.objects.filter(amount__isnull=True).exists()


LARGEST = "9999999999999999999999.999999999999999999"
MAGNITUDES = [
    "0",
    "1E-18",
    "2E-18",
    "0.1",
    "0.10",
    "0.9",
    "1",
    "1.000000000000000001",
    "2",
    "9",
    "9.99",
    "10",
    "11",
]
MAGNITUDES += [
    "99",
    "100",
    "1E+3",
    "9007199254740992",
    "9007199254740993",
    "1E+21",
    LARGEST[:-1] + "8",
    LARGEST,
]


def mirrored(*amounts: str) -> None:
    now = timezone.now()
    texts = (
        "currency type status direction date from_currency sender username counterparty business_id version"
    )
    same = dict.fromkeys(texts.split(), "") | {
        "facet_id": 1,
        "occurred_at": now,
        "first_seen_at": now,
        "digest": b"",
    }
    Transaction.objects.bulk_create(
        Transaction(transaction_id=f"T{number}", amount=Decimal(amount), **same)
        for number, amount in enumerate(amounts)
    )


@pytest.mark.parametrize("text", MAGNITUDES)
def test_an_unsigned_amount_round_trips_without_trailing_zeros(text: str) -> None:
    mirrored(text)
    amount = Transaction.objects.get().amount
    assert f"{amount:f}" == normalized_text(Decimal(text))
    assert Transaction.objects.filter(amount=text, amount__in=[Decimal(text)]).exists()


def test_unsigned_amounts_sort_by_value() -> None:
    shuffled = MAGNITUDES[::2] + MAGNITUDES[::-1] + MAGNITUDES[1::2]
    mirrored(*shuffled)
    assert list(Transaction.objects.order_by("amount").values_list("amount", flat=True)) == sorted(
        map(Decimal, shuffled)
    )


COMPARISONS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "gt": Decimal.__gt__,
    "gte": Decimal.__ge__,
    "lt": Decimal.__lt__,
    "lte": Decimal.__le__,
}


@pytest.mark.parametrize("lookup", COMPARISONS)
@pytest.mark.parametrize("text", MAGNITUDES)
def test_unsigned_amounts_compare_by_value(text: str, lookup: str) -> None:
    mirrored(*MAGNITUDES)
    found = Transaction.objects.filter(**{f"amount__{lookup}": text}).values_list("amount", flat=True)
    assert sorted(found) == [
        amount for amount in map(Decimal, MAGNITUDES) if COMPARISONS[lookup](amount, Decimal(text))
    ]


def test_an_amount_range_includes_both_ends() -> None:
    mirrored(*MAGNITUDES)
    found = Transaction.objects.filter(amount__range=("0.9", Decimal(10))).values_list("amount", flat=True)
    assert sorted(found) == [
        Decimal(text) for text in ("0.9", "1", "1.000000000000000001", "2", "9", "9.99", "10")
    ]


def test_a_signed_amount_is_refused_by_an_unsigned_field() -> None:
    field: UnsignedDecimalField = UnsignedDecimalField()
    with pytest.raises(ValueError, match="cannot be negative"):
        field.get_db_prep_value(Decimal("-0.01"), connection)
    assert field.get_prep_value(Decimal("-0")) == 0
    with pytest.raises(FieldError, match="contains"):
        Transaction.objects.filter(amount__contains="1").exists()


def test_a_sum_of_the_largest_amounts_fits() -> None:
    facet = Facet.objects.create(currency="NGN", type="deposit", status="fulfilled", direction="in")
    with localcontext(prec=100):
        total = Decimal(LARGEST) * 3
    DayTotal.objects.create(
        day=timezone.now().date(), facet=facet, count=3, amount=total, fee=Decimal("-0.5")
    )
    kept_total = DayTotal.objects.get()
    assert f"{kept_total.amount:f}" == "29999999999999999999999.999999999999999997"
    assert kept_total.fee == Decimal("-0.5")
    assert DecimalSumField().get_prep_value(Decimal("1E+41")) == Decimal("1E+41")


def test_json_that_python_cannot_read_is_loaded_as_empty(preparer: User) -> None:
    make_unreadable(factories.prepared(preparer))
    assert Operation.objects.get().payload == {}


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, "{", "text"])
def test_what_is_nested_too_deeply_or_no_json_is_loaded_as_empty(text: str) -> None:
    column = Operation._meta.get_field("payload")
    assert column.from_db_value(text, None, connection) == {}


@pytest.mark.parametrize("value", [{"a": "text", "b": 1.5}, ["text"], "text", "{", 5, None])
def test_other_json_is_loaded_as_it_is(preparer: User, value: object) -> None:
    operation = factories.prepared(preparer)
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(closing_reason=Value(value, JSONField()))
    assert Operation.objects.get().closing_reason == value


def test_a_part_of_json_is_loaded_as_it_is(preparer: User) -> None:
    factories.prepared(preparer)
    [payload] = Operation.objects.values_list("payload", flat=True)
    parts = ("currency", "account_number")
    [read] = Operation.objects.values_list(*(f"payload__{part}" for part in parts))
    assert read == tuple(payload[part] for part in parts)
