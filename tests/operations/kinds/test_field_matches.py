"""A transaction is compared with what we sent field by field; what is not provided neither matches nor differs."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from backoffice.operations.kinds.base import FieldMatch, MoneyKind, attempt_match_fields
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt
from payments_gateway import TransactionRecord
from tests.operations.kinds.samples import SAMPLES

MONEY = [name for name, kind in KINDS.items() if isinstance(kind, MoneyKind)]
SENT_AT = datetime(2026, 11, 20, 9, 42, tzinfo=UTC)
TYPES = {
    "withdrawal": "withdrawal",
    "conversion": "conversion",
    "transfer": "transfer",
    "wallet_transfer": "sent",
}
OTHER_END = {"transfer": "username", "wallet_transfer": "username", "conversion": "fromCurrency"}


def recorded(name: str, **changes: Any) -> TransactionRecord:
    """The provider's record of the sample, as it may be listed."""
    debit = KINDS[name].debit(SAMPLES[name])
    assert debit is not None
    members = {
        "transactionId": "T-1",
        "type": TYPES[name],
        "currency": debit.currency,
        "amount": debit.amount,
        "status": "fullfiled",
    }
    return TransactionRecord.model_validate(members | changes)


def field_matches(name: str, record: TransactionRecord) -> dict[str, FieldMatch]:
    kind = KINDS[name]
    assert isinstance(kind, MoneyKind)
    found = kind.match_fields(SAMPLES[name], record)
    assert kind.is_match(SAMPLES[name], record) == all(
        field_match.matches is not False for field_match in found
    )
    return {field_match.label: field_match for field_match in found}


@pytest.mark.parametrize("name", MONEY)
def test_all_fields_of_its_own_transaction_match(name: str) -> None:
    assert {field_match.matches for field_match in field_matches(name, recorded(name)).values()} == {
        True,
        None,
    }


@pytest.mark.parametrize("name", MONEY)
@pytest.mark.parametrize(
    ("label", "change"),
    [
        ("Type", {"type": "deposit"}),
        ("Currency", {"currency": "XYZ"}),
        ("Amount", {"amount": Decimal("0.5")}),
    ],
)
def test_another_type_currency_or_amount_differs(name: str, label: str, change: dict[str, Any]) -> None:
    found = field_matches(name, recorded(name, **change))
    assert [field_match.label for field_match in found.values() if field_match.matches is False] == [label]


@pytest.mark.parametrize(("name", "member"), OTHER_END.items())
def test_another_counterparty_differs_and_a_missing_one_is_not_provided(name: str, member: str) -> None:
    label = list(field_matches(name, recorded(name)))[-1]
    assert field_matches(name, recorded(name))[label].matches is None
    assert field_matches(name, recorded(name, **{member: "somebody.else"}))[label].matches is False


def test_the_receiver_of_a_transfer_matches_in_whatever_case_the_provider_writes_it() -> None:
    """Usernames are compared without case everywhere: otherwise a transfer that was made would not be found."""
    label = list(field_matches("transfer", recorded("transfer")))[-1]
    found = field_matches("transfer", recorded("transfer", username="Ngozi.Eze "))
    assert found[label].matches is True


def test_our_own_name_in_any_case_is_no_address(settings: Settings) -> None:
    settings.GATEWAY_API_USER = "Lagos-Imports"
    label = list(field_matches("wallet_transfer", recorded("wallet_transfer")))[-1]
    found = field_matches("wallet_transfer", recorded("wallet_transfer", username="lagos-imports"))
    assert found[label].matches is None


def attempt() -> Attempt:
    return Attempt(
        started_at=SENT_AT, watermark_provider_time=SENT_AT, watermark_balance=Decimal("5000000.00")
    )


@pytest.mark.parametrize(
    ("passed", "fits"),
    [(-301, False), (-300, True), (0, True), (3900, True), (3901, False)],
)
def test_the_time_matches_from_the_watermark_to_the_execution_deadline(passed: int, fits: bool) -> None:
    record = recorded("withdrawal", createdAt=(SENT_AT + timedelta(seconds=passed)).isoformat())
    assert attempt_match_fields(attempt(), record)[1].matches is fits


@pytest.mark.parametrize(
    ("reported", "fits"),
    [({"prevBalance": "5000000"}, True), ({"prevBalance": "4999999.99"}, False), ({}, None)],
)
def test_the_balance_before_matches_if_nothing_came_between(
    reported: dict[str, Any], fits: bool | None
) -> None:
    assert attempt_match_fields(attempt(), recorded("withdrawal", **reported))[0].matches is fits
