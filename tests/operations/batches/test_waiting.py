"""The rows of a batch that can be sent are one line wherever it is listed what waits for a person."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.operations.approval.waiting import operations_waiting_for, waiting_count
from backoffice.operations.batches import control
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.operations import Operation
from backoffice.operations.pages.overview import first_in_progress, first_waiting
from backoffice.operations.states import Status
from backoffice.operations.workflow.bulk_release import MOST_SHOWN, SHOWN_WITHIN, start_bulk_release
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations import steps
from tests.operations.batches import payouts
from tests.operations.conftest import SignIn
from tests.operations.kinds.samples import SAMPLES

pytestmark = pytest.mark.django_db

LIST = "/operations/?tab=waiting"


def listed(client: Client, query: str = "") -> list[str]:
    """The references on the tab, in order, over all of its pages."""
    page = client.get(f"{LIST}{query}").context["page"]
    found = [one.reference for one in page.rows]
    return found + (listed(client, f"{query}&cursor={page.next_cursor}") if page.next_cursor else [])


def test_the_number_in_the_header_agrees_with_a_list_that_shows_all_of_it(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    """Elsewhere it may be some seconds old."""
    client = sign_in(Client(), approver)
    assert waiting_count(approver) == 0
    operation = factories.prepared(preparer)
    with lifted(
        connection
    ):  # as prepared under a version that is no longer in effect, so that the evaluator decides
        Operation.objects.update(policy_version=1)
    assert waiting_count(approver) == 0
    assert listed(client) == [operation.reference]
    assert '<b class="count">1</b>' in client.get(LIST).content.decode()
    assert '<b class="count">' not in client.get(f"{LIST}&text=nothing").content.decode()


def test_a_batch_is_one_line_in_place_of_its_rows(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    other = factories.prepared(preparer)
    first, *rest = payouts.row_operations(batch)
    steps.put(first, Status.SENDING, Status.SUCCEEDED)
    client = sign_in(Client(), approver)
    assert set(listed(client)) == {batch.reference, other.reference}
    assert waiting_count(approver) == 2
    assert {one.reference for one in first_waiting(approver).first} == {batch.reference, other.reference}
    assert first_waiting(approver).total == 2
    for path in (LIST, "/"):
        html = client.get(path).content.decode()
        assert "2 of 3 to send" in html
        assert f'href="/operations/send/?batch={batch.reference}"' in html
        assert f'href="/operations/{batch.pk}/"' in html
        assert '<b class="count">2</b>' in html
        assert not any(one.reference in html for one in rest)
    assert {one.pk for one in operations_waiting_for(approver)} == {other.pk, *(one.pk for one in rest)}


def test_the_open_rows_of_a_batch_are_its_line_unless_a_filter_asks_for_them(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    client = sign_in(Client(), approver)
    other = factories.prepared(preparer)
    rows = {one.reference for one in payouts.row_operations(batch)}
    for query, expected in (
        ("&tab=open", {batch.reference, other.reference}),
        ("&tab=open&status=approved", rows),
        ("&tab=open&text=person.2", {payouts.row_operations(batch)[1].reference}),
        (f"&batch={batch.reference}", rows),
    ):
        page = client.get(f"{LIST}{query}").context["page"]
        assert {one.reference for one in page.rows} == expected
    html = client.get(f"{LIST}&tab=open").content.decode()
    assert "Ready to send" in html
    assert "<small>0 of 2 sent</small>" in html
    for one in payouts.row_operations(batch):
        steps.put(one, Status.SENDING, Status.SUCCEEDED)
    page = client.get(f"{LIST}&tab=open").context["page"]
    assert [one.reference for one in page.rows] == [other.reference]


def test_a_batch_is_one_line_among_the_operations_in_progress(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    other = factories.prepared(preparer)
    found = first_in_progress(preparer)
    assert ({one.pk for one in found.first}, found.total) == ({batch.pk, other.pk}, 2)
    for one in payouts.row_operations(batch):
        steps.put(one, Status.SENDING, Status.UNKNOWN)
    assert [one.pk for one in first_in_progress(preparer).first] == [other.pk]


def bulk_send_line(client: Client, order: BulkRelease) -> str:
    """The line of this bulk send on the overview, and the title of its panel; empty without one."""
    html = client.get("/").content.decode()
    if (place := html.find(f'<a href="{order.get_absolute_url()}">')) < 0:
        return ""
    title = re.findall(r"<h2[^>]*>([^<]+)</h2>", html[:place])[-1]
    text = re.sub(r"<[^>]+>", " ", html[place : html.index("</li>", place)])
    return f"{title}: {' '.join(text.split())}"


def test_a_bulk_send_in_progress_is_on_the_overview_of_all_who_see_operations(
    sign_in: SignIn, preparer: User, approver: User, auditor: User, outsider: User
) -> None:
    rows = payouts.row_operations(payouts.applied(preparer, approver, payouts.transfers(3)))
    order = start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
    steps.put(rows[0], Status.SENDING, Status.PROCESSING)
    for person in (preparer, approver, auditor):
        line = bulk_send_line(sign_in(Client(), person), order)
        assert line.startswith("Unfinished bulk sends: Bulk send: 1 of 3 sent Started by Amara Okafor, ")
        assert line.endswith(" Sending")
    assert bulk_send_line(sign_in(Client(), outsider), order) == ""
    for one in rows[1:]:
        payouts.release(one, approver)
    BulkRelease.objects.update(is_pending=False)
    assert bulk_send_line(sign_in(Client(), auditor), order), "the others are released and not sent yet"
    for one in rows[1:]:
        steps.put(one, Status.SENDING, Status.PROCESSING)
    for person in (auditor, approver):
        assert bulk_send_line(sign_in(Client(), person), order) == "", "all are sent"


def test_a_bulk_send_to_continue_is_listed_under_waiting_for_me(
    sign_in: SignIn, preparer: User, approver: User, auditor: User
) -> None:
    rows = payouts.row_operations(payouts.applied(preparer, approver, payouts.transfers(3)))
    order = start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
    BulkRelease.objects.update(is_pending=False)
    client, other = sign_in(Client(), approver), factories.person("Other", Role.APPROVER)
    line = bulk_send_line(client, order)
    assert line.startswith("Waiting for me: Continue bulk send: 0 of 3 sent Needs the next one-time code · ")
    for person in (other, auditor):
        line = bulk_send_line(sign_in(Client(), person), order)
        assert line.startswith(
            "Unfinished bulk sends: Bulk send: 0 of 3 sent Waiting for Amara Okafor to continue"
        )
        assert line.endswith(" Waiting")
    BulkRelease.objects.update(created_at=timezone.now() - SHOWN_WITHIN)
    assert bulk_send_line(client, order) == ""
    BulkRelease.objects.update(created_at=timezone.now())
    for one in rows:
        steps.put(one, Status.SENDING, Status.UNKNOWN)
    assert bulk_send_line(client, order) == ""


def test_a_bulk_send_that_needs_no_code_waits_until_who_began_it_continues(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    operation = factories.prepared_of_kind("conversion", SAMPLES["conversion"], preparer)
    operation = factories.approve(operation, approver)
    order = start_bulk_release(uuid4(), [operation], actor=approver, second_factor_at=timezone.now())
    BulkRelease.objects.update(is_pending=False)
    line = bulk_send_line(sign_in(Client(), approver), order)
    assert line.startswith(
        "Waiting for me: Continue bulk send: 0 of 1 sent Continue it to send the rest · started "
    )


def test_refused_operations_and_paused_batches_are_not_listed(
    sign_in: SignIn, preparer: User, approver: User, auditor: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    rows = payouts.row_operations(batch)
    order = start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
    control.pause_batch(batch.pk, actor=approver)
    client = sign_in(Client(), auditor)
    assert bulk_send_line(client, order) == ""
    control.resume_batch(batch.pk, actor=approver)
    assert bulk_send_line(client, order)
    order.items.update(refusal={"code": "status_changed"})
    assert bulk_send_line(client, order) == ""


def test_what_is_being_sent_is_not_sent_yet(
    sign_in: SignIn, preparer: User, approver: User, auditor: User
) -> None:
    rows = payouts.row_operations(payouts.applied(preparer, approver, payouts.transfers(2)))
    order = start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
    steps.put(rows[0], Status.SENDING)
    assert "Bulk send: 0 of 2 sent" in bulk_send_line(sign_in(Client(), auditor), order)


def test_released_rows_of_a_paused_batch_do_not_move(
    sign_in: SignIn, preparer: User, approver: User, auditor: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    conversion = factories.prepared_of_kind("conversion", SAMPLES["conversion"], preparer)
    waiting = factories.approve(conversion, approver)
    rows = payouts.row_operations(batch)
    order = start_bulk_release(uuid4(), [*rows, waiting], actor=approver, second_factor_at=timezone.now())
    BulkRelease.objects.update(is_pending=False)
    payouts.release(rows[0], approver)
    control.pause_batch(batch.pk, actor=approver)
    assert bulk_send_line(sign_in(Client(), auditor), order).endswith(" Waiting")


def test_ones_own_bulk_send_is_shown_however_many_others_are_newer(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    def begun_by(person: User, number: int) -> BulkRelease:
        rows = payouts.row_operations(
            payouts.applied(preparer, approver, payouts.transfers(1, first=9 * number))
        )
        return start_bulk_release(uuid4(), rows, actor=person, second_factor_at=timezone.now())

    own, other = begun_by(approver, 0), factories.person("Other", Role.APPROVER)
    for number in range(1, MOST_SHOWN + 1):
        begun_by(other, number)
    BulkRelease.objects.update(is_pending=False)
    assert bulk_send_line(sign_in(Client(), approver), own).startswith("Waiting for me: Continue bulk send")


@pytest.mark.usefixtures("warm_caches")
def test_bulk_sends_on_the_overview_take_one_query(
    sign_in: SignIn, preparer: User, approver: User, auditor: User
) -> None:
    client = sign_in(Client(), auditor)
    queries = []
    for number in range(3):
        rows = payouts.row_operations(
            payouts.applied(preparer, approver, payouts.transfers(2, first=9 * number))
        )
        if number:
            start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
        client.get("/")
        with CaptureQueriesContext(connection) as seen:
            client.get("/")
        queries.append(len(seen))
    assert queries == [queries[0], queries[0] + 1, queries[0] + 1]


def test_a_batch_without_a_row_to_send_does_not_wait(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    for one in payouts.row_operations(batch):
        payouts.release(one, approver)
    assert listed(sign_in(Client(), approver)) == []
    assert waiting_count(approver) == first_waiting(approver).total == 0


def test_a_batch_waits_for_those_who_can_send_it(
    sign_in: SignIn, preparer: User, approver: User, auditor: User
) -> None:
    payouts.applied(preparer, approver, payouts.transfers(2))
    for person in (preparer, auditor):
        assert waiting_count(person) == first_waiting(person).total == 0


def test_a_paused_batch_is_listed_without_sending(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    control.pause_batch(batch.pk, actor=approver)
    html = sign_in(Client(), approver).get(LIST).content.decode()
    assert "<small>Paused</small>" in html
    assert "/operations/send/?batch=" not in html


def test_the_pages_of_the_tab_miss_and_repeat_nothing(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    """Batches and other operations in one order of time, across pages in both directions."""
    batches = [
        payouts.applied(preparer, approver, payouts.transfers(2, first=10 * number)) for number in range(3)
    ]
    others = [factories.prepared(preparer) for _ in range(104)]
    with lifted(connection):
        for age, one in enumerate([*others[:49], batches[0], batches[1], *others[49:], batches[2]]):
            at = timezone.now() - timedelta(minutes=age + 1)
            Operation.objects.filter(pk=one.pk).update(prepared_at=at)
    expected = list(
        Operation.objects.filter(batch_row__isnull=True)
        .order_by("-prepared_at", "-id")
        .values_list("reference", flat=True)
    )
    client = sign_in(Client(), approver)
    assert listed(client) == expected
    pages = [client.get(LIST).context["page"]]
    while pages[-1].next_cursor:
        pages.append(client.get(f"{LIST}&cursor={pages[-1].next_cursor}").context["page"])
    back = client.get(f"{LIST}&cursor={pages[-1].previous_cursor}").context["page"]
    assert [one.pk for one in back.rows] == [one.pk for one in pages[-2].rows]


@pytest.mark.parametrize(
    ("query", "is_listed"),
    [
        ("&kind=batch", True),
        ("&kind=transfer", True),
        ("&kind=conversion", False),
        ("&status=approved", True),
        ("&text=person.2", True),
        ("&text=payroll.csv", True),
        ("&text=nobody", False),
        ("&currency=USD", False),
    ],
)
def test_a_batch_is_found_by_its_rows_and_by_itself(
    sign_in: SignIn, preparer: User, approver: User, query: str, *, is_listed: bool
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    assert listed(sign_in(Client(), approver), query) == ([batch.reference] if is_listed else [])
    assert listed(sign_in(Client(), approver), f"{query}&text={batch.reference}") == (
        [] if query in {"&kind=conversion", "&currency=USD"} else [batch.reference]
    )


def test_a_row_that_needs_another_approval_is_listed_by_itself(
    sign_in: SignIn, preparer: User, approver: User, second_approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    assert listed(sign_in(Client(), second_approver)) == [batch.reference]
    User.objects.filter(pk=approver.pk).update(is_active=False)
    rows = {one.reference for one in payouts.row_operations(batch)}
    assert set(listed(sign_in(Client(), second_approver))) == rows
    assert first_waiting(second_approver).total == 2


@pytest.mark.parametrize("path", [LIST, "/"])
def test_the_page_reads_as_much_for_many_rows(
    sign_in: SignIn, preparer: User, approver: User, path: str
) -> None:
    client, counts = sign_in(Client(), approver), []
    for number in (1, 8):
        payouts.applied(preparer, approver, payouts.transfers(number, first=100 * number))
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            client.get(path)
        read = [one["sql"] for one in queries if "bulkrelease" not in one["sql"]]
        counts.append(sum("batchrow" in sql for sql in read))
    assert counts[0] == counts[1] <= 4
