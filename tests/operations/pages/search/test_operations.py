"""Operations are found by their reference, by words and by the provider's id, whatever became of them."""

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages import search as searching
from tests import factories
from tests.operations.kinds.samples import SAMPLES
from tests.operations.pages.search.steps import found, paid, search
from tests.operations.steps import put, text_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "write", [str, str.lower, lambda text: text.replace("-", ""), lambda text: f" {text} "]
)
def test_a_reference_redirects_to_its_operation(
    as_preparer: Client, operation: Operation, write: Callable[[str], str]
) -> None:
    answer = search(as_preparer, write(operation.reference))
    assert answer.status_code == 302
    assert answer["Location"] == operation.get_absolute_url()


def test_a_reference_prefix_finds_its_operations(as_preparer: Client, preparer: User) -> None:
    operations = [factories.prepared(preparer) for _ in range(3)]
    assert operations[1].reference in found(as_preparer, operations[1].reference[:6].lower())


def test_words_find_operations_by_name_bank_and_summary(as_preparer: Client, preparer: User) -> None:
    ada = factories.prepared(preparer)
    kola = factories.prepared(preparer, account_name="KOLA VENTURES LTD", account_number="1112220031")
    assert found(as_preparer, "kola") == [kola.reference]
    assert found(as_preparer, "••6789") == [ada.reference]
    assert found(as_preparer, "withdraw ngn") == [kola.reference, ada.reference]
    assert not search(as_preparer, "nobody at all").context["found"]


def test_results_are_newest_first_and_more_than_ten_link_to_the_list(
    as_preparer: Client, preparer: User
) -> None:
    operations = [factories.prepared(preparer) for _ in range(11)]
    answer = search(as_preparer, "chidinma")
    hits = answer.context["found"].operations
    assert [row.pk for row in hits.rows] == [one.pk for one in reversed(operations[1:])]
    assert hits.has_more
    assert "/operations/?tab=all&amp;text=chidinma" in text_of(answer)


def test_the_linked_list_has_every_status(as_preparer: Client, preparer: User) -> None:
    operations = [factories.prepared(preparer) for _ in range(12)]
    done = {paid(one).pk for one in operations[:4]}
    [link] = re.findall(
        r'<a href="([^"]+)">View all matching operations', text_of(search(as_preparer, "chidinma"))
    )
    listed = {row.pk for row in as_preparer.get(unescape(link)).context["page"].rows}
    assert listed == {one.pk for one in operations}
    assert done < listed


@pytest.mark.parametrize("text", ["012 345 6789", "withdraw ngn", "••6789", "66f1c0ffee"])
def test_list_and_search_find_the_same_operations(
    as_preparer: Client, preparer: User, operation: Operation, text: str
) -> None:
    factories.prepared(preparer, account_name="KOLA VENTURES LTD", account_number="1112220031")
    factories.attempt(operation, provider_transaction_id="66f1c0ffee")
    result = search(as_preparer, text).context["found"]
    here = {row.pk for row in result.operations.rows} | {row.operation_id for row in result.attempts.rows}
    assert operation.pk in here
    listed = as_preparer.get("/operations/", {"tab": "all", "text": text}).context["page"].rows
    assert {row.pk for row in listed} == here


def test_the_list_finds_a_reference_prefix(as_preparer: Client, operation: Operation) -> None:
    listed = as_preparer.get("/operations/", {"tab": "all", "text": operation.reference[:5].lower()})
    assert operation in listed.context["page"].rows


def test_the_providers_transaction_finds_its_operation(
    as_preparer: Client, preparer: User, operation: Operation
) -> None:
    factories.attempt(operation, provider_transaction_id="66f1c0ffee")
    answer = search(as_preparer, "66f1c0ffee")
    assert [row.operation for row in answer.context["found"].attempts.rows] == [operation]
    assert search(as_preparer, "66f1c0ffe").context["found"].attempts.rows == []


def test_an_operation_of_any_status_is_found(as_preparer: Client, operation: Operation) -> None:
    put(operation, "approved", "sending", "unknown")
    assert found(as_preparer, "chidinma") == [operation.reference]


def test_words_search_the_newest_operations_and_references_all(
    as_preparer: Client, preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "WORDS_SEARCHED_IN", 2)
    oldest, *others = [factories.prepared(preparer) for _ in range(3)]
    answer = search(as_preparer, "chidinma")
    assert {row.pk for row in answer.context["found"].operations.rows} == {one.pk for one in others}
    assert search(as_preparer, oldest.reference)["Location"] == oldest.get_absolute_url()
    assert oldest.reference in found(as_preparer, "0123456789")


@pytest.mark.parametrize("text", ["50%_off", "W-", "W-7\\", "'; --", "ÀÉ", "W-UU", "🐘🐘"])
def test_unusual_texts_find_nothing(as_preparer: Client, operation: Operation, text: str) -> None:
    assert found(as_preparer, text) == []


def test_who_was_only_promised_a_payout_is_no_paid_recipient(
    as_preparer: Client, preparer: User, approver: User
) -> None:
    """An off-ramp payment that succeeded was created: whether its customer pays is not known."""
    payment = factories.prepared_of_kind("payment", SAMPLES["payment"], preparer)
    put(payment, "approved", "sending", "succeeded")
    hits = search(as_preparer, payment.recipient).context["found"]
    assert [row.pk for row in hits.operations.rows] == [payment.pk]
    assert hits.recipients.rows == []
