"""Saving an account for the team, and what it never does."""

import logging
from collections.abc import Callable

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations.errors import SavedAccountError
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.saved_items import SavedAccount
from backoffice.operations.pages import saved_accounts
from tests import factories
from tests.operations.pages.saved_accounts.steps import ACCOUNTS, NUMBER, WITHDRAWAL, labels, saved, use
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]


def test_an_account_is_saved_from_an_operation_for_the_whole_team(
    as_preparer: Client, sign_in: SignIn, operation: Operation
) -> None:
    answer = as_preparer.post(f"/operations/{operation.pk}/save-account/", {"name": " Rent "}, follow=True)
    html = text_of(answer)
    assert "Recipient saved as “Rent”." in html
    assert "Save recipient…" not in html
    colleague = sign_in(Client(), factories.person("Ngozi Eze", "Preparer"))  # type: ignore[arg-type]
    assert labels(colleague)["Saved"] == ["Rent · ADA CHIDINMA OBI, Access Bank ••6789"]
    assert "Tunde Bello" in text_of(colleague.get(ACCOUNTS))


def test_saving_an_account_does_not_change_operations(as_preparer: Client, operation: Operation) -> None:
    before = Operation.objects.values().get()
    as_preparer.post(f"/operations/{operation.pk}/save-account/", {"name": "Rent"})
    assert Operation.objects.values().get() == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "This field is required."),
        ("x" * 61, "at most 60 characters"),
        ("RENT", "A recipient named “RENT” already exists"),
    ],
)
def test_an_empty_or_taken_name_is_reported_at_its_field(
    as_preparer: Client, preparer: User, name: str, message: str
) -> None:
    saved(preparer, "Rent")
    other = factories.prepared_to_another_account(preparer)
    kept = saved_accounts.save_account(other.pk, actor=preparer, name="Diesel")
    another = factories.prepared_to_another_account(preparer)
    for address in (f"/operations/{another.pk}/save-account/", f"{ACCOUNTS}{kept.pk}/"):
        answer = as_preparer.post(address, {"name": name})
        assert answer.status_code == 422
        assert message in text_of(answer)
        assert 'id="id_name_error"' in text_of(answer)
        assert f'value="{name}"' in text_of(answer) or not name
    assert set(SavedAccount.objects.values_list("name", flat=True)) == {"Rent", "Diesel"}


def test_an_account_is_saved_once(as_preparer: Client, operation: Operation) -> None:
    address = f"/operations/{operation.pk}/save-account/"
    as_preparer.post(address, {"name": "Rent"})
    again = as_preparer.post(address, {"name": "Flat"})
    assert again.status_code == 422
    assert "This bank account is already saved as “Rent”." in text_of(again)


def test_the_number_of_saved_accounts_is_limited(
    preparer: User, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_accounts, "MAX_SAVED_ACCOUNTS", 1)
    saved(preparer, "Rent", account_number="1111112222")
    with pytest.raises(SavedAccountError, match="Delete one, then"):
        saved_accounts.save_account(operation.pk, actor=preparer, name="One more")


def test_any_preparer_can_rename_and_delete_an_account(
    sign_in: SignIn, preparer: User, rent: SavedAccount
) -> None:
    colleague = sign_in(Client(), factories.person("Ngozi Eze", "Preparer"))  # type: ignore[arg-type]
    colleague.post(f"{ACCOUNTS}{rent.pk}/", {"name": "Office rent"})
    assert SavedAccount.objects.get().name == "Office rent"
    colleague.post(f"{ACCOUNTS}{rent.pk}/delete/")
    assert not SavedAccount.objects.exists()
    assert colleague.post(f"{ACCOUNTS}{rent.pk}/delete/").status_code == 302
    assert colleague.get(f"{ACCOUNTS}{rent.pk}/").status_code == 404
    entries = Entry.objects.filter(action__startswith="saved_account.").order_by("position")
    assert [(entry.action, entry.actor_label.split(" <")[0], entry.detail) for entry in entries] == [
        ("saved_account.saved", "Tunde Bello", {"operation": Operation.objects.get().reference}),
        ("saved_account.renamed", "Ngozi Eze", {"before": "Rent"}),
        ("saved_account.deleted", "Ngozi Eze", {}),
    ]
    assert {entry.target_id for entry in entries} == {str(rent.pk)}


def test_account_numbers_are_in_no_url_list_log_or_audit_entry(
    as_preparer: Client, rent: SavedAccount, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        pages = [
            as_preparer.get(WITHDRAWAL),
            as_preparer.get(ACCOUNTS),
            as_preparer.get(f"{ACCOUNTS}{rent.pk}/"),
        ]
        filled_in = text_of(use(as_preparer, f"saved-{rent.pk}"))
        as_preparer.post(f"{ACCOUNTS}{rent.pk}/", {"name": "Office rent"})
        as_preparer.post(f"{ACCOUNTS}{rent.pk}/delete/")
    assert [NUMBER in text_of(page) for page in pages] == [False] * 3
    assert filled_in.count(NUMBER) == 1  # in its field
    assert NUMBER not in caplog.text
    assert not [entry for entry in Entry.objects.all() if NUMBER in f"{entry.target_label}{entry.detail}"]
