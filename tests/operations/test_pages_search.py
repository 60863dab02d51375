"""The search: what it finds, what it does not, and for whom."""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from html import unescape
from importlib import import_module
from types import MappingProxyType
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.ledger import facets
from backoffice.ledger.mirrored import Transaction
from backoffice.operations import pause
from backoffice.operations import search as searching
from backoffice.operations.models import Operation
from tests import factories
from tests.ledger.transactions import store, stored, unsaved
from tests.operations.steps import put, text_of
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}
SignIn = Callable[[Client, User], Client]


def search(client: Client, text: str) -> Any:
    return client.post("/search/", {"q": text})


def listed(client: Client, text: str, headers: Mapping[str, str] = MappingProxyType({})) -> Any:
    """The service's transactions, which fill in the page."""
    return client.post("/search/", {"q": text, "transactions": "yes"}, headers=headers)


def found(client: Client, text: str) -> list[str]:
    """References of the operations that were found."""
    return [row.reference for row in search(client, text).context["found"].operations.rows]


def paid(operation: Operation) -> Operation:
    Operation.objects.filter(pk=operation.pk).update(status="approved")
    Operation.objects.filter(pk=operation.pk).update(status="sending")
    Operation.objects.filter(pk=operation.pk).update(status="succeeded", closed_at=timezone.now())
    return operation


@pytest.mark.parametrize(
    "write", [str, str.lower, lambda text: text.replace("-", ""), lambda text: f" {text} "]
)
def test_a_reference_leads_to_its_operation(
    as_maker: Client, operation: Operation, write: Callable[[str], str]
) -> None:
    answer = search(as_maker, write(operation.reference))
    assert answer.status_code == 302
    assert answer["Location"] == operation.get_absolute_url()


def test_the_beginning_of_a_reference_finds_it_among_others(as_maker: Client, maker: User) -> None:
    operations = [factories.prepared(maker) for _ in range(3)]
    assert operations[1].reference in found(as_maker, operations[1].reference[:6].lower())


def test_words_find_operations_by_name_bank_and_sentence(as_maker: Client, maker: User) -> None:
    ada = factories.prepared(maker)
    kola = factories.prepared(maker, account_name="KOLA VENTURES LTD", account_number="1112220031")
    assert found(as_maker, "kola") == [kola.reference]
    assert found(as_maker, "••6789") == [ada.reference]
    assert found(as_maker, "withdraw ngn") == [kola.reference, ada.reference]
    assert not search(as_maker, "nobody at all").context["found"]


def test_the_newest_come_first_and_more_than_ten_lead_to_the_list(as_maker: Client, maker: User) -> None:
    operations = [factories.prepared(maker) for _ in range(11)]
    answer = search(as_maker, "chidinma")
    hits = answer.context["found"].operations
    assert [row.pk for row in hits.rows] == [one.pk for one in reversed(operations[1:])]
    assert hits.has_more
    assert "/operations/?tab=all&amp;text=chidinma" in text_of(answer)


def test_what_there_is_more_of_stands_in_one_list_whatever_became_of_it(
    as_maker: Client, maker: User
) -> None:
    operations = [factories.prepared(maker) for _ in range(12)]
    done = {paid(one).pk for one in operations[:4]}
    [link] = re.findall(r'There are more: <a href="([^"]+)"', text_of(search(as_maker, "chidinma")))
    listed = {row.pk for row in as_maker.get(unescape(link)).context["page"].rows}
    assert listed == {one.pk for one in operations}
    assert done < listed


@pytest.mark.parametrize("text", ["012 345 6789", "withdraw ngn", "••6789", "66f1c0ffee"])
def test_the_list_finds_whatever_the_search_finds(
    as_maker: Client, maker: User, operation: Operation, text: str
) -> None:
    factories.prepared(maker, account_name="KOLA VENTURES LTD", account_number="1112220031")
    factories.attempt(operation, service_transaction_id="66f1c0ffee")
    result = search(as_maker, text).context["found"]
    here = {row.pk for row in result.operations.rows} | {row.operation_id for row in result.transactions.rows}
    assert operation.pk in here
    listed = as_maker.get("/operations/", {"tab": "all", "text": text}).context["page"].rows
    assert {row.pk for row in listed} == here


def test_the_list_finds_the_beginning_of_a_reference(as_maker: Client, operation: Operation) -> None:
    listed = as_maker.get("/operations/", {"tab": "all", "text": operation.reference[:5].lower()})
    assert operation in listed.context["page"].rows


@pytest.mark.parametrize("written", ["0123456789", "012 345 6789", "0123-456-789"])
def test_an_account_number_finds_what_was_paid_to_it(as_maker: Client, maker: User, written: str) -> None:
    here = paid(factories.prepared(maker))
    pending = factories.prepared(maker)
    factories.prepared(maker, account_number="5550001112")
    answer = search(as_maker, written)
    result = answer.context["found"]
    assert {row.pk for row in result.operations.rows} == {here.pk, pending.pk}
    [beneficiary] = result.beneficiaries.rows
    assert (beneficiary.name, beneficiary.times) == ("ADA CHIDINMA OBI", 1)
    [link] = re.findall(r'href="([^"]+beneficiary_of=[^"]+)">ADA', text_of(answer))
    listed = as_maker.get(unescape(link))
    assert [row.pk for row in listed.context["page"].rows] == [here.pk]
    assert f"Paid to the same as <b>{here.reference}</b>" in text_of(listed)


@pytest.mark.parametrize(
    "written", ["0123456789", "012 345 6789", "01234567", "1bvbmseystwetqtfn5au4m4gfg7xjanvn2"]
)
def test_no_link_and_no_address_holds_an_account_number(as_maker: Client, maker: User, written: str) -> None:
    for _ in range(11):
        paid(factories.prepared(maker))
    answer = search(as_maker, written)
    assert answer["Cache-Control"] == "no-store"
    links = re.findall(r'(?:href|action|hx-[a-z]+)="([^"]*)"', text_of(answer))
    assert not [link for link in links if written.replace(" ", "")[:8] in link or written in unescape(link)]
    assert "found" not in (as_maker.get("/search/", {"q": written}).context or {})


def test_all_that_went_to_an_account_stands_in_one_list(as_maker: Client, maker: User) -> None:
    operations = [factories.prepared(maker) for _ in range(12)]
    factories.prepared(maker, account_number="5550001112")
    [link] = re.findall(r'There are more: <a href="([^"]+)"', text_of(search(as_maker, "0123456789")))
    listed = as_maker.get(unescape(link)).context["page"].rows
    assert {row.pk for row in listed} == {one.pk for one in operations}


def test_the_beneficiary_of_an_operation_that_is_not_there_was_paid_nothing(
    as_maker: Client, operation: Operation
) -> None:
    assert not as_maker.get("/operations/", {"beneficiary_of": "W-NOBODY"}).context["page"].rows


def test_operations_from_before_accounts_were_kept_are_found_too(
    as_maker: Client, operation: Operation
) -> None:
    Operation.objects.update(beneficiary_account=None)
    assert found(as_maker, "0123456789") == []
    import_module("backoffice.operations.migrations.0004_search_and_saved_filters").name_accounts(apps, None)
    assert found(as_maker, "0123456789") == [operation.reference]


def test_only_who_was_paid_is_a_beneficiary(as_maker: Client, maker: User) -> None:
    factories.prepared(maker)
    assert search(as_maker, "chidinma").context["found"].beneficiaries.rows == []


def test_a_beneficiary_is_one_account_however_often_it_was_paid(as_maker: Client, maker: User) -> None:
    for amount in ("1", "2"):
        paid(factories.prepared(maker, amount=Decimal(amount)))
    paid(factories.prepared(maker, account_number="5550001112"))
    rows = search(as_maker, "chidinma").context["found"].beneficiaries.rows
    assert sorted(row.times for row in rows) == [1, 2]


def test_the_services_transaction_finds_its_operation(
    as_maker: Client, maker: User, operation: Operation
) -> None:
    factories.attempt(operation, service_transaction_id="66f1c0ffee")
    answer = search(as_maker, "66f1c0ffee")
    assert [row.operation for row in answer.context["found"].transactions.rows] == [operation]
    assert search(as_maker, "66f1c0ffe").context["found"].transactions.rows == []


def test_an_operation_of_any_status_is_found(as_maker: Client, operation: Operation) -> None:
    put(operation, "approved", "sending", "unknown")
    assert found(as_maker, "chidinma") == [operation.reference]


def test_words_are_looked_for_among_the_newest_only_but_references_among_all(
    as_maker: Client, maker: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "NEWEST", 2)
    oldest, *others = [factories.prepared(maker) for _ in range(3)]
    answer = search(as_maker, "chidinma")
    assert {row.pk for row in answer.context["found"].operations.rows} == {one.pk for one in others}
    assert search(as_maker, oldest.reference)["Location"] == oldest.get_absolute_url()
    assert oldest.reference in found(as_maker, "0123456789")


def test_people_are_found_by_who_may_see_them(
    sign_in: SignIn, administrator: User, auditor: User, checker: User
) -> None:
    rows = search(sign_in(Client(), administrator), "amara").context["found"].people.rows
    assert rows == [checker]
    assert search(sign_in(Client(), auditor), "amara").context["found"].people.rows == []


def test_a_person_shows_the_roles_or_that_it_is_deactivated(
    sign_in: SignIn, administrator: User, checker: User
) -> None:
    signed_in = sign_in(Client(), administrator)
    assert Role.APPROVER in text_of(search(signed_in, "amara@"))
    User.objects.filter(pk=checker.pk).update(is_active=False)
    assert "Deactivated" in text_of(search(signed_in, "Okafor"))


def test_the_page_says_what_was_searched(as_maker: Client) -> None:
    html = text_of(search(as_maker, "nothing"))
    assert "Nothing of ours was found" in html
    assert "words in the newest 5,000 operations" in html
    assert "as the service told them within a day" in html


def told(client: Client, service: StubService, **answers: Any) -> None:
    """The service has shown the accounts; it is asked no more."""
    for name, value in answers.items():
        setattr(service, name, json.dumps(value))
    assert client.get("/money/bank-accounts/?read=1").status_code == 200
    service.before_get = lambda: pytest.fail("The service was asked")


ACCOUNT = {
    "accountName": "Lagos shop",
    "assets": [{"currency": "NGN", "address": "0455001122", "balance": 1}],
}


@pytest.mark.parametrize("text", ["66f1c0ffee", "kola vent", "VENTURES", "biz-42"])
def test_a_transaction_of_the_mirror_is_found_by_its_id_and_by_names(as_maker: Client, text: str) -> None:
    one = stored(transaction_id="66f1c0ffee", counterparty="Kola Ventures", sender="Kola Ventures")
    stored(transaction_id="66f1c0ffed", business_id="biz-1")
    Transaction.objects.filter(pk=one.pk).update(business_id="biz-42")
    assert "Look among them, too" in text_of(search(as_maker, text))
    for headers in ({}, HTMX):
        answer = listed(as_maker, text, headers)
        assert answer.context["listed"].rows == [one]
        assert f'href="/transactions/{one.pk}/">Withdrawal, ' in text_of(answer)


def test_what_fills_in_the_page_is_the_part_alone(as_maker: Client) -> None:
    html = text_of(listed(as_maker, "nobody at all", HTMX))
    assert html.strip().startswith('<section class="panel" id="found-transactions">')
    assert "None has this id, or a name with this text." in html


def test_who_may_not_see_transactions_is_shown_none(sign_in: SignIn, outsider: User) -> None:
    stored(transaction_id="66f1c0ffee")
    group = Group.objects.create(name="Sees operations alone")
    group.permissions.add(Permission.objects.get(codename="view_operation"))
    outsider.groups.add(group)
    client = sign_in(Client(), outsider)
    assert "found-transactions" not in text_of(search(client, "66f1c0ffee"))
    assert listed(client, "66f1c0ffee").context["listed"].rows == []


def test_a_part_of_an_id_and_a_text_of_two_letters_find_no_transaction(as_maker: Client) -> None:
    stored(transaction_id="66f1c0ffee", counterparty="Kola Ventures")
    for text in ("66f1c0ff", "ko"):
        assert listed(as_maker, text).context["listed"].rows == []


def test_more_transactions_than_ten_lead_to_their_list(as_maker: Client) -> None:
    store([unsaved(counterparty="Kola Ventures") for _ in range(12)])
    answer = listed(as_maker, "kola vent")
    assert len(answer.context["listed"].rows) == 10
    [link] = re.findall(r'There are more: <a href="(/transactions/[^"]+)"', text_of(answer))
    assert len(as_maker.get(unescape(link)).context["rows"]) == 12


@pytest.mark.parametrize("text", ["lagos", "0455001122", "0455 001 122"])
def test_the_merchants_own_accounts_are_found_by_name_and_number(
    as_maker: Client, service: StubService, text: str
) -> None:
    told(as_maker, service, accounts=[ACCOUNT, {**ACCOUNT, "accountName": "Abuja", "assets": []}])
    answer = search(as_maker, text)
    [account] = answer.context["found"].own_accounts.rows
    assert (account.name, account.currency, account.number) == ("Lagos shop", "NGN", "0455001122")
    assert 'href="/money/bank-accounts/">Lagos shop' in text_of(answer)


@pytest.mark.parametrize(("text", "status"), [("", 200), ("x", 422), ("x" * 201, 422), ("a\x00b", 422)])
def test_what_cannot_be_searched_for_says_why(as_maker: Client, text: str, status: int) -> None:
    answer = search(as_maker, text)
    assert answer.status_code == status
    assert ('role="alert"' in text_of(answer)) is (status == 422)


@pytest.mark.parametrize("text", ["50%_off", "W-", "W-7\\", "'; --", "ÀÉ", "W-ZZ", "🐘🐘"])
def test_odd_texts_find_nothing(as_maker: Client, operation: Operation, text: str) -> None:
    assert found(as_maker, text) == []


@pytest.mark.parametrize("role", ["maker", "checker", "auditor", "administrator"])
def test_the_field_stands_on_every_page(sign_in: SignIn, request: pytest.FixtureRequest, role: str) -> None:
    html = text_of(sign_in(Client(), request.getfixturevalue(role)).get("/account/"))
    assert 'action="/search/"' in html


def test_nobody_without_a_role_searches(sign_in: SignIn, outsider: User) -> None:
    client = sign_in(Client(), outsider)
    assert search(client, "chidinma").status_code == 403
    assert 'action="/search/"' not in text_of(client.get("/account/"))


@pytest.mark.parametrize("role", ["maker", "checker", "administrator"])
def test_a_search_needs_eight_queries_at_most(
    sign_in: SignIn,
    request: pytest.FixtureRequest,
    maker: User,
    role: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(11):
        paid(factories.prepared(maker))
    store([unsaved() for _ in range(3)])
    client = sign_in(Client(), request.getfixturevalue(role))
    facets.known_facets()  # asked once by each process
    pause.pause_on_pages()  # asked once a second by each process
    with django_assert_max_num_queries(8):
        assert search(client, "bello").status_code == 200
    pause.pause_on_pages()
    with django_assert_max_num_queries(8):
        assert search(client, "ada").status_code == 200
    with django_assert_max_num_queries(8):
        assert listed(client, "ada").status_code == 200
