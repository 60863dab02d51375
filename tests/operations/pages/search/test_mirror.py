"""Transactions of the mirror and the merchant's own accounts are found, without asking the provider."""

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.ledger.models import Transaction
from tests.ledger.stored_transactions import store, stored, unsaved
from tests.operations.conftest import SignIn
from tests.operations.pages.search.steps import listed, search
from tests.operations.steps import text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


def read_accounts(client: Client, provider: StubProvider, **answers: Any) -> None:
    """The provider has shown the accounts; it is asked no more."""
    for name, value in answers.items():
        setattr(provider, name, json.dumps(value))
    assert client.get("/money/bank-accounts/?read=1").status_code == 200
    provider.before_get = lambda: pytest.fail("The service was asked")


ACCOUNT = {
    "accountName": "Lagos shop",
    "assets": [{"currency": "NGN", "id": "0455001122", "balance": 1}],
}


@pytest.mark.parametrize("text", ["66f1c0ffee", "kola vent", "VENTURES", "biz-42"])
def test_a_mirrored_transaction_is_found_by_id_and_names(as_preparer: Client, text: str) -> None:
    one = stored(transaction_id="66f1c0ffee", counterparty="Kola Ventures", sender="Kola Ventures")
    stored(transaction_id="66f1c0ffed", business_id="biz-1")
    Transaction.objects.filter(pk=one.pk).update(business_id="biz-42")
    assert "Search provider transactions" in text_of(search(as_preparer, text))
    for headers in ({}, HTMX):
        answer = listed(as_preparer, text, headers)
        assert answer.context["listed"].rows == [one]
        assert f'href="/transactions/{one.pk}/">Withdrawal, ' in text_of(answer)


def test_htmx_gets_the_partial_only(as_preparer: Client) -> None:
    html = text_of(listed(as_preparer, "nobody at all", HTMX))
    assert html.strip().startswith('<section class="panel" id="found-transactions">')
    assert "No transaction has this ID or a name with this text." in html


def test_searching_transactions_needs_the_permission(
    sign_in: SignIn, may_only: Callable[..., User], outsider: User
) -> None:
    stored(transaction_id="66f1c0ffee")
    client = sign_in(Client(), may_only(outsider, "operations.view_operation"))
    assert "found-transactions" not in text_of(search(client, "66f1c0ffee"))
    assert listed(client, "66f1c0ffee").context["listed"].rows == []


def test_partial_ids_and_two_letters_find_no_transaction(as_preparer: Client) -> None:
    stored(transaction_id="66f1c0ffee", counterparty="Kola Ventures")
    for text in ("66f1c0ff", "ko"):
        assert listed(as_preparer, text).context["listed"].rows == []


def test_more_than_ten_transactions_link_to_the_list(as_preparer: Client) -> None:
    store([unsaved(counterparty="Kola Ventures") for _ in range(12)])
    answer = listed(as_preparer, "kola vent")
    assert len(answer.context["listed"].rows) == 10
    [link] = re.findall(r'<a href="(/transactions/[^"]+)">View all matching', text_of(answer))
    assert len(as_preparer.get(unescape(link)).context["rows"]) == 12


@pytest.mark.parametrize("text", ["lagos", "0455001122", "0455 001 122"])
def test_the_merchants_own_accounts_are_found_by_name_and_number(
    as_preparer: Client, provider: StubProvider, text: str
) -> None:
    read_accounts(
        as_preparer, provider, accounts=[ACCOUNT, {**ACCOUNT, "accountName": "Abuja", "assets": []}]
    )
    answer = search(as_preparer, text)
    [account] = answer.context["found"].own_accounts.rows
    assert (account.name, account.currency, account.number) == ("Lagos shop", "NGN", "0455001122")
    assert 'href="/money/bank-accounts/">Lagos shop' in text_of(answer)
