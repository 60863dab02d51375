"""The page of one transaction: in words first, then as the provider reports it, then its earlier values."""

import json
import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.ledger.models import Transaction, TransactionChange
from backoffice.operations.pages.transactions import transaction_facts
from tests import factories
from tests.ledger.stored_transactions import AT, stored
from tests.operations.pages.transactions.steps import PAGE
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db


def page_of(reader: Client, one: Transaction) -> str:
    return text_of(reader.get(f"{PAGE}{one.pk}/"))


def changed(one: Transaction, before: dict[str, Any], after: dict[str, Any]) -> None:
    TransactionChange.objects.create(transaction=one, seen_at=AT, before=before, after=after)


def test_all_reported_fields_are_shown_with_their_earlier_values(reader: Client) -> None:
    one = stored(previous_balance=Decimal(7), sender="kola", business_id="biz-9", status="failed")
    changed(one, {"status": "processing"}, {"status": "failed"})
    html = page_of(reader, one)
    for shown in (one.transaction_id, "kola", "biz-9", "NGN 7.00", "<s>processing</s> failed"):
        assert shown in html
    assert "No operation is matched to this transaction." in html
    assert reader.get(f"{PAGE}{one.pk + 1}/").status_code == 404


def test_technical_fields_are_collapsed_under_both_names(reader: Client) -> None:
    one = stored(business_id="biz-9", is_from_registered_user=True, fee=Decimal("1.50"))
    above, fold = page_of(reader, one).split("Raw provider record")
    assert "biz-9" not in above
    assert "<dt>Business ID <code>businessId</code></dt><dd>biz-9</dd>" in fold
    assert "<dt>From a registered user <code>isFromRegUser</code></dt><dd>true</dd>" in fold
    assert "<dd>NGN 1.50</dd>" in above
    assert "<dt>Fee <code>fee</code></dt><dd>1.5</dd>" in fold


@pytest.mark.parametrize(("from_currency", "is_told"), [("USD", True), ("NGN", False), ("", False)])
def test_only_transactions_from_another_currency_show_a_conversion(from_currency: str, is_told: bool) -> None:
    fields = dict(
        transaction_facts(stored(currency="NGN", from_currency=from_currency, from_amount=Decimal(5)))
    )
    assert fields.get("Converted from") == ("USD 5.00" if is_told else None)


def test_changes_are_shown_formatted_and_stored_exactly(reader: Client, auditor: User) -> None:
    User.objects.filter(pk=auditor.pk).update(time_zone="Africa/Lagos")
    one = stored(currency="NGN")
    before = {"fee": None, "updated_at": "2026-03-04T06:00:00+00:00", "is_from_registered_user": False}
    after = {"fee": "1.5", "updated_at": "2026-03-04T07:00:00+00:00", "is_from_registered_user": True}
    changed(one, before, after)
    html = page_of(reader, one)
    assert "<dt>Fee</dt><dd><s>none</s> NGN 1.50</dd>" in html
    assert "<dt>Updated</dt><dd><s>4 Mar 2026, 07:00:00</s> 4 Mar 2026, 08:00:00</dd>" in html
    assert "<dt>From a registered user</dt><dd><s>no</s> yes</dd>" in html
    [kept] = re.findall(r"<pre>(.*?)</pre>", html, re.DOTALL)
    assert json.loads(unescape(kept)) == {"before": before, "after": after}


def test_an_unknown_stored_field_is_shown_by_its_name(reader: Client) -> None:
    one = stored()
    changed(one, {"colour": "red"}, {"colour": "<blue>"})
    assert "<dt>colour</dt><dd><s>red</s> &lt;blue&gt;</dd>" in page_of(reader, one)


def test_a_long_id_in_text_is_not_wrapped(reader: Client) -> None:
    one = stored(counterparty="Reversal of 6b028d38161a52ca0e4b7609")
    text = 'Reversal of <span class="id">6b028d38161a52ca0e4b7609</span>'
    assert text in page_of(reader, one)
    assert text in text_of(reader.get(PAGE))


def test_a_refund_leads_to_the_operation_of_the_transaction_that_it_names(
    reader: Client, preparer: User
) -> None:
    failed = stored(transaction_id="6b028d38161a52ca0e4b7609", status="failed")
    refund = stored(counterparty=f"Reversal of {failed.transaction_id}", direction="in", type="deposit")
    operation = factories.prepared(preparer)
    factories.attempt(operation, provider_transaction_id=failed.transaction_id)
    page = page_of(reader, refund)
    assert f'The counterparty names this transaction: <a class="mono" href="{PAGE}{failed.pk}/">' in page
    assert f'<a href="{operation.get_absolute_url()}">' in page
    assert "No operation is matched to this transaction." in page
    assert "The counterparty names" not in page_of(reader, failed)


def test_operation_and_transaction_link_to_each_other(reader: Client, preparer: User) -> None:
    one = stored(transaction_id="TX/1 &2")
    operation = factories.prepared(preparer)
    factories.attempt(operation, provider_transaction_id=one.transaction_id)
    page = text_of(reader.get(operation.get_absolute_url()))
    link = re.search(r'href="([^"]*)">View in transactions', page)
    assert link is not None
    listed = text_of(reader.get(unescape(link[1])))
    assert f'href="{PAGE}{one.pk}/"' in listed
    assert operation.reference in listed
