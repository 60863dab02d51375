"""Choosing a known account in a form: what is filled in, what stays, and what people are warned of."""

import uuid

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.saved_items import SavedAccount
from tests.operations.pages.saved_accounts.steps import (
    ACCOUNTS,
    BANK,
    NUMBER,
    PAYMENT,
    TYPED,
    WITHDRAWAL,
    saved,
    use,
    values_of,
)
from tests.operations.steps import text_of
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db


def test_a_selected_account_is_filled_in_and_keeps_other_input(
    as_preparer: Client, rent: SavedAccount
) -> None:
    answer = use(as_preparer, f"saved-{rent.pk}")
    values = values_of(answer)
    assert answer.status_code == 200
    filled_in = {
        "bank_code": BANK,
        "account_number": NUMBER,
        "typed_name": rent.account_name,
        "name_reason": "",
        "unchecked_confirmed": "",
        "unchecked_reason": "",
    }
    assert {name: values[name] for name in filled_in} == filled_in
    assert (values["amount"], values["currency"], values["memo"]) == ("12,5 half typed", "USD", "week 46")
    assert f'value="{TYPED["submission"]}"' in text_of(answer)


def test_the_name_at_the_bank_is_resolved_for_a_selected_account(
    as_preparer: Client, rent: SavedAccount, holder: str
) -> None:
    html = text_of(use(as_preparer, f"saved-{rent.pk}"))
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
    as_preparer: Client, rent: SavedAccount
) -> None:
    """htmx takes these two elements out of the very page that is shown without JavaScript."""
    html = text_of(use(as_preparer, f"saved-{rent.pk}"))
    account, _, rest = html.partition('<div id="account"')[2].partition('<div id="check"')
    for name in ("known-account", "bank_code", "account_number", "typed_name"):
        assert f'name="{name}"' in account
    assert 'hx-select="#account"' in account
    assert 'hx-select-oob="#check"' in account
    assert 'name="amount"' not in account
    assert "The names match." in rest


def test_enter_never_selects_an_account(as_preparer: Client, rent: SavedAccount) -> None:
    """The first button of a form is what Enter presses."""
    html = text_of(as_preparer.get(WITHDRAWAL)).partition('id="prepare"')[2]
    assert html.index('value="check"') < html.index('value="use"')


@pytest.mark.parametrize(
    "ref",
    [
        "",
        "saved-0",
        "saved-9" * 30,
        "saved-x",
        "saved-",
        "operation-x",
        f"operation-{uuid.UUID(int=7)}",
        "rent",
    ],
)
def test_a_missing_account_is_reported_at_the_selection(
    as_preparer: Client, rent: SavedAccount, ref: str
) -> None:
    answer = use(as_preparer, ref)
    assert answer.status_code == 422
    assert 'id="id_known-account_error"' in text_of(answer)
    assert "Nothing was filled in" in text_of(answer)
    assert TYPED.items() >= values_of(answer).items() - {
        ("duplicate_confirmed", None),
        ("duplicate_reason", None),
    }


def test_an_account_at_an_unlisted_bank_needs_a_new_bank(
    as_preparer: Client, preparer: User, sandbox: SandboxProcess
) -> None:
    gone = saved(preparer, "Old bank", bank_code="000", bank="Gone Bank")
    assert use(as_preparer, f"saved-{gone.pk}").status_code == 200
    values = {**TYPED, "amount": "10", "bank_code": "000", "account_number": NUMBER, "step": "review"}
    assert "000 is not a valid code" in text_of(as_preparer.post(WITHDRAWAL, values))


def test_a_changed_recipient_is_shown_to_preparer_and_approver(
    as_preparer: Client, as_approver: Client, preparer: User, holder: str
) -> None:
    before = saved(preparer, "Rent", account_name="MUSA BEFORE")
    message = f"The name at the bank was MUSA BEFORE when this recipient was saved, and is now {holder}."
    assert message in text_of(use(as_preparer, f"saved-{before.pk}"))

    # Typing the new name, so that the two names on the form agree, does not silence it.
    values = {**TYPED, "submission": str(uuid.uuid4()), "amount": "10", "bank_code": BANK}
    values |= {"account_number": NUMBER, "typed_name": holder, "name_reason": ""}
    review = as_preparer.post(WITHDRAWAL, {**values, "step": "review"})
    assert message in text_of(review)
    prepared = {**values, "step": "prepare", "digest": review.context["digest"]}
    address = as_preparer.post(WITHDRAWAL, prepared)["Location"]
    as_preparer.post(f"{ACCOUNTS}{before.pk}/delete/")
    html = text_of(as_approver.get(address))
    assert message in html
    assert "<dt>Name when saved</dt>" in html


def test_an_unchanged_recipient_is_not_warned_of(
    as_preparer: Client, rent: SavedAccount, holder: str
) -> None:
    values = {**TYPED, "amount": "10", "bank_code": BANK, "account_number": NUMBER, "typed_name": holder}
    review = as_preparer.post(WITHDRAWAL, {**values, "step": "review"})
    assert review.status_code == 200
    assert review.context["cautions"] == []
