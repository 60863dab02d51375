"""What thousands of rows cost: neither queries nor memory for each of them."""

import re
from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from backoffice.accounts.models import User
from backoffice.core.models import CachedReadRow
from backoffice.operations.batches import checking
from backoffice.operations.models.batches import FileState
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Operation
from tests.operations.batches import payouts
from tests.operations.conftest import SignIn
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
FEW, MANY = 5, 300
MOST_QUERIES = 14  # on PostgreSQL, whose clock is a query
WHAT_IS_KEPT_FOR_SECONDS = 3  # queries of what every page shows, such as whether payments are paused
ACCOUNTS = "currency,amount,bank_code,account_number,typed_name,name_reason,memo"


def withdrawals(count: int) -> list[str]:
    return [f"NGN,{1000 + number}.00,044,01{number:08},Ada Obi,," for number in range(count)]


def queries(action: Any, *arguments: object, **more: object) -> int:
    with CaptureQueriesContext(connection) as captured:
        action(*arguments, **more)
    return len(captured)


def test_the_check_of_a_row_needs_no_query_of_its_own(preparer: User, provider: StubProvider) -> None:
    provider.answer_resolve = lambda: (200, '{"data": {"accountName": "Ada Obi", "bankName": "Access Bank"}}')
    found = []
    for count in (FEW, checking.CHUNK):
        file = payouts.uploaded(preparer, withdrawals(count), kind="withdrawal", header=ACCOUNTS)
        checking.check_file(file.pk)  # not being checked yet
        file.state = FileState.CHECKING
        file.save()
        CachedReadRow.objects.all().delete()
        found.append(queries(checking.check_file, file.pk))
        file.refresh_from_db()
        assert (file.state, file.checked_count, file.error_count) == (FileState.CHECKED, count, 0)
        assert CachedReadRow.objects.filter(pk__startswith="holder:").count() == count
    assert found[1] <= found[0]
    assert len(provider.resolved) == FEW + checking.CHUNK


def test_the_pages_of_a_batch_need_no_query_for_a_row(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    client = sign_in(Client(), approver)
    few, many = (
        _queries_of_pages(client, payouts.applied(preparer, approver, rows))
        for rows in (payouts.transfers(FEW), payouts.transfers(MANY, first=100))
    )
    assert {page: count for page, count in many.items() if count > few[page] + WHAT_IS_KEPT_FOR_SECONDS} == {}
    del many["confirm"]  # it releases an operation, too
    assert {page: count for page, count in many.items() if count > MOST_QUERIES} == {}


def _queries_of_pages(client: Client, batch: Operation) -> dict[str, int]:
    send = f"/operations/send/?batch={batch.reference}"
    pages = [batch.get_absolute_url(), f"{batch.get_absolute_url()}rows/", "/operations/", send]
    found = {page.replace(str(batch.pk), "").partition("?")[0]: queries(client.get, page) for page in pages}
    selection = client.get(send).context["selection"]
    given = {"submission": str(uuid4()), "selection": selection.digest, "otp": "123456"}
    found["confirm"] = queries(client.post, send, given)
    progress = BulkRelease.objects.get(pk=given["submission"]).get_absolute_url()
    return {**found, "progress": queries(client.get, progress)}


def test_the_confirmation_keeps_no_content_of_the_operations_that_it_does_not_list(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(60))
    page = sign_in(Client(), approver).get(f"/operations/send/?batch={batch.reference}")
    operations = page.context["selection"].operations
    assert [one.pk for one in operations] == _in_order(operations)
    assert len(operations) == 60
    assert not any({"payload", "rule", "levels"} & vars(one).keys() for one in operations)
    assert len(page.context["largest"]) == 50
    assert len(re.findall(r'<th scope="row" class="op">', page.content.decode())) == 50


def _in_order(operations: Iterable[Operation]) -> list[Any]:
    found = Operation.objects.filter(pk__in=[one.pk for one in operations])
    return list(found.order_by("prepared_at", "id").values_list("pk", flat=True))
