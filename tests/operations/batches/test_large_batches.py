"""What thousands of rows cost: neither queries nor memory for each of them."""

import re
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.db.models.signals import post_init
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core.models import CachedReadRow
from backoffice.operations.batches import checking
from backoffice.operations.models.batches import FileState
from backoffice.operations.models.bulk_releases import BulkRelease, BulkReleaseItem
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.workflow import bulk_release
from tests import factories
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


@pytest.mark.usefixtures("warm_caches")
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
    assert [one.pk for one in operations] == list(
        batch.rows.order_by("number").values_list("operation", flat=True)
    )
    assert len(operations) == 60
    assert not any({"payload", "rule", "levels"} & vars(one).keys() for one in operations)
    assert len(page.context["largest"]) == 50
    assert len(re.findall(r'<th scope="row" class="op">', page.content.decode())) == 50


def started(batch: Operation, person: User) -> BulkRelease:
    """The order to send all rows of the batch."""
    return bulk_release.start_bulk_release(
        uuid4(), payouts.row_operations(batch), actor=person, second_factor_at=timezone.now()
    )


def cost(action: Any, *arguments: object, **more: object) -> tuple[int, int]:
    """How many queries this makes, and how many operations and items it reads."""
    read = []

    def remember(sender: type, **_signal: object) -> None:
        if sender in {Operation, BulkReleaseItem}:
            read.append(sender)

    post_init.connect(remember)
    try:
        return queries(action, *arguments, **more), len(read)
    finally:
        post_init.disconnect(remember)


def test_a_turn_of_an_order_costs_the_same_however_many_operations_wait(
    preparer: User, approver: User, settings: Settings
) -> None:
    settings.OTP_MODE = "not_asked"
    few, many = (
        started(payouts.applied(preparer, approver, payouts.transfers(count, first=first)), approver)
        for count, first in ((30, 1), (MANY, 100))
    )
    spent = []
    for order in (few, many):
        bulk_release.release_pending(order.pk)
        Release.objects.all().delete()
        spent.append(cost(bulk_release.release_pending, order.pk))
        assert Release.objects.count() == 25
        Release.objects.all().delete()
    (queries_of_few, read_of_few), (queries_of_many, read_of_many) = spent
    assert queries_of_many <= queries_of_few + WHAT_IS_KEPT_FOR_SECONDS
    assert read_of_many <= read_of_few


def test_a_large_order_has_no_more_turns_but_more_releases_in_each(
    preparer: User, approver: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OTP_MODE = "not_asked"
    monkeypatch.setattr(bulk_release, "_AT_ONCE", 1)
    monkeypatch.setattr(bulk_release, "_MOST_TURNS", 4)
    order = started(payouts.applied(preparer, approver, payouts.transfers(12)), approver)
    released = []
    while BulkRelease.objects.filter(pk=order.pk, is_pending=True).exists():
        bulk_release.release_pending(order.pk)
        released.append(Release.objects.count())
    assert released == [3, 6, 9, 12]


def test_a_code_is_used_without_reading_all_that_wait_for_one(preparer: User, approver: User) -> None:
    few, many = (
        started(payouts.applied(preparer, approver, payouts.transfers(count, first=first)), approver)
        for count, first in ((FEW, 1), (MANY, 100))
    )
    spent = []
    for order, code in ((few, "111111"), (many, "222222")):
        with_code = {"actor": approver, "second_factor_at": timezone.now(), "otp": SecretStr(code)}
        spent.append(cost(bulk_release.release_with_code, order, **with_code))
    (queries_of_few, _), (queries_of_many, read_of_many) = spent
    assert Release.objects.count() == 2
    assert queries_of_many <= queries_of_few
    assert read_of_many <= 110


def test_a_request_with_a_code_ends_although_all_operations_are_refused(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_release, "_TRIED_WITH_CODE", 3)
    order = started(payouts.applied(preparer, approver, payouts.transfers(6)), approver)
    for operation in Operation.objects.filter(batch_row__isnull=False):
        factories.expire(operation)
    now, code = timezone.now(), SecretStr("111111")
    for refused in (3, 6):
        assert not bulk_release.release_with_code(order, actor=approver, second_factor_at=now, otp=code)
        assert order.items.filter(refusal__isnull=False).count() == refused
