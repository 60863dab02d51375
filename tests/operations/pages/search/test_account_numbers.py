"""An account number finds what was paid to it and to whom, and is in no link and no URL."""

import re
from decimal import Decimal
from html import unescape

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from tests import factories
from tests.operations.pages.search.steps import paid, search
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("written", ["0123456789", "012 345 6789", "0123-456-789"])
def test_an_account_number_finds_the_payments_to_it(
    as_preparer: Client, preparer: User, written: str
) -> None:
    here = paid(factories.prepared(preparer))
    pending = factories.prepared(preparer)
    factories.prepared(preparer, account_number="5550001112")
    answer = search(as_preparer, written)
    result = answer.context["found"]
    assert {row.pk for row in result.operations.rows} == {here.pk, pending.pk}
    [recipient] = result.recipients.rows
    assert (recipient.name, recipient.times) == ("ADA CHIDINMA OBI", 1)
    [link] = re.findall(r'href="([^"]+same_recipient_as=[^"]+)">ADA', text_of(answer))
    listed = as_preparer.get(unescape(link))
    assert [row.pk for row in listed.context["page"].rows] == [here.pk]
    assert f"Same recipient as: <b>{here.reference}</b>" in text_of(listed)


@pytest.mark.parametrize(
    "written", ["0123456789", "012 345 6789", "01234567", "1bvbmseystwetqtfn5au4m4gfg7xjanvn2"]
)
def test_no_url_contains_an_account_number(as_preparer: Client, preparer: User, written: str) -> None:
    for _ in range(11):
        paid(factories.prepared(preparer))
    answer = search(as_preparer, written)
    assert answer["Cache-Control"] == "no-store"
    links = re.findall(r'(?:href|action|hx-[a-z]+)="([^"]*)"', text_of(answer))
    assert not [link for link in links if written.replace(" ", "")[:8] in link or written in unescape(link)]
    assert "found" not in (as_preparer.get("/search/", {"q": written}).context or {})


def test_all_operations_to_an_account_are_in_one_list(as_preparer: Client, preparer: User) -> None:
    operations = [factories.prepared(preparer) for _ in range(12)]
    factories.prepared(preparer, account_number="5550001112")
    [link] = re.findall(
        r'<a href="([^"]+)">View all matching operations', text_of(search(as_preparer, "0123456789"))
    )
    listed = as_preparer.get(unescape(link)).context["page"].rows
    assert {row.pk for row in listed} == {one.pk for one in operations}


def test_the_recipient_of_an_operation_that_is_not_there_was_paid_nothing(
    as_preparer: Client, operation: Operation
) -> None:
    assert not as_preparer.get("/operations/", {"same_recipient_as": "W-NOBODY"}).context["page"].rows


def test_only_who_was_paid_is_a_recipient(as_preparer: Client, preparer: User) -> None:
    factories.prepared(preparer)
    assert search(as_preparer, "chidinma").context["found"].recipients.rows == []


def test_a_recipient_is_one_account_however_often_it_was_paid(as_preparer: Client, preparer: User) -> None:
    for amount in ("1", "2"):
        paid(factories.prepared(preparer, amount=Decimal(amount)))
    paid(factories.prepared(preparer, account_number="5550001112"))
    rows = search(as_preparer, "chidinma").context["found"].recipients.rows
    assert sorted(row.times for row in rows) == [1, 2]
