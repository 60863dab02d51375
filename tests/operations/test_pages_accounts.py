"""Saved and recent bank accounts: choosing one in a form, saving one, and what it never does."""

import gzip
import logging
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.ledger import selectors as ledger
from backoffice.operations import known_accounts, services
from backoffice.operations.errors import SavedAccountError
from backoffice.operations.models import Operation, SavedAccount
from backoffice.operations.services import saved_accounts
from backoffice.operations.states import CAME_TO_NOTHING, CLOSED, Status
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.kinds.samples import SAMPLES
from tests.operations.steps import text_of
from tests.sandbox_process import SandboxProcess

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
WITHDRAWAL, PAYMENT = "/operations/prepare/withdrawal/", "/operations/prepare/payment/"
ACCOUNTS = "/operations/accounts/"
NUMBER, BANK = "0123456789", "044"
TYPED = {
    "submission": str(uuid.uuid4()),
    "currency": "USD",
    "amount": "12,5 half typed",
    "bank_code": "058",
    "account_number": "999",
    "typed_name": "Somebody Else",
    "name_reason": "of another account",
    "memo": "week 46",
}


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """Account holders are remembered for two minutes, across tests."""
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def holder(sandbox: SandboxProcess) -> str:
    """The name that the service gives for the account."""
    return ledger.account_holder(NUMBER, BANK).account_name


@pytest.fixture
def rent(maker: User, holder: str) -> SavedAccount:
    """The account, saved while the bank gave the name that it still gives."""
    return saved(maker, "Rent", account_name=holder)


def saved(maker: User, name: str, **changes: Any) -> SavedAccount:
    operation = factories.prepared(maker, **changes)
    return services.save_account(operation.pk, actor=maker, name=name)


def many_saved(maker: User, how_many: int) -> None:
    SavedAccount.objects.bulk_create(
        SavedAccount(
            name=f"Supplier {number:03}",
            beneficiary_key=f"bank:044:{number:010}",
            bank="Access Bank",
            account_name=f"HOLDER {number:03}",
            saved_by=maker,
            saved_at=timezone.now(),
        )
        for number in range(how_many)
    )


def use(client: Client, ref: str, address: str = WITHDRAWAL, **changes: str) -> Any:
    return client.post(address, {**TYPED, "step": "use", "known-account": ref, **changes})


def values_of(answer: Any) -> dict[str, Any]:
    form = answer.context["form"]
    return {name: form[name].value() for name in form.fields}


def labels(client: Client, address: str = WITHDRAWAL, **typed: str) -> dict[str, list[str]]:
    """What the form offers, by group."""
    answer = client.post(address, {"step": "find", **typed}) if typed else client.get(address)
    choices = answer.context["choice"]().fields["account"].widget.choices[1:]
    return {group: [label for _, label in options] for group, options in choices}


def refs(client: Client) -> list[str]:
    choices = client.get(WITHDRAWAL).context["choice"]().fields["account"].widget.choices[1:]
    return [ref for _, options in choices for ref, _ in options]


def aged(operation: Operation, days: int, status: Status = Status.PENDING) -> Operation:
    """The same as if it had been prepared, and ended in this status, so many days ago: past services and triggers."""
    moment = timezone.now() - timedelta(days=days)
    closed_at = moment if status in CLOSED else None
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(
            prepared_at=moment, status=status, closed_at=closed_at
        )
    return operation


def test_without_any_account_nothing_is_offered(as_maker: Client) -> None:
    assert "Use this account" not in text_of(as_maker.get(WITHDRAWAL))


@pytest.mark.parametrize("address", [WITHDRAWAL, PAYMENT])
def test_recent_accounts_say_whose_they_are_and_when_they_were_paid(
    as_maker: Client, maker: User, address: str
) -> None:
    aged(factories.prepared(maker, account_number="1111112222", account_name="KOLA EZE"), 3, Status.SUCCEEDED)
    aged(factories.prepared(maker), 2)
    paid, waits = timezone.localtime() - timedelta(days=3), timezone.localtime() - timedelta(days=2)
    assert labels(as_maker, address)["Recent"] == [
        f"ADA CHIDINMA OBI, Access Bank ••6789 · last prepared on {waits:%-d %b %Y}",
        f"KOLA EZE, Access Bank ••2222 · last paid on {paid:%-d %b %Y}",
    ]


def test_an_account_is_recent_once_as_its_newest_operation_has_it(as_maker: Client, maker: User) -> None:
    aged(factories.prepared(maker, account_name="BEFORE"), 9, Status.SUCCEEDED)
    aged(factories.prepared(maker, account_name="NOW"), 1)
    (label,) = labels(as_maker)["Recent"]
    assert label.startswith("NOW, ")
    assert "last paid on" in label


def test_a_payment_that_was_made_is_not_yet_paid_out(as_maker: Client, maker: User) -> None:
    aged(factories.of_kind("payment", SAMPLES["payment"], maker), 1, Status.SUCCEEDED)
    assert "last prepared on" in labels(as_maker)["Recent"][0]


@pytest.mark.parametrize("status", sorted(CAME_TO_NOTHING))
def test_what_came_to_nothing_recommends_no_account(as_maker: Client, maker: User, status: Status) -> None:
    operation = aged(factories.prepared(maker), 1, status)
    assert labels(as_maker) == {}
    assert use(as_maker, f"operation-{operation.pk}").status_code == 422
    with pytest.raises(SavedAccountError, match="came to nothing"):
        services.save_account(operation.pk, actor=maker, name="Rent")


def test_what_is_long_ago_is_not_recent(as_maker: Client, maker: User) -> None:
    aged(factories.prepared(maker), known_accounts.RECENT.days + 1)
    assert labels(as_maker) == {}


def test_what_pays_no_bank_account_is_not_offered_and_not_saved(as_maker: Client, maker: User) -> None:
    operation = factories.of_kind("transfer", SAMPLES["transfer"], maker)
    assert labels(as_maker) == {}
    assert use(as_maker, f"operation-{operation.pk}").status_code == 422
    assert "Save the account" not in text_of(as_maker.get(operation.get_absolute_url()))
    assert as_maker.post(f"/operations/{operation.pk}/save-account/", {"name": "x"}).status_code == 422


def test_a_chosen_account_is_filled_in_and_all_else_stays_typed(as_maker: Client, rent: SavedAccount) -> None:
    answer = use(as_maker, f"saved-{rent.pk}")
    values = values_of(answer)
    assert answer.status_code == 200
    assert {name: values[name] for name in ("bank_code", "account_number", "typed_name", "name_reason")} == {
        "bank_code": BANK,
        "account_number": NUMBER,
        "typed_name": rent.account_name,
        "name_reason": "",
    }
    assert (values["amount"], values["currency"], values["memo"]) == ("12,5 half typed", "USD", "week 46")
    assert f'value="{TYPED["submission"]}"' in text_of(answer)


def test_the_bank_is_asked_at_once_who_holds_the_chosen_account(
    as_maker: Client, rent: SavedAccount, holder: str
) -> None:
    html = text_of(use(as_maker, f"saved-{rent.pk}"))
    assert "Filled in from “Rent”, with the holder as known so far." in html
    assert f"<b>{holder}</b>" in html
    assert "The names agree." in html


def test_a_recent_account_fills_in_the_form_of_a_payment(
    as_maker: Client, operation: Operation, holder: str
) -> None:
    typed = {"customer_email": "customer@example.com", "incoming_amount": "7", "country": "NG"}
    answer = use(as_maker, f"operation-{operation.pk}", PAYMENT, payment_type="bank", **typed)
    values = values_of(answer)
    assert values["account_number"] == NUMBER
    assert typed.items() <= values.items()
    assert f"Filled in from {operation.reference}, " in text_of(answer)


def test_what_htmx_puts_in_place_of_the_account_holds_all_of_it_and_no_amount(
    as_maker: Client, rent: SavedAccount
) -> None:
    """htmx takes these two elements out of the very page that is shown without JavaScript."""
    html = text_of(use(as_maker, f"saved-{rent.pk}"))
    account, _, rest = html.partition('<div id="account"')[2].partition('<div id="check"')
    for name in ("known-account", "bank_code", "account_number", "typed_name"):
        assert f'name="{name}"' in account
    assert 'hx-select="#account"' in account
    assert 'hx-select-oob="#check"' in account
    assert 'name="amount"' not in account
    assert "The names agree." in rest


def test_enter_never_fills_in_an_account(as_maker: Client, rent: SavedAccount) -> None:
    """The first button of a form is what Enter presses."""
    html = text_of(as_maker.get(WITHDRAWAL)).partition('id="prepare"')[2]
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
def test_an_account_that_is_not_there_is_refused_beside_the_choice(
    as_maker: Client, rent: SavedAccount, ref: str
) -> None:
    answer = use(as_maker, ref)
    assert answer.status_code == 422
    assert 'id="id_known-account_error"' in text_of(answer)
    assert "Nothing was filled in" in text_of(answer)
    assert TYPED.items() >= values_of(answer).items() - {("repeat_meant", None), ("repeat_reason", None)}


def test_an_account_at_a_bank_that_is_gone_from_the_list_has_to_be_chosen_anew(
    as_maker: Client, maker: User, sandbox: SandboxProcess
) -> None:
    gone = saved(maker, "Old bank", bank_code="000", bank="Gone Bank")
    assert use(as_maker, f"saved-{gone.pk}").status_code == 200
    values = {**TYPED, "amount": "10", "bank_code": "000", "account_number": NUMBER, "step": "review"}
    assert "000 is not one of its codes" in text_of(as_maker.post(WITHDRAWAL, values))


def test_a_holder_that_changed_is_said_to_the_maker_and_to_the_checker(
    as_maker: Client, as_checker: Client, maker: User, holder: str
) -> None:
    before = saved(maker, "Rent", account_name="MUSA BEFORE")
    said = f"When this account was saved, the bank named MUSA BEFORE. Now it names {holder}."
    assert said in text_of(use(as_maker, f"saved-{before.pk}"))

    # Typing the new name, so that the two names on the form agree, does not silence it.
    values = {**TYPED, "submission": str(uuid.uuid4()), "amount": "10", "bank_code": BANK}
    values |= {"account_number": NUMBER, "typed_name": holder, "name_reason": ""}
    review = as_maker.post(WITHDRAWAL, {**values, "step": "review"})
    assert said in text_of(review)
    prepared = {**values, "step": "prepare", "digest": review.context["digest"]}
    address = as_maker.post(WITHDRAWAL, prepared)["Location"]
    as_maker.post(f"{ACCOUNTS}{before.pk}/delete/")
    html = text_of(as_checker.get(address))
    assert said in html
    assert "MUSA BEFORE · the bank&#x27;s name was another one then" in html


def test_a_holder_that_did_not_change_is_not_warned_of(
    as_maker: Client, rent: SavedAccount, holder: str
) -> None:
    values = {**TYPED, "amount": "10", "bank_code": BANK, "account_number": NUMBER, "typed_name": holder}
    review = as_maker.post(WITHDRAWAL, {**values, "step": "review"})
    assert review.status_code == 200
    assert review.context["cautions"] == []


def test_an_account_is_saved_from_an_operation_for_the_whole_team(
    as_maker: Client, sign_in: SignIn, operation: Operation
) -> None:
    answer = as_maker.post(f"/operations/{operation.pk}/save-account/", {"name": " Rent "}, follow=True)
    html = text_of(answer)
    assert "The account is saved as “Rent”. Saving it pays nobody." in html
    assert "Save the account…" not in html
    colleague = sign_in(Client(), factories.person("Ngozi Eze", "Preparer"))  # type: ignore[arg-type]
    assert labels(colleague)["Saved"] == ["Rent · ADA CHIDINMA OBI, Access Bank ••6789"]
    assert "Tunde Bello" in text_of(colleague.get(ACCOUNTS))


def test_saving_an_account_changes_no_operation(as_maker: Client, operation: Operation) -> None:
    before = Operation.objects.values().get()
    as_maker.post(f"/operations/{operation.pk}/save-account/", {"name": "Rent"})
    assert Operation.objects.values().get() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "This field is required."),
        ("x" * 61, "at most 60 characters"),
        ("RENT", "An account is called “RENT” already"),
    ],
)
def test_a_name_that_is_none_or_taken_is_refused_beside_its_field(
    as_maker: Client, maker: User, name: str, said: str
) -> None:
    saved(maker, "Rent")
    other = factories.prepared_apart(maker)
    kept = services.save_account(other.pk, actor=maker, name="Diesel")
    another = factories.prepared_apart(maker)
    for address in (f"/operations/{another.pk}/save-account/", f"{ACCOUNTS}{kept.pk}/"):
        answer = as_maker.post(address, {"name": name})
        assert answer.status_code == 422
        assert said in text_of(answer)
        assert 'id="id_name_error"' in text_of(answer)
        assert f'value="{name}"' in text_of(answer) or not name
    assert set(SavedAccount.objects.values_list("name", flat=True)) == {"Rent", "Diesel"}


def test_an_account_is_saved_once(as_maker: Client, operation: Operation) -> None:
    address = f"/operations/{operation.pk}/save-account/"
    as_maker.post(address, {"name": "Rent"})
    again = as_maker.post(address, {"name": "Flat"})
    assert again.status_code == 422
    assert "This account is saved already, as “Rent”." in text_of(again)


def test_the_team_saves_a_bounded_number(
    maker: User, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_accounts, "AT_MOST", 1)
    saved(maker, "Rent", account_number="1111112222")
    with pytest.raises(SavedAccountError, match="Delete one before"):
        services.save_account(operation.pk, actor=maker, name="One more")


def test_an_account_is_renamed_and_deleted_by_anybody_who_prepares(
    sign_in: SignIn, maker: User, rent: SavedAccount
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


def test_the_number_stands_in_no_address_no_list_no_log_and_no_audit_entry(
    as_maker: Client, rent: SavedAccount, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        pages = [
            as_maker.get(WITHDRAWAL),
            as_maker.get(ACCOUNTS),
            as_maker.get(f"{ACCOUNTS}{rent.pk}/"),
        ]
        filled_in = text_of(use(as_maker, f"saved-{rent.pk}"))
        as_maker.post(f"{ACCOUNTS}{rent.pk}/", {"name": "Office rent"})
        as_maker.post(f"{ACCOUNTS}{rent.pk}/delete/")
    assert [NUMBER in text_of(page) for page in pages] == [False] * 3
    assert filled_in.count(NUMBER) == 1  # in its field
    assert NUMBER not in caplog.text
    assert not [entry for entry in Entry.objects.all() if NUMBER in f"{entry.target_label}{entry.detail}"]


def test_a_long_list_is_bounded_and_searched(as_maker: Client, maker: User) -> None:
    many_saved(maker, 60)
    assert "Find a saved account" in text_of(as_maker.get(WITHDRAWAL))
    assert len(labels(as_maker)["Saved"]) == known_accounts.SAVED_SHOWN
    assert labels(as_maker, **{"known-text": "lier 058"})["Saved"] == [
        "Supplier 058 · HOLDER 058, Access Bank ••0058"
    ]
    assert labels(as_maker, **{"known-text": "holder 059"})["Saved"][0].startswith("Supplier 059")
    assert labels(as_maker, **{"known-text": "nothing like it"}) == {}
    html = text_of(as_maker.post(WITHDRAWAL, {**TYPED, "step": "find", "known-text": "058"}))
    assert 'value="058"' in html
    assert 'value="12,5 half typed"' in html


def test_an_account_beyond_what_is_shown_can_still_be_used(as_maker: Client, maker: User) -> None:
    many_saved(maker, 60)
    last = SavedAccount.objects.get(name="Supplier 059")
    assert f"saved-{last.pk}" not in refs(as_maker)
    assert values_of(use(as_maker, f"saved-{last.pk}"))["account_number"] == "0000000059"


def test_the_pages_keep_to_their_queries_and_bytes(
    as_maker: Client, maker: User, rent: SavedAccount, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    many_saved(maker, 60)
    for _ in range(12):
        factories.prepared_apart(maker)
    asked: list[Callable[[], Any]] = [
        lambda: as_maker.get(WITHDRAWAL),
        lambda: as_maker.get(PAYMENT),
        lambda: use(as_maker, f"saved-{rent.pk}"),
        lambda: as_maker.get(ACCOUNTS),
    ]
    for ask in asked:
        with django_assert_max_num_queries(8):
            answer = ask()
        assert len(gzip.compress(answer.content)) < 14 * 1024
    assert len(as_maker.get(ACCOUNTS).context["page"].rows) == 25
