"""The list of batches is filtered by the status that it shows of their rows."""

from collections import defaultdict

import pytest
from django.test import Client

from backoffice.accounts.models import User
from backoffice.operations.batches import control
from backoffice.operations.batches.summary import statuses_in_list
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status
from tests.operations import steps
from tests.operations.batches import payouts
from tests.operations.conftest import SignIn

pytestmark = pytest.mark.django_db(transaction=True)

SENT = {"warn": Status.SUCCEEDED}  # completed, with rows that did not succeed
ROWS: list[list[tuple[Status, ...]]] = [
    [],
    [(Status.SENDING,)],
    [(Status.SENDING, Status.SUCCEEDED)],
    [(Status.SENDING, Status.SUCCEEDED), (Status.SENDING,)],
    [(Status.SENDING, Status.SUCCEEDED), (Status.SENDING, Status.PROCESSING)],
    [(Status.SENDING, Status.SUCCEEDED), (Status.SENDING, Status.SUCCEEDED)],
    [(Status.SENDING, Status.FAILED), (Status.SENDING, Status.UNKNOWN)],
    [(Status.EXPIRED,), (Status.EXPIRED,)],
    [(Status.EXPIRED,), (Status.CANCELLED,)],
    [(Status.CANCELLED,), (Status.CANCELLED,)],
    [(Status.CANCELLED,), (Status.SENDING, Status.SUCCEEDED)],
]


def test_the_filter_finds_what_the_list_shows(sign_in: SignIn, preparer: User, approver: User) -> None:
    for number, ways in enumerate(ROWS):
        batch = payouts.applied(preparer, approver, payouts.transfers(2, first=10 * number + 1))
        for operation, statuses in zip(payouts.row_operations(batch), ways, strict=False):
            steps.put(operation, *statuses)
    payouts.prepared(preparer, payouts.transfers(1, first=500))
    queued = payouts.applied(preparer, approver, payouts.transfers(2, first=600))
    payouts.release(payouts.row_operations(queued)[0], approver)
    cancelled = payouts.applied(preparer, approver, payouts.transfers(2, first=700))
    control.cancel_batch(cancelled.pk, actor=preparer)
    expected = defaultdict(set)
    for one, shown, _summary in statuses_in_list(Operation.objects.filter(kind="batch")):
        expected[SENT.get(shown.tone, shown.tone)].add(one.reference)
    shown_in_lists = {Status.PENDING, Status.APPROVED, Status.SENDING, Status.SUCCEEDED}
    assert set(expected) == shown_in_lists | {Status.CANCELLED, Status.EXPIRED}
    client = sign_in(Client(), approver)
    for status in Status:
        for path in ("/operations/batches/?", "/operations/?tab=all&kind=batch&"):
            page = client.get(f"{path}status={status}").context["page"]
            assert {one.reference for one in page.rows} == expected[status], (path, status)


@pytest.mark.parametrize("filters", ["", "&kind=batch", "&text=payroll.csv", "&since=2020-01-01"])
def test_a_batch_is_open_until_all_of_its_rows_are_closed(
    sign_in: SignIn, preparer: User, approver: User, filters: str
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    rows = payouts.row_operations(batch)
    client = sign_in(Client(), approver)

    def listed() -> dict[str, bool]:
        pages = {
            tab: client.get(f"/operations/?tab={tab}{filters}").context["page"] for tab in ("open", "done")
        }
        return {tab: batch in page.rows for tab, page in pages.items()}

    assert listed() == {"open": True, "done": False}
    steps.put(rows[0], Status.SENDING, Status.SUCCEEDED)
    steps.put(rows[1], Status.SENDING, Status.UNKNOWN)
    assert listed() == {"open": True, "done": False}
    steps.put(rows[1], Status.FAILED)
    assert listed() == {"open": False, "done": True}


@pytest.mark.parametrize(
    ("ways", "tone", "label"),
    [
        ([(Status.SENDING, Status.SUCCEEDED)] * 3, "succeeded", "Completed"),
        (
            [(Status.SENDING, Status.SUCCEEDED), (Status.SENDING, Status.FAILED)],
            "warn",
            "Completed, 1 unpaid row",
        ),
        (
            [(Status.SENDING, Status.FAILED), (Status.EXPIRED,), (Status.SENDING, Status.UNKNOWN)],
            "warn",
            "Completed, 2 unpaid rows, 1 unknown outcome",
        ),
    ],
)
def test_the_list_says_how_many_rows_of_a_completed_batch_are_unpaid(
    preparer: User, approver: User, ways: list[tuple[Status, ...]], tone: str, label: str
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(len(ways)))
    for operation, statuses in zip(payouts.row_operations(batch), ways, strict=True):
        steps.put(operation, *statuses)
    [(_batch, shown, _summary)] = statuses_in_list([batch])
    assert (shown.tone, shown.label) == (tone, label)


def test_the_filter_has_the_words_of_the_list(sign_in: SignIn, preparer: User, approver: User) -> None:
    payouts.applied(preparer, approver, payouts.transfers(1))
    client = sign_in(Client(), approver)
    words = {
        path: dict(client.get(path).context["form"].fields["status"].choices)
        for path in ("/operations/batches/?status=approved", "/operations/?tab=all&kind=transfer")
    }
    of_batches, of_transfers = words.values()
    assert of_batches[Status.APPROVED] == "Ready to send"
    assert of_batches[Status.SENDING] == "In progress"
    assert of_batches[Status.SUCCEEDED] == "Completed"
    assert of_transfers[Status.SUCCEEDED] == "Succeeded"
