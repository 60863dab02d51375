"""Failed debits whose refund is not listed."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.ledger.models import Transaction
from backoffice.ledger.statements.refunds import missing_refunds
from tests.ledger.stored_transactions import AT, stored

pytestmark = pytest.mark.django_db
SignIn = Callable[[Client, User], Client]
NOW = AT + timedelta(days=3)


def failed(**members: Any) -> Transaction:
    return stored(**{"status": "failed", "amount": Decimal(100), "fee": Decimal(5)} | members)


def incoming(amount: int, **members: Any) -> Transaction:
    usual = {"direction": "in", "type": "deposit", "fee": None, "occurred_at": AT + timedelta(hours=2)}
    return stored(amount=Decimal(amount), **usual | members)


@pytest.mark.parametrize(
    "members",
    [
        {"amount": 99},
        {"amount": 105, "currency": "USD"},
        {"amount": 105, "direction": "out"},
        {"amount": 105, "status": "failed"},
        {"amount": 105, "occurred_at": AT - timedelta(seconds=1)},
    ],
)
def test_a_failed_debit_is_listed_if_no_later_incoming_transaction_has_its_amount(members: Any) -> None:
    debit = failed()
    incoming(**members)
    assert missing_refunds(NOW) == [debit]


@pytest.mark.parametrize("amount", [105, 100])
def test_a_refund_is_with_or_without_the_fee(amount: int) -> None:
    failed()
    incoming(amount)
    assert missing_refunds(NOW) == []


def test_a_refund_is_of_one_debit_and_of_the_one_that_it_names() -> None:
    first, second = failed(), failed(occurred_at=AT + timedelta(hours=1))
    incoming(105, counterparty=f"Refund of {second.transaction_id}", occurred_at=AT + timedelta(hours=3))
    assert missing_refunds(NOW) == [first]
    incoming(105)
    assert missing_refunds(NOW) == []


def test_a_debit_that_failed_less_than_a_day_ago_or_did_not_fail_is_not_listed() -> None:
    failed(occurred_at=NOW - timedelta(hours=23))
    stored()
    stored(status="processing")
    assert missing_refunds(NOW) == []


def test_the_page_of_balance_continuity_lists_it(client: Client, auditor: User, sign_in: SignIn) -> None:
    page = sign_in(client, auditor).get(reverse("ledger:continuity")).content.decode()
    assert "Failed without refund" not in page
    debit = failed(occurred_at=timezone.now() - timedelta(days=2))
    cache.delete("missing-refunds")
    page = client.get(reverse("ledger:continuity")).content.decode()
    assert "Failed without refund" in page
    assert reverse("operations:transaction", args=[debit.pk]) in page
    assert (
        "Failed without refund"
        not in client.get(reverse("ledger:continuity") + "?currency=USD").content.decode()
    )
