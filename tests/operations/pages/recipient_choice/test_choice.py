"""Choosing a known account in a form: what is filled in, what stays, and what people are warned of."""

import logging
import uuid

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.kinds.recipient import RecipientChange
from backoffice.operations.models.operations import Operation
from backoffice.recipients.models import RecipientVersion
from tests import factories
from tests.operations.pages.recipient_choice.steps import (
    BANK,
    NUMBER,
    PAYMENT,
    TYPED,
    WITHDRAWAL,
    labels,
    use,
    values_of,
)
from tests.operations.steps import text_of
from tests.recipients import registered
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db


def test_a_selected_account_is_filled_in_and_keeps_other_input(
    as_preparer: Client, rent: RecipientVersion
) -> None:
    answer = use(as_preparer, f"registered-{rent.recipient}")
    values = values_of(answer)
    assert answer.status_code == 200
    filled_in = {
        "bank_code": BANK,
        "account_number": NUMBER,
        "typed_name": rent.name,
        "name_reason": "",
        "unchecked_confirmed": False,
        "unchecked_reason": "",
    }
    assert {name: values[name] for name in filled_in} == filled_in
    assert (values["amount"], values["currency"], values["memo"]) == ("12,5 half typed", "USD", "week 46")
    assert f'value="{TYPED["submission"]}"' in text_of(answer)


def test_the_name_at_the_bank_is_resolved_for_a_selected_account(
    as_preparer: Client, rent: RecipientVersion, holder: str
) -> None:
    html = text_of(use(as_preparer, f"registered-{rent.recipient}"))
    assert "Filled in from “Rent”." in html
    assert f"<b>{holder}</b>" in html
    assert "The names match." in html


def test_a_recent_account_prefills_a_payment(as_preparer: Client, operation: Operation, holder: str) -> None:
    typed = {"customer_email": "customer@example.com", "incoming_amount": "7", "country": "NG"}
    answer = use(as_preparer, f"operation-{operation.pk}", PAYMENT, payment_type="bank", **typed)
    values = values_of(answer)
    assert values["account_number"] == NUMBER
    assert typed.items() <= values.items()
    assert f"Filled in from {operation.reference}." in text_of(answer)


def test_the_account_partial_has_all_account_fields_and_no_amount(
    as_preparer: Client, rent: RecipientVersion
) -> None:
    """htmx takes these two elements out of the very page that is shown without JavaScript."""
    html = text_of(use(as_preparer, f"registered-{rent.recipient}"))
    account, _, rest = html.partition('<div id="account"')[2].partition('<div id="check"')
    for name in ("known-account", "bank_code", "account_number", "typed_name"):
        assert f'name="{name}"' in account
    assert 'hx-select="#account"' in account
    assert 'hx-select-oob="#check"' in account
    assert 'name="amount"' not in account
    assert "The names match." in rest


def test_a_recipient_that_was_not_filled_in_is_not_reviewed(
    as_preparer: Client, rent: RecipientVersion, holder: str
) -> None:
    """As when the form is submitted before the answer to the choice has arrived."""
    of_another = {**use(as_preparer, f"registered-{rent.recipient}").context["form"].initial, "amount": "5"}
    typed = {name: str(value or "") for name, value in of_another.items() if name in TYPED}
    typed |= {"step": "review", "known-account": f"registered-{rent.recipient}", "unchecked_confirmed": ""}
    assert "Submit for approval" in text_of(as_preparer.post(WITHDRAWAL, typed))
    answer = as_preparer.post(WITHDRAWAL, {**typed, "account_number": "0123456780"})
    assert answer.status_code == 422
    assert "“Rent” was not filled in: the details below are those of another account." in text_of(answer)
    assert answer.context["choice"]["account"].value() == ""
    assert values_of(answer)["account_number"] == "0123456780"


def test_enter_never_selects_an_account(as_preparer: Client, rent: RecipientVersion) -> None:
    """The first button of a form is what Enter presses."""
    html = text_of(as_preparer.get(WITHDRAWAL)).partition('id="prepare"')[2]
    assert html.index('value="check"') < html.index('value="use"')


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "registered-0",
        "registered-9" * 30,
        "registered-x",
        "registered-",
        f"registered-{uuid.UUID(int=7)}",
        "operation-x",
        f"operation-{uuid.UUID(int=7)}",
        "rent",
    ],
)
def test_a_missing_account_is_reported_at_the_selection(
    as_preparer: Client, rent: RecipientVersion, ref: str
) -> None:
    answer = use(as_preparer, ref)
    assert answer.status_code == 422
    assert 'id="id_known-account_error"' in text_of(answer)
    assert "Nothing was filled in" in text_of(answer)
    ticked = {"unchecked_confirmed": True, "duplicate_confirmed": False, "duplicate_reason": None}
    assert {**TYPED, **ticked}.items() >= values_of(answer).items()


def test_an_account_at_an_unlisted_bank_needs_a_new_bank(
    as_preparer: Client, preparer: User, sandbox: SandboxProcess
) -> None:
    gone = registered.suggested(preparer, "Old bank", bank_code="000", bank="Gone Bank")
    assert use(as_preparer, f"registered-{gone.recipient}").status_code == 200
    values = {**TYPED, "amount": "10", "bank_code": "000", "account_number": NUMBER, "step": "review"}
    assert "Unknown bank: 000." in text_of(as_preparer.post(WITHDRAWAL, values))


def test_a_changed_recipient_is_shown_to_preparer_and_approver(
    as_preparer: Client, as_approver: Client, preparer: User, holder: str
) -> None:
    before = registered.suggested(preparer, "Rent", name="MUSA BEFORE")
    message = f"The name at the bank was MUSA BEFORE when this recipient was saved, and is now {holder}."
    assert message in text_of(use(as_preparer, f"registered-{before.recipient}"))

    # Typing the new name, so that the two names on the form agree, does not silence it.
    values = {**TYPED, "submission": str(uuid.uuid4()), "amount": "10", "bank_code": BANK}
    values |= {"account_number": NUMBER, "typed_name": holder, "name_reason": ""}
    review = as_preparer.post(WITHDRAWAL, {**values, "step": "review"})
    assert message in text_of(review)
    prepared = {**values, "step": "prepare", "digest": review.context["digest"]}
    address = as_preparer.post(WITHDRAWAL, prepared)["Location"]
    html = text_of(as_approver.get(address))
    assert message in html
    assert "<dt>Name when saved</dt>" in html


def test_an_unchanged_recipient_is_not_warned_of(
    as_preparer: Client, rent: RecipientVersion, holder: str
) -> None:
    values = {**TYPED, "amount": "10", "bank_code": BANK, "account_number": NUMBER, "typed_name": holder}
    review = as_preparer.post(WITHDRAWAL, {**values, "step": "review"})
    assert review.status_code == 200
    assert review.context["cautions"] == []


def test_a_user_and_an_address_are_filled_in_too(
    as_preparer: Client, preparer: User, approver: User, sandbox: SandboxProcess
) -> None:
    user = registered.agreed(registered.user(alias="Market"), preparer, approver)
    address = registered.agreed(registered.address(), preparer, approver)
    transfer = use(as_preparer, f"registered-{user.recipient}", "/operations/prepare/transfer/")
    assert values_of(transfer)["receiver_username"] == "ngozi.eze"
    crypto = use(as_preparer, f"registered-{address.recipient}", "/operations/prepare/wallet_transfer/")
    values = values_of(crypto)
    assert (values["address"], values["network"]) == (address.account, "TRC20")
    assert values["amount"] == "12,5 half typed"
    assert use(as_preparer, f"registered-{user.recipient}", WITHDRAWAL).status_code == 422


def test_a_retired_recipient_is_not_offered(
    as_preparer: Client, preparer: User, approver: User, rent: RecipientVersion
) -> None:
    registered.agreed(registered.changed(rent, RecipientChange.RETIRE), preparer, approver)
    assert labels(as_preparer) == {}
    assert use(as_preparer, f"registered-{rent.recipient}").status_code == 422


def test_a_kind_with_an_allow_list_offers_approved_recipients_only(
    as_preparer: Client, preparer: User, rent: RecipientVersion, settings: Settings
) -> None:
    registered.suggested(preparer, "Diesel", number="1111112222")
    factories.prepared(preparer)
    assert [label.endswith("not approved") for label in labels(as_preparer)["Recipients"]] == [True, False]
    settings.ALLOW_LIST = frozenset({"withdrawal"})
    assert {group: len(found) for group, found in labels(as_preparer).items()} == {"Recipients": 1}


def test_account_numbers_are_in_no_url_list_or_log(
    as_preparer: Client, rent: RecipientVersion, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        pages = [as_preparer.get(WITHDRAWAL), as_preparer.get("/settings/recipients/")]
        filled_in = text_of(use(as_preparer, f"registered-{rent.recipient}"))
    assert [NUMBER in text_of(page) for page in pages] == [False] * 2
    assert filled_in.count(NUMBER) == 1  # in its field
    assert NUMBER not in caplog.text
    assert not [entry for entry in Entry.objects.all() if NUMBER in f"{entry.target_label}{entry.detail}"]
