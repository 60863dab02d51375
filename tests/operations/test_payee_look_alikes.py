"""Payees that can be mistaken for a recipient of the register: shown to whoever prepares and approves."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.operations import payee_look_alikes
from backoffice.operations.approval.requirements import required_levels
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.recipient import RecipientChange, RecipientPayload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.batches import RowFlag
from backoffice.operations.selectors import first_payment_warning
from backoffice.operations.workflow import approvals
from backoffice.policies.document import approvals_in
from backoffice.recipients.look_alikes import ComparedAccount, compare_with_register, similar_keys
from backoffice.recipients.models import RecipientType
from tests import factories
from tests.operations.batches import payouts
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import show, text_of
from tests.policies.versions import put_in_effect
from tests.recipients import registered

pytestmark = pytest.mark.django_db

_ADDRESS = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"
PAID: dict[str, tuple[Payload, RecipientPayload]] = {
    "withdrawal": (SAMPLES["withdrawal"], registered.bank_account(number="0123456788", name="Supplier")),
    "payment": (SAMPLES["payment"], registered.bank_account(number="0123456798", name="Supplier")),
    "transfer": (SAMPLES["transfer"], registered.user("ngozi_eze", name="Supplier")),
    "wallet_transfer": (
        SAMPLES["wallet_transfer"],
        registered.address(_ADDRESS[:12] + "z" + _ADDRESS[13:], name="Supplier"),
    ),
}


@pytest.mark.parametrize("kind", PAID)
def test_every_paying_kind_warns_of_a_recipient_with_a_similar_account(
    preparer: User, approver: User, kind: str
) -> None:
    payload, other = PAID[kind]
    assert payee_look_alikes.look_alike_warnings(KINDS[kind], payload) == []
    registered.agreed(other, preparer, approver)
    [warning] = payee_look_alikes.look_alike_warnings(KINDS[kind], payload)
    assert "Supplier" in warning
    key = KINDS[kind].recipient(payload).key
    assert [one.title for one in payee_look_alikes.look_alikes_of_payees({key})[key]] == ["Supplier"]


def test_payees_that_are_similar_to_each_other_hide_no_recipient_of_the_register(
    preparer: User, approver: User
) -> None:
    registered.agreed(registered.bank_account(number="0123456788", name="Supplier"), preparer, approver)
    keys = [f"bank:044:012345678{last}" for last in range(8)]
    found = payee_look_alikes.look_alikes_of_payees(keys)
    assert {key: [one.title for one in alike] for key, alike in found.items()} == {
        key: ["Supplier"] for key in keys
    }


def test_an_approved_recipient_is_compared_with_nobody(preparer: User, approver: User) -> None:
    payload, other = PAID["withdrawal"]
    registered.agreed(other, preparer, approver)
    registered.agreed(registered.bank_account(), preparer, approver)
    assert payee_look_alikes.look_alike_warnings(KINDS["withdrawal"], payload) == []
    assert payee_look_alikes.look_alikes_of_payees({"bank:044:0123456789"}) == {}


def test_the_approver_sees_it_and_does_not_approve_it_in_bulk(
    preparer: User, approver: User, as_approver: Client
) -> None:
    operation = factories.prepared(preparer)
    registered.agreed(PAID["withdrawal"][1], preparer, approver)
    assert "Similar to the account of the recipient Supplier" in text_of(show(as_approver, operation))
    [result] = approvals.approve_operations(
        [approvals.SelectedOperation(operation, operation.digest)],
        actor=approver,
        second_factor_at=timezone.now(),
    )
    assert result.result == approvals.BulkOutcome.REFUSED


def test_rows_of_a_file_that_look_alike_are_checked_first(
    sign_in: Callable[[Client, User], Client], preparer: User, approver: User
) -> None:
    registered.agreed(registered.user("person.77", name="Supplier"), preparer, approver)
    batch = payouts.prepared(preparer, [*payouts.transfers(2), "NGN,5.00,person.7,,"])
    flagged = [row.number for row in batch.rows.all() if RowFlag.SIMILAR_ACCOUNT in row.flags]
    assert (flagged, batch.payload["similar_accounts"]) == ([4], 1)
    page = text_of(sign_in(Client(), approver).get(f"/operations/{batch.pk}/rows/"))
    assert "Supplier, person.77" in page


def test_a_batch_without_look_alikes_has_the_digest_of_earlier_releases(preparer: User) -> None:
    assert "similar_accounts" not in payouts.prepared(preparer, payouts.transfers(2)).payload


@pytest.mark.parametrize(
    ("kind", "account", "other"),
    [
        (RecipientType.BANK, "0123456789", "0123456798"),
        (RecipientType.BANK, "0123456789", "123456789"),
        (RecipientType.BANK, "0123456789", "01234567899"),
        (RecipientType.ADDRESS, _ADDRESS, _ADDRESS[:2] + "xyz" + _ADDRESS[5:]),
        (RecipientType.ADDRESS, _ADDRESS, _ADDRESS[:8] + "x" * 18 + _ADDRESS[26:]),
        (RecipientType.USER, "ngozi.eze", "ng0zi_eze"),
        (RecipientType.USER, "ngozi.eze", "ngozi.ez"),
    ],
)
@pytest.mark.parametrize("beside", [0, 200])
def test_many_are_compared_as_one_is(
    preparer: User, approver: User, beside: int, kind: RecipientType, account: str, other: str
) -> None:
    make: dict[RecipientType, Any] = {
        RecipientType.BANK: registered.bank_account,
        RecipientType.ADDRESS: registered.address,
        RecipientType.USER: registered.user,
    }
    registered.agreed(make[kind](other, "Supplier"), preparer, approver)
    others = {
        number: ComparedAccount(RecipientType.USER, f"key {number}", f"somebody.else.{number * 1117}")
        for number in range(2, beside + 2)
    }
    found = compare_with_register({1: ComparedAccount(kind, "its key", account)} | others)
    assert [one.account for one in found[1].accounts] == [other]


def test_many_are_compared_in_one_pass(
    preparer: User, approver: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    registered.many(preparer, approver, 50)
    compared = {
        number: ComparedAccount(RecipientType.BANK, f"its key {number}", f"{number + 100:010}")
        for number in range(1, 200)
    }
    with django_assert_num_queries(1):
        found = compare_with_register(compared)
    assert found


@pytest.mark.parametrize("kind", PAID)
def test_every_paying_kind_says_that_somebody_new_is_paid(kind: str) -> None:
    warning = first_payment_warning(KINDS[kind].recipient(SAMPLES[kind]).key)
    assert warning.startswith("Recipient not paid before.")


# As a condition of a policy


@pytest.mark.parametrize("kind", PAID)
def test_a_policy_can_ask_for_more_where_a_payee_looks_like_an_approved_recipient(
    preparer: User, approver: User, kind: str
) -> None:
    payload, other = PAID[kind]
    put_in_effect({"when": {"recipient": "look_alike"}, "levels": [{"needed": 2}]})
    before = factories.prepared_of_kind(kind, payload, preparer)
    registered.agreed(other, preparer, approver)
    changed = {"duplicate_reason": "A second delivery", "reference": "CS-SECOND"}
    again = payload.model_copy(
        update={name: changed[name] for name in changed.keys() & payload.stored().keys()}
    )
    operation = factories.prepared_of_kind(kind, again, preparer)
    assert [before.approvals_needed, operation.approvals_needed] == [1, 2]


def test_it_is_what_was_known_when_the_operation_was_prepared(preparer: User, approver: User) -> None:
    """A recipient that was retired, or approved, since then changes nothing of an operation."""
    payload, other = PAID["withdrawal"]
    supplier = registered.agreed(other, preparer, approver)
    alike = factories.prepared_of_kind("withdrawal", payload, preparer)
    registered.agreed(registered.changed(supplier, RecipientChange.RETIRE), preparer, approver)
    again = payload.model_copy(update={"duplicate_reason": "A second delivery"})
    plain = factories.prepared_of_kind("withdrawal", again, preparer)
    put_in_effect({"when": {"recipient": "look_alike"}, "levels": [{"needed": 2}]})
    needed = [approvals_in(required_levels(one)) for one in (alike, plain)]
    assert needed == [2, 1]
    registered.agreed(registered.bank_account(), preparer, approver)
    assert [approvals_in(required_levels(one)) for one in (alike, plain)] == needed


def test_an_approved_payee_is_no_look_alike(preparer: User, approver: User) -> None:
    payload, other = PAID["withdrawal"]
    registered.agreed(other, preparer, approver)
    registered.agreed(registered.bank_account(), preparer, approver)
    put_in_effect({"when": {"recipient": "look_alike"}, "levels": [{"needed": 2}]})
    assert factories.prepared_of_kind("withdrawal", payload, preparer).approvals_needed == 1


def test_few_and_many_accounts_have_the_same_similar_ones(preparer: User, approver: User) -> None:
    for _, other in PAID.values():
        registered.agreed(other, preparer, approver)
    keys = {KINDS[kind].recipient(payload).key for kind, (payload, _) in PAID.items()}
    many = keys | {f"bank:044:{number:010}" for number in range(5_000_000_000, 5_000_000_030)}
    found = similar_keys(keys)
    assert found.keys() == keys
    assert {key: alike for key, alike in similar_keys(many).items() if key in keys} == found
