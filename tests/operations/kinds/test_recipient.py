"""Changing the register: who may, what is compared, and what takes effect."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import Client

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.kinds.recipient import RecipientChange
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Operation
from backoffice.operations.refusals.codes import Refusal
from backoffice.operations.states import Status
from backoffice.recipients.models import RecipientState, RecipientVersion
from tests import factories
from tests.operations.steps import text_of
from tests.recipients import registered
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db

FORM = "/operations/prepare/recipient/"


def cautions(payload: Any) -> list[str]:
    return KINDS["recipient"].cautions(payload)


def test_a_recipient_is_added_changed_and_retired_by_two_people(preparer: User, approver: User) -> None:
    added = registered.agreed(registered.bank_account(alias="Rent"), preparer, approver)
    assert (added.number, added.state, added.is_altered) == (1, RecipientState.APPROVED, False)
    assert (added.proposed_by, added.approved_by) == (preparer, approver)
    changed = registered.agreed(registered.changed(added, alias="Office rent"), preparer, approver)
    retired = registered.agreed(registered.changed(changed, RecipientChange.RETIRE), preparer, approver)
    assert (retired.number, retired.state, retired.alias) == (3, RecipientState.RETIRED, "Office rent")
    assert {version.recipient for version in RecipientVersion.objects.all()} == {added.recipient}
    assert list(RecipientVersion.objects.filter(is_newest=True)) == [retired]
    actions = Entry.objects.filter(action__startswith="recipient.").order_by("position")
    assert [entry.action for entry in actions] == [
        "recipient.added",
        "recipient.changed",
        "recipient.retired",
    ]


def test_the_preparer_cannot_approve_a_recipient(preparer: User, approver: User) -> None:
    operation = factories.prepared_of_kind("recipient", registered.user(), preparer)
    preparer.groups.add(*approver.groups.all())
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(operation, preparer)
    assert not RecipientVersion.objects.exists()


def test_a_suggestion_becomes_the_first_version(preparer: User, approver: User) -> None:
    before = registered.suggested(preparer)
    added = registered.agreed(registered.bank_account(), preparer, approver)
    assert (added.number, added.recipient) == (1, before.recipient)


def test_only_one_change_of_a_recipient_waits(preparer: User, approver: User) -> None:
    factories.prepared_of_kind("recipient", registered.bank_account(), preparer)
    with pytest.raises(errors.DuplicatePendingError):
        factories.prepared_of_kind("recipient", registered.bank_account(alias="Rent"), preparer)


def test_a_change_of_what_has_changed_since_is_refused(preparer: User, approver: User) -> None:
    added = registered.agreed(registered.bank_account(), preparer, approver)
    outdated = registered.changed(added, alias="Rent")
    registered.agreed(registered.changed(added, notes="Since May"), preparer, approver)
    with pytest.raises(errors.OperationError, match="changed in the meantime"):
        factories.prepared_of_kind("recipient", outdated, preparer)


@pytest.mark.parametrize("change", [RecipientChange.CHANGE, RecipientChange.RETIRE])
def test_nothing_is_changed_that_is_not_in_the_register(preparer: User, change: RecipientChange) -> None:
    payload = registered.bank_account().model_copy(update={"change": change})
    with pytest.raises(errors.OperationError):
        factories.prepared_of_kind("recipient", payload, preparer)


def test_an_added_recipient_was_not_paid_by_it(preparer: User, approver: User) -> None:
    registered.agreed(registered.bank_account(), preparer, approver)
    assert Operation.objects.get().recipient_key is None
    assert Operation.objects.get().status == Status.SUCCEEDED


@pytest.mark.parametrize(
    ("number", "is_similar"),
    [
        ("0123456798", True),  # two neighbours swapped
        ("0123456780", True),  # another digit
        ("1123456789", True),
        ("012345679", True),  # a digit is missing
        ("0123454789", True),
        ("0198765789", False),
        ("9876543210", False),
    ],
)
def test_similar_account_numbers_are_a_caution(
    preparer: User, approver: User, number: str, is_similar: bool
) -> None:
    registered.agreed(registered.bank_account(alias="Rent"), preparer, approver)
    found = cautions(registered.bank_account(number, name="KOLA EZE"))
    assert [text.startswith("Similar to the account of the recipient Rent") for text in found] == [
        True
    ] * is_similar


def test_the_same_number_at_another_bank_is_a_caution(preparer: User, approver: User) -> None:
    registered.agreed(registered.bank_account(alias="Rent"), preparer, approver)
    found = cautions(registered.bank_account(bank_code="058", name="KOLA EZE"))
    assert found == ["The recipient Rent has the same account number at another bank: Access Bank."]


def test_a_known_name_with_another_account_is_a_caution(preparer: User, approver: User) -> None:
    registered.agreed(registered.bank_account(), preparer, approver)
    [found] = cautions(registered.bank_account("9876543210", name="Ada Chidinma Obi"))
    assert found.startswith("ADA CHIDINMA OBI is already a recipient, with another account")


def test_an_address_with_the_same_ends_is_a_caution(preparer: User, approver: User) -> None:
    registered.agreed(registered.address(), preparer, approver)
    poisoned = f"TQn9{'x' * 27}LSE"
    [found] = cautions(registered.address(poisoned, name="Somebody"))
    assert found.startswith("Similar to the account of the recipient Ada Obi")
    assert cautions(registered.address("TXYZopqrstuvwxyzABCDEFGHJKLMNPQRST", name="Somebody")) == []


@pytest.mark.parametrize(
    ("username", "is_similar"),
    [("ngozi.ezee", True), ("ng0zi.eze", True), ("ngozieze", True), ("kola", False)],
)
def test_similar_user_names_are_a_caution(
    preparer: User, approver: User, username: str, is_similar: bool
) -> None:
    registered.agreed(registered.user(), preparer, approver)
    assert len(cautions(registered.user(username, name="Somebody"))) == is_similar


def test_a_retired_recipient_is_compared_with_nobody(preparer: User, approver: User) -> None:
    ada = registered.agreed(registered.bank_account(), preparer, approver)
    registered.agreed(registered.changed(ada, RecipientChange.RETIRE), preparer, approver)
    assert cautions(registered.bank_account("0123456798")) == []


FORBIDDEN: dict[str, Callable[[RecipientVersion], object]] = {
    "update": lambda one: RecipientVersion.objects.filter(pk=one.pk).update(state=RecipientState.RETIRED),
    "delete": lambda one: RecipientVersion.objects.filter(pk=one.pk).delete(),
    "insert before": lambda one: registered.suggested(one.proposed_by),
}


@pytest.mark.parametrize("change", FORBIDDEN.values(), ids=FORBIDDEN)
def test_versions_are_append_only(
    preparer: User, approver: User, change: Callable[[RecipientVersion], object]
) -> None:
    ada = registered.agreed(registered.bank_account(), preparer, approver)
    with pytest.raises(DatabaseError), transaction.atomic():
        change(ada)


# The form


def typed(**values: str) -> dict[str, str]:
    submission = {"submission": str(uuid.uuid4()), "change": "add", "type": "user"}
    of_user = {"receiver_username": "ngozi.eze", "name": "Ngozi Eze", "reason": "The contract"}
    return {**submission, **of_user, **values}


def prepare(client: Client, values: dict[str, str]) -> Any:
    """The answer after the review."""
    review = client.post(FORM, {**values, "step": "review"})
    assert review.status_code == 200, review.context["form"].errors
    return client.post(FORM, {**values, "step": "prepare", "digest": review.context["digest"]})


def test_a_user_is_added_on_the_form(as_preparer: Client, sandbox: SandboxProcess) -> None:
    assert prepare(as_preparer, typed(alias="Market", currency="NGN")).status_code == 302
    operation = Operation.objects.get()
    assert operation.sentence == "Add recipient Market, ngozi.eze"
    assert operation.payload["key"] == "user:ngozi.eze"


def test_the_holder_of_a_bank_account_is_read_from_the_bank(
    as_preparer: Client, approver: User, sandbox: SandboxProcess
) -> None:
    values = typed(type="bank", bank_code="044", account_number="0123456789", typed_name="Somebody Else")
    refused = as_preparer.post(FORM, {**values, "step": "review"})
    assert "Give the reason for the mismatch" in text_of(refused)
    prepare(as_preparer, {**values, "name_reason": "The name of the company"})
    operation = Operation.objects.get()
    review = text_of(as_preparer.get(operation.get_absolute_url()))
    assert "Somebody Else" in review
    factories.approve(operation, approver)
    version = RecipientVersion.objects.get()
    assert version.name == operation.payload["bank_account"]["account_name"]
    assert (version.alias, version.notes) == ("Somebody Else", "The name of the company")
    found = as_preparer.get("/settings/recipients/?q=somebody+else")
    assert [shown for shown, _paid in found.context["rows"]] == [version]
    assert version.name in text_of(found)


def test_an_address_has_to_be_one_of_its_network(as_preparer: Client, sandbox: SandboxProcess) -> None:
    values = typed(type="address", network="TRC20", address="0x12", name="Ada")
    assert as_preparer.post(FORM, {**values, "step": "review"}).status_code == 422
    assert prepare(as_preparer, {**values, "address": registered.ADDRESS}).status_code == 302


def test_a_change_cannot_touch_who_is_paid(
    as_preparer: Client, preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    market = registered.agreed(registered.user(), preparer, approver)
    page = text_of(as_preparer.get(f"{FORM}?change=change&recipient={market.recipient}", follow=True))
    assert 'value="Ngozi Eze"' in page
    values = typed(change="change", recipient=str(market.recipient), receiver_username="kola", alias="Market")
    prepare(as_preparer, values)
    operation = Operation.objects.get(status=Status.PENDING)
    assert (operation.payload["key"], operation.payload["replaces"]) == ("user:ngozi.eze", 1)
    again = typed(change="change", recipient=str(market.recipient))
    refused = as_preparer.post(FORM, {**again, "step": "review"})
    assert refused.status_code == 422
    assert str(errors.OperationError(Refusal.NOTHING_CHANGES)) in text_of(refused)


def test_a_recipient_is_retired_on_the_form(
    as_preparer: Client, preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    market = registered.agreed(registered.user(), preparer, approver)
    values = typed(change="retire", recipient=str(market.recipient))
    assert prepare(as_preparer, values).status_code == 302
    assert Operation.objects.get(status=Status.PENDING).sentence == "Retire recipient Ngozi Eze, ngozi.eze"


def test_the_form_is_filled_in_from_an_operation(
    as_preparer: Client, preparer: User, sandbox: SandboxProcess
) -> None:
    operation = factories.prepared(preparer)
    page = as_preparer.get(operation.get_absolute_url())
    assert f"{FORM}?operation={operation.pk}" in text_of(page)
    form = as_preparer.get(f"{FORM}?operation={operation.pk}", follow=True).context["form"]
    assert (form["account_number"].value(), form["typed_name"].value()) == ("0123456789", "Ada Chidinma Obi")


@pytest.mark.parametrize(
    "query", ["?change=change", "?change=retire&recipient=x", f"?operation={uuid.UUID(int=1)}"]
)
def test_the_form_opens_whatever_its_address_says(
    as_preparer: Client, sandbox: SandboxProcess, query: str
) -> None:
    assert as_preparer.get(f"{FORM}{query}", follow=True).status_code == 200
