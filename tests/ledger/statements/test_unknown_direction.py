"""A transfer between users may report the balance of the other side: where its direction is unknown it is no break."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.conf import settings
from django.test import Client

from backoffice.accounts.models import User
from backoffice.ledger.models import Mirror
from backoffice.ledger.statements.continuity import unplaceable_count
from tests.ledger.statements.test_breaks import check_all, lose, merged, record, stored_breaks

pytestmark = pytest.mark.django_db

CONTINUITY = "/reconciliation/continuity/"


@pytest.fixture(autouse=True)
def mirror(db: None) -> None:
    Mirror.objects.create(pk=1)


def transfer(name: str, second: int, before: object, **members: Any) -> Any:
    return record(name, second, before, 10, type="transfer", **members)


@pytest.mark.parametrize("kind", ["transfer", "internalTransfer", "a type of tomorrow"])
@pytest.mark.parametrize("named", [{}, {"sender": "kola", "username": "ada"}, {"username": "ada"}])
def test_a_transfer_of_unknown_direction_breaks_no_continuity(kind: str, named: dict[str, str]) -> None:
    """It reports 7,000, which is the balance of somebody else."""
    merged(record("A", 0, 0, 100), record("T", 1, 7000, 10, type=kind, **named), record("B", 2, 90, 1))
    assert stored_breaks() == []
    assert str(unplaceable_count(["NGN"], None, None)) == "1"


def test_a_transfer_that_names_the_merchant_has_a_direction() -> None:
    us = settings.GATEWAY_API_USER
    merged(record("A", 0, 0, 100), transfer("T", 1, 7000, sender=us, username="kola"))
    assert [one[:2] for one in stored_breaks()] == [("A", "T")]
    merged(transfer("T", 1, 100, sender=us, username="kola"), record("B", 2, 90, 1))
    assert stored_breaks() == []
    assert not unplaceable_count("", None, None)


def test_transfers_of_unknown_direction_are_counted_by_currency_and_period() -> None:
    merged(transfer("T", 1, 7000), transfer("U", 5, 7000, currency="USD"), record("A", 7, 1, 1, currency=""))
    moment = datetime(2026, 3, 4, 5, 6, 3, tzinfo=UTC)
    both = ["NGN", "USD"]
    chosen = [(both, None, None), (["USD"], None, None), (both, moment, None), (both, None, moment)]
    assert [unplaceable_count(*one).number for one in chosen] == [2, 1, 1, 1]
    lose("T")
    assert unplaceable_count(both, None, None).number == 1


def test_the_continuity_page_names_transfers_of_unknown_direction(
    client: Client, sign_in: Callable[[Client, User], Client], auditor: User
) -> None:
    reader = sign_in(client, auditor)
    assert "cannot be checked" not in reader.get(CONTINUITY).content.decode()
    merged(record("A", 0, 0, 100), transfer("T", 1, 7000), transfer("U", 1, 8000), record("B", 2, 90, 1))
    check_all()
    shown = reader.get(CONTINUITY).content.decode()
    assert "2 transactions cannot be checked" in shown
    assert "They do not count as breaks" in shown
