"""How many people an operation needs, and the sentence that says so."""

import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.operations.approval import requirements
from backoffice.operations.approval.requirements import ApprovalRequirement, requirement_under
from backoffice.operations.descriptions import Subject
from backoffice.operations.kinds.base import Debit, Payload
from backoffice.operations.kinds.withdrawal import WithdrawalKind
from backoffice.policies.models import PolicyInEffect, default_document
from backoffice.settings_values import DEFAULT_APPROVAL_LIMITS
from payments_gateway.money import CURRENCIES
from tests import factories
from tests.operations.batches import payouts


class OfAmounts(WithdrawalKind):
    """A kind whose operations have these amounts."""

    def __init__(self, *amounts: Debit) -> None:
        self.amounts = list(amounts)

    def limited_amounts(self, payload: Payload) -> list[Debit]:
        return self.amounts


def approval_requirement(*amounts: Debit) -> ApprovalRequirement:
    """What is required while no version of a policy was approved."""
    kind = OfAmounts(*amounts)
    subject = Subject(uuid.uuid4(), kind, factories.payload(), 1, "Tunde Bello", datetime.now(tz=UTC))
    return requirement_under(PolicyInEffect(None, default_document()), subject)


@pytest.mark.parametrize(
    ("amount", "people"), [("10000000.49", 1), ("10000000.50", 1), ("10000000.51", 2), ("10000001", 2)]
)
def test_two_approvals_are_needed_above_the_limit(settings: Settings, amount: str, people: int) -> None:
    settings.SECOND_APPROVAL_ABOVE = {**DEFAULT_APPROVAL_LIMITS, "NGN": Decimal("10000000.50")}
    assert approval_requirement(Debit("NGN", Decimal(amount))).approvals == people


def test_another_thread_may_clear_what_is_remembered_of_a_batch(
    monkeypatch: pytest.MonkeyPatch, preparer: User
) -> None:
    class ClearedAtOnce(dict[Any, ApprovalRequirement]):
        def __setitem__(self, key: Any, value: ApprovalRequirement) -> None:
            """As if another thread, which needs another batch, had cleared it since."""

    monkeypatch.setattr(requirements, "_of_batches", ClearedAtOnce())
    policy = PolicyInEffect(None, default_document())
    batch = payouts.prepared(preparer, payouts.transfers(2))
    assert requirements._requirement_of_batch(batch, policy).approvals == 1


def test_the_explanation_has_the_exact_limit(settings: Settings) -> None:
    settings.SECOND_APPROVAL_ABOVE = {**DEFAULT_APPROVAL_LIMITS, "NGN": Decimal("10000000.50")}
    assert approval_requirement(Debit("NGN", Decimal(10_000_001))).sentence == (
        "Amounts above NGN 10,000,000.50 require two approvers who are not the preparer."
    )


@pytest.mark.parametrize("currency", CURRENCIES)
def test_every_currency_has_a_limit(currency: str) -> None:
    assert approval_requirement(Debit(currency, Decimal(10) ** 12)).approvals == 2
    assert approval_requirement(Debit(currency, Decimal(1))).approvals == 1


def test_one_of_several_amounts_above_its_limit_needs_two_approvals() -> None:
    small, large = Debit("NGN", Decimal(1)), Debit("USDT", Decimal(10) ** 12)
    assert [approval_requirement(*both).approvals for both in ((small, large), (large, small))] == [2, 2]


def test_an_operation_without_a_debit_needs_one_approval() -> None:
    assert approval_requirement().approvals == 1


def test_a_currency_without_a_limit_needs_two() -> None:
    found = approval_requirement(Debit("USDC", Decimal("0.01")))
    assert found.approvals == 2
    assert found.sentence == "Payments in USDC require two approvers who are not the preparer."
