"""The contents of each file."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.canonical import GENESIS
from backoffice.audit.log import record
from backoffice.audit.models import Entry
from backoffice.operations.batches import control, creation
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.operations import Approval, Attempt, Operation
from backoffice.operations.models.reason_codes import ResponseCode, coded
from backoffice.operations.pages.operation_list import OperationFilterForm
from backoffice.operations.states import Status
from backoffice.reports import report
from backoffice.reports.definitions.operations import operations_count_query
from tests import factories
from tests.ledger import stored_transactions
from tests.operations import steps
from tests.operations.batches import payouts
from tests.operations.kinds.samples import SAMPLES
from tests.recipients import registered
from tests.reports import odd_values
from tests.reports.download import Download

pytestmark = pytest.mark.django_db(transaction=True)  # a report reads by a connection of its own
Get = Callable[..., Download]


@pytest.fixture(autouse=True)
def _reader(client: Client, auditor: User, sign_in: Callable[[Client, User], Client]) -> None:
    sign_in(client, auditor)


def test_an_operation_is_exported_with_its_people_and_times(
    download: Get, preparer: User, approver: User
) -> None:
    operation = factories.approved(preparer, approver, amount=Decimal("250000.5"))

    (row,) = download("operations").rows

    assert (row["reference"], row["status"], row["kind"]) == (operation.reference, "approved", "withdrawal")
    assert (row["direction"], row["currency"], row["amount"]) == ("out", "NGN", "250000.5")
    assert (row["prepared_by"], row["approved_by"]) == (preparer.full_name, approver.full_name)
    assert datetime.fromisoformat(row["prepared_at"]) == operation.prepared_at
    assert datetime.fromisoformat(row["approved_at"]) == operation.approvals.get().approved_at
    assert row["prepared_at"].endswith("+01:00")
    assert (row["sent_at"], row["sent_by"], row["provider_transaction_id"], row["fee"]) == ("", "", "", "")
    assert row["digest"] == operation.digest


def test_the_outcomes_of_a_batch_name_the_rows_of_its_file(
    download: Get, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    factories.prepared(preparer)
    rows = {
        (row["batch"], row["batch_row"]): (row["recipient"], row["memo"])
        for row in download("operations").rows
    }
    expected = {
        (batch.reference, str(one.number)): (one.recipient, one.payload.get("memo", ""))
        for one in batch.rows.all()
    }
    assert len(expected) == 2
    assert rows.items() >= expected.items()
    assert {key for key in rows if key not in expected} == {("", "")}  # the batch, and what is in none


def test_the_outcomes_of_a_batch_are_in_the_order_of_its_rows(
    download: Get, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Across the batches in which a report is read, too."""
    monkeypatch.setattr("backoffice.reports.report.BATCH", 2)
    payouts.applied(preparer, approver, payouts.transfers(2, first=50))
    batch = payouts.applied(preparer, approver, payouts.transfers(12))
    rows = download("operations", batch=batch.reference).rows
    assert [int(row["batch_row"]) for row in rows] == list(range(2, 14))
    assert {row["batch"] for row in rows} == {batch.reference}


def outcomes(download: Get, batch: Operation, **filters: str) -> list[tuple[str, str, str, str]]:
    rows = download("operations", batch=batch.reference, **filters).rows
    return [(row["batch_row"], row["status"], row["recipient"], row["reason"]) for row in rows]


def test_every_row_that_was_not_paid_has_its_reason(download: Get, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(6))
    rows = payouts.row_operations(batch)
    ways = (
        *((Status.CANCELLED,), (Status.EXPIRED,), (Status.SENDING, Status.UNKNOWN)),
        *((Status.SENDING, Status.UNKNOWN, Status.REVIEW), (Status.SENDING, Status.SUCCEEDED), ()),
    )
    for operation, statuses in zip(rows, ways, strict=True):
        steps.put(operation, *statuses)
    factories.attempt(rows[2], responses=[{"code": "nothing_recorded"}])
    assert [reason for _row, _status, _recipient, reason in outcomes(download, batch)] == [
        "Cancelled. It was not sent.",
        "Expired. It was not sent.",
        "The outcome is unknown. No response was recorded before the deadline",
        "The outcome is unknown, and two people must resolve it.",
        "",
        "",
    ]


def test_a_row_that_duplicates_an_operation_is_among_the_outcomes_of_its_batch(
    download: Get, preparer: User, approver: User
) -> None:
    batch = payouts.prepared(preparer, [*payouts.transfers(2), "NGN,1000.00,person.3,week 46,Bonus"])
    row = batch.rows.get(number=4)
    content = read_content(Operation(kind=row.kind, payload=row.payload))[1]
    other = factories.prepared_of_kind(row.kind, content, preparer)
    payouts.created(payouts.approve(batch, approver))
    reason = (
        f"{other.reference} has the same content and was waiting or being sent. No operation was created."
    )
    assert outcomes(download, batch) == [
        ("2", "approved", "person.1", ""),
        ("3", "approved", "person.2", ""),
        ("4", "not_created", "person.3", reason),
    ]
    assert len(outcomes(download, batch, status="approved")) == 2, "only some are chosen"
    [found] = [row for row in download("operations", batch=batch.reference).rows if not row["reference"]]
    assert (found["batch"], found["amount"], found["memo"]) == (batch.reference, "1000", "week 46")
    assert found["prepared_by"] == str(preparer)


def test_a_batch_has_the_status_of_its_rows(download: Get, preparer: User, approver: User) -> None:
    """An applied batch is stored as succeeded, even if nothing of it was sent."""
    batch = payouts.applied(preparer, approver, payouts.transfers(3))

    def of_batch() -> tuple[str, str]:
        [row] = download("operations", kind="batch").rows
        return row["status"], row["reason"]

    first = payouts.row_operations(batch)[0]
    assert of_batch() == ("approved", "3 not sent")
    steps.put(first, Status.SENDING, Status.SUCCEEDED)
    assert of_batch() == ("sending", "1 succeeded, 2 not sent")
    control.cancel_batch(batch.pk, actor=preparer)
    assert of_batch() == ("cancelled", "1 succeeded, 2 not sent")
    assert [one["status"] for one in download("operations", kind="batch", status="cancelled").rows] == [
        "cancelled"
    ]


def test_rows_of_a_batch_that_was_stopped_before_they_became_operations_are_among_the_outcomes(
    download: Get, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "CHUNK", 2)
    batch = payouts.approve(payouts.prepared(preparer, payouts.transfers(4)), approver)
    assert creation._create_chunk(batch.pk)
    control.pause_batch(batch.pk, actor=preparer)
    created = [("2", "approved"), ("3", "approved")]
    found = outcomes(download, batch)
    assert [row[:2] for row in found] == [*created, ("4", "not_created"), ("5", "not_created")]
    assert found[2][3] == "No operation has been created yet."
    control.cancel_batch(batch.pk, actor=preparer)
    found = outcomes(download, batch)
    assert [row[0] for row in found] == ["2", "3", "4", "5"]
    assert found[3][3] == "No operation was created. Status of the batch: Cancelled."


def test_every_row_of_a_batch_is_counted_for_its_export(preparer: User, approver: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(3))
    form = OperationFilterForm({"batch": batch.reference})
    assert form.is_valid()
    assert operations_count_query(preparer, form).count() == 3
    form = OperationFilterForm({})
    assert form.is_valid()
    assert operations_count_query(preparer, form).count() == 1


@pytest.mark.parametrize(
    ("kind", "direction"),
    [
        ("withdrawal", "out"),
        ("transfer", "out"),
        ("conversion", "out"),
        ("payment", ""),
        ("callback_url", ""),
    ],
)
def test_only_operations_with_a_debit_are_outgoing(
    download: Get, preparer: User, administrator: User, kind: str, direction: str
) -> None:
    factories.prepared_of_kind(kind, SAMPLES[kind], administrator if kind == "callback_url" else preparer)

    (row,) = download("operations").rows

    assert (row["kind"], row["direction"]) == (kind, direction)


def test_operations_are_exported_newest_first_and_filtered(
    download: Get, preparer: User, approver: User
) -> None:
    first = factories.prepared(preparer, currency="USD")
    second = factories.approved(preparer, approver)

    def references(**filters: str) -> list[str]:
        return [row["reference"] for row in download("operations", **filters).rows]

    tomorrow = timezone.localdate() + timedelta(days=2)
    assert references() == [second.reference, first.reference]
    assert references(status="pending") == [first.reference]
    assert references(currency="NGN") == [second.reference]
    assert references(text=first.reference) == [first.reference]
    assert references(since=str(tomorrow)) == []


def test_every_operation_is_exported_once_across_batches(
    download: Get, preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "BATCH", 2)
    for _ in range(5):
        factories.prepared(preparer)

    references = [row["reference"] for row in download("operations").rows]

    assert references == list(
        Operation.objects.order_by("-prepared_at", "-id").values_list("reference", flat=True)
    )
    assert len(references) == 5


def test_text_that_looks_like_a_formula_is_escaped(download: Get, preparer: User) -> None:
    factories.prepared(preparer, account_name='=HYPERLINK("http://example.com")')

    (row,) = download("operations").rows

    assert row["recipient"] == '\'=HYPERLINK("http://example.com")'


def test_the_exported_audit_log_can_be_verified(download: Get, preparer: User) -> None:
    with transaction.atomic():
        first = record(Action.OPERATION_PREPARED, actor=preparer, target="W-1", amount=Decimal("1.50"))
        second = record(Action.OPERATION_CANCELLED, actor=None, target="=1+1")

    rows = download("audit-log").rows

    assert [row["position"] for row in rows] == ["2", "1"]
    assert [row["hash"] for row in rows] == [second.hash, first.hash]
    assert [row["previous_hash"] for row in rows] == [first.hash, GENESIS]
    assert (rows[1]["actor"], rows[1]["actor_id"]) == (str(preparer), str(preparer.pk))
    assert json.loads(rows[1]["detail"]) == {"amount": "1.50"}
    assert datetime.fromisoformat(rows[1]["at"]) == first.at
    assert rows[0]["target"] == "'=1+1"


def test_the_audit_log_is_filtered(download: Get, preparer: User, approver: User) -> None:
    with transaction.atomic():
        record(Action.OPERATION_PREPARED, actor=preparer)
        record(Action.OPERATION_CANCELLED, actor=approver)

    assert [row["action"] for row in download("audit-log", actor=approver.pk).rows] == ["operation.cancelled"]


def test_transactions_are_exported_from_the_mirror(download: Get) -> None:
    stored = odd_values.stored()

    rows = download("transactions").rows

    assert [row["transaction_id"] for row in rows] == [one.transaction_id for one in stored]
    assert {row["direction"] for row in rows} == {"out"}
    assert {row["occurred_at"][-6:] for row in rows} == {"+01:00"}
    assert not any(row["amount"].startswith(("-", "'")) for row in rows)


def test_transactions_have_the_time_since_they_are_missing(download: Get) -> None:
    stored_transactions.stored(transaction_id="gone", missing_since=stored_transactions.AT)
    stored_transactions.stored(transaction_id="listed")

    rows = {row["transaction_id"]: row["missing_since"] for row in download("transactions").rows}

    assert rows == {"gone": "2026-11-20T11:42:07.000000+01:00", "listed": ""}


def test_transactions_are_filtered(download: Get) -> None:
    stored = odd_values.stored()

    def found(**filters: str) -> int:
        return len(download("transactions", **filters).rows)

    assert found(type="withdrawal", currency="NGN", status="fulfilled", direction="out") == len(stored)
    assert found(since="2026-12-31") == 2  # in Lagos the day begins an hour before that of UTC
    assert found(until="2026-12-30") == len(stored) - 2


def test_an_approval_is_exported_with_its_waiting_time(download: Get, preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    waited = timedelta(seconds=90, milliseconds=900)
    Approval.objects.update(approved_at=operation.prepared_at + waited)

    (row,) = download("approvals").rows

    assert (row["reference"], row["approved_by"], row["prepared_by"]) == (
        operation.reference,
        approver.full_name,
        preparer.full_name,
    )
    assert (row["waited_seconds"], row["amount"], row["status"]) == ("90", "250000", "approved")


def test_an_attempt_is_exported_with_its_outcome(download: Get, preparer: User, approver: User) -> None:
    operation = factories.approved(preparer, approver)
    now = timezone.now()
    Attempt.objects.create(
        operation=operation,
        number=1,
        released_by=approver,
        digest=operation.digest,
        started_at=now,
        deadline_at=now,
        outcome="rejected",
        response_status=422,
        responses=[coded(ResponseCode.ERROR, error="-no")],
        fee=Decimal("0.50"),
        closed_at=now,
    )

    (row,) = download("attempts").rows

    assert (row["reference"], row["number"], row["sent_by"]) == (operation.reference, "1", approver.full_name)
    assert (row["outcome"], row["response_status"], row["response"]) == ("rejected", "422", "'-no")
    assert (row["fee"], row["provider_transaction_id"]) == ("0.5", "")


def test_staff_are_exported_with_their_roles(
    client: Client,
    administrator: User,
    preparer: User,
    sign_in: Callable[[Client, User], Client],
    download: Get,
) -> None:
    sign_in(client, administrator)

    rows = {row["name"]: row for row in download("staff").rows}

    assert rows[preparer.full_name]["roles"] == "Preparer"
    assert rows[preparer.full_name]["is_active"] == "true"


def test_the_register_is_exported_as_it_is_filtered(download: Get, preparer: User, approver: User) -> None:
    registered.agreed(registered.user(alias="Market", notes="=1+1"), preparer, approver)
    registered.suggested(preparer)

    (row,) = download("recipients", state="approved").rows

    assert (row["name"], row["alias"], row["account"]) == ("Ngozi Eze", "Market", "ngozi.eze")
    assert (row["state"], row["type"], row["notes"]) == ("Approved", "User of the provider", "'=1+1")
    assert (row["proposed_by"], row["approved_by"]) == ("Tunde Bello", "Amara Okafor")


def test_columns_can_be_selected_and_keep_their_order(download: Get, preparer: User) -> None:
    factories.prepared(preparer)

    (row,) = download("operations", columns=["status", "reference"]).rows

    assert list(row) == ["reference", "status"]


def test_the_byte_order_mark_is_written_on_request(client: Client) -> None:
    answer = client.get(reverse("reports:csv", args=["operations"]), {"has_byte_order_mark": "on"})

    assert b"".join(answer).startswith(b"\xef\xbb\xbfReference,")


def test_an_export_is_audited_with_its_filters_and_rows(download: Get, auditor: User) -> None:
    odd_values.stored()
    rows = download("transactions", type="withdrawal").rows

    entry = Entry.objects.filter(action="report.exported").get()
    assert entry.actor_id == auditor.pk
    assert entry.detail == {
        "report": "transactions",
        "filters": {"type": "withdrawal"},
        "rows": len(rows),
        "complete": True,
    }
