"""A batch is approved as a whole; each of its rows is then an operation under the same rules as every other."""

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.roles import Role
from backoffice.audit.verification import verify_chain
from backoffice.operations import errors, jobs, seals
from backoffice.operations.batches import control, creation, submission
from backoffice.operations.batches.summary import rows_to_check
from backoffice.operations.delivery import send
from backoffice.operations.kinds.registry import read_content
from backoffice.operations.models.batches import (
    Batch,
    BatchRow,
    FileState,
    PayoutFile,
    PayoutFileRow,
    RowFlag,
    row_operation_id,
)
from backoffice.operations.models.bulk_releases import BulkRelease
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release, content_digest
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow.bulk_release import start_bulk_release
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations import steps
from tests.operations.batches import payouts
from tests.operations.conftest import SignIn
from tests.recipients import registered
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


# From the file to operations


def test_each_row_becomes_an_operation_of_the_same_people(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    operations = payouts.row_operations(batch)
    assert batch.status == Status.SUCCEEDED
    assert [one.payload["receiver_username"] for one in operations] == ["person.1", "person.2", "person.3"]
    assert {one.status for one in operations} == {Status.APPROVED}
    assert {one.preparer for one in operations} == {preparer}
    assert {one.approver for one in Approval.objects.filter(operation__in=operations)} == {approver}
    for operation in operations:
        seals.check_record(operation, list(operation.approvals.all()), None)
    assert verify_chain().fault is None


def test_the_rows_of_a_batch_pass_every_integrity_check(preparer: User, approver: User) -> None:
    payouts.applied(preparer, approver, payouts.transfers(3))
    factories.record_rights()
    assert inspect(full=True).violations == {}


def test_a_row_is_released_and_sent_like_every_operation(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    first, second = payouts.row_operations(batch)
    payouts.release(first, approver)
    for _ in range(3):
        send.send_operation(first.pk)
    assert len(provider.changes) == 1
    second.refresh_from_db()
    assert second.status == Status.APPROVED


def test_a_file_with_errors_is_not_submitted(preparer: User) -> None:
    file = payouts.checked(preparer, [*payouts.transfers(2), "NGN,much,person.3,,", "XYZ,5.00,,,"])
    assert (file.state, file.row_count, file.error_count) == (FileState.CHECKED, 4, 2)
    errors_of = dict(file.rows.filter(has_errors=True).values_list("number", "errors"))
    assert {name for name, _ in errors_of[5]} == {"currency", "receiver_username"}
    assert ["currency", "Enter one of these: NGN, USD."] in errors_of[5]
    with pytest.raises(errors.FileNotReadyError):
        submission.submit_file(file.pk, actor=preparer)
    assert not Operation.objects.exists()
    assert not BatchRow.objects.exists()


def test_a_file_submitted_twice_is_one_batch(preparer: User) -> None:
    file = payouts.checked(preparer, payouts.transfers(2))
    first, second = (submission.submit_file(file.pk, actor=preparer) for _ in range(2))
    assert first == second
    assert BatchRow.objects.count() == 2
    assert not PayoutFileRow.objects.exists()


def test_a_file_is_submitted_by_its_uploader_only(preparer: User) -> None:
    file = payouts.checked(preparer, payouts.transfers(1))
    another = factories.person("Bisi Alade", Role.PREPARER)
    with pytest.raises(file.DoesNotExist):
        submission.submit_file(file.pk, actor=another)


def test_preparing_from_a_file_needs_the_permission(auditor: User) -> None:
    with pytest.raises(errors.PermissionMissingError):
        payouts.uploaded(auditor, payouts.transfers(1))


# Duplicates


def test_a_row_that_repeats_another_needs_its_own_reason(preparer: User) -> None:
    same = "NGN,1000.00,person.1,week 46,"
    file = payouts.checked(preparer, [same, same, f"{same}Bonus", f"{same}Bonus", f"{same}Refund"])
    assert list(file.rows.filter(has_errors=True).values_list("number", flat=True)) == [3, 5]


def test_a_row_that_repeats_an_open_operation_is_an_error(preparer: User, approver: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(1))
    assert payouts.checked(preparer, payouts.transfers(1)).error_count == 1
    creation.create_operations(payouts.approve(batch, approver).pk)
    assert payouts.checked(preparer, payouts.transfers(2)).error_count == 1


def test_a_row_needs_another_reason_than_the_payment_that_it_repeats(preparer: User, approver: User) -> None:
    """A row of an open batch, then the operation that it became."""
    same = payouts.transfers(1)[0]
    batch = payouts.prepared(preparer, [f"{same}Bonus"])
    rows = [f"{same}Bonus", f"{same}Refund"]
    assert _with_errors(payouts.checked(preparer, rows)) == [2]
    payouts.created(payouts.approve(batch, approver))
    assert _with_errors(payouts.checked(preparer, rows)) == [2]


def _with_errors(file: PayoutFile) -> list[int]:
    return list(file.rows.filter(has_errors=True).values_list("number", flat=True))


def test_a_row_with_an_error_is_compared_all_the_same(
    preparer: User, approver: User, settings: Settings
) -> None:
    """So that all errors of a file are reported at once."""
    payouts.prepared(preparer, payouts.transfers(1))
    settings.ALLOW_LIST = {"transfer"}
    registered.agreed(registered.user("person.1"), preparer, approver)
    long = "x" * 29
    rows = [
        f"NGN,1000.00,person.1,{long},",
        f"NGN,50.00,person.1,{long},",
        "NGN,50.00,person.1,week 46,",
        f"NGN,much,person.1,{long},",
        f"NGN,70.00,nobody,{long},",
    ]
    file = payouts.checked(preparer, rows)
    errors_of = {row.number: [name for name, _ in row.errors] for row in file.rows.all()}
    assert errors_of == {
        2: ["memo", "duplicate_reason"],
        3: ["memo"],
        4: ["duplicate_reason"],
        5: ["amount", "memo"],
        6: ["memo", "receiver_username"],
    }
    assert file.error_count == 5


def test_one_operation_does_not_repeat_a_row_of_an_open_batch_unnoticed(preparer: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(1))
    payload = batch.rows.get().payload | {"memo": "alone"}
    kind = read_content(Operation(kind="transfer", payload=payload))[1]
    with pytest.raises(errors.DuplicatePaymentError):
        factories.prepared_of_kind("transfer", kind, preparer)


def test_a_file_is_checked_again_if_a_row_was_prepared_meanwhile(preparer: User) -> None:
    file = payouts.checked(preparer, payouts.transfers(2))
    payouts.prepared(preparer, payouts.transfers(1))
    with pytest.raises(errors.FileOutdatedError):
        submission.submit_file(file.pk, actor=preparer)
    file.refresh_from_db()
    assert file.state == FileState.CHECKING
    assert BatchRow.objects.count() == 1


def test_what_the_approver_checks_first(preparer: User) -> None:
    rows = [*payouts.transfers(2), "NGN,9000.00,person.9,,", "NGN,1000.00,person.1,,Bonus"]
    batch = payouts.prepared(preparer, rows)
    flags = dict(batch.rows.values_list("number", "flags"))
    assert flags[2] == [RowFlag.NEW_RECIPIENT]
    assert flags[4] == [RowFlag.NEW_RECIPIENT, RowFlag.LARGEST]
    assert flags[5] == [RowFlag.NEW_RECIPIENT, RowFlag.REPEATED]


@pytest.mark.parametrize(("days", "is_flagged"), [(3, True), (29, True), (31, False)])
def test_a_row_that_repeats_a_payment_of_the_last_30_days_is_checked_first(
    preparer: User, approver: User, days: int, is_flagged: bool
) -> None:
    payouts.applied(preparer, approver, payouts.transfers(1))
    at = timezone.now() - timedelta(days=days)
    with lifted(connection):
        Operation.objects.filter(batch_row__isnull=False).update(
            status=Status.SUCCEEDED, prepared_at=at, closed_at=at
        )
    batch = payouts.prepared(preparer, payouts.transfers(2))
    flags = dict(batch.rows.values_list("number", "flags"))
    assert (RowFlag.REPEATED in flags[2]) is is_flagged
    assert RowFlag.REPEATED not in flags[3]


def test_each_reason_has_its_turn_among_the_rows_to_check(preparer: User, approver: User) -> None:
    """A payroll of people who were all paid lately, with one new recipient and one who is paid twice."""
    paid = payouts.transfers(20)
    for one in payouts.row_operations(payouts.applied(preparer, approver, paid)):
        steps.put(one, Status.SENDING, Status.SUCCEEDED)
    with lifted(connection):
        Attempt.objects.all().delete()
        long_ago = timezone.now() - timedelta(days=20)
        Operation.objects.update(prepared_at=long_ago)
    payroll = [*paid[1:], "NGN,5000.00,person.1,,", "NGN,700.00,new.person,,", "NGN,1000.00,person.9,,Bonus"]
    batch = payouts.prepared(preparer, payroll)
    found = rows_to_check(batch)
    assert found is not None
    assert found.common == ["20 of 22 rows repeat a payment of the last 30 days."]
    assert found.total == 3
    first = {row.number: (flags, row.given_reasons) for row, flags in found.rows}
    assert first == {
        21: (["Largest amount"], []),
        22: (["New recipient"], []),
        23: ([], ["Bonus"]),
    }


def test_each_reason_has_its_turn_where_none_is_common(preparer: User, approver: User) -> None:
    """Twelve people who were paid lately among thirty who were not."""
    paid = payouts.transfers(12)
    for one in payouts.row_operations(payouts.applied(preparer, approver, paid)):
        steps.put(one, Status.SENDING, Status.SUCCEEDED)
    with lifted(connection):
        Attempt.objects.all().delete()
        Operation.objects.update(prepared_at=timezone.now() - timedelta(days=20))
    found = rows_to_check(payouts.prepared(preparer, [*payouts.transfers(18, first=20), *paid]))
    assert found is not None
    assert (len(found.rows), found.total, found.common) == (10, 30, [])
    assert {tuple(flags) for _row, flags in found.rows} >= {("New recipient",), ("Repeated payment",)}
    weights = [row.attention for row, _flags in found.rows]
    assert weights == sorted(weights, reverse=True)


def test_a_batch_of_new_recipients_says_so_once(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(20))
    client = sign_in(Client(), approver)
    html = client.get(f"/operations/{batch.pk}/").content.decode()
    assert "All 20 rows pay a recipient for the first time." in html
    assert html.count("<b>Largest amount</b>") == 1
    assert "<b>New recipient" not in html
    assert html.count(f'<a href="/operations/{batch.pk}/rows/?show=first">View 1 row to check first') == 2
    assert html.count(f'href="/operations/{batch.pk}/rows/"') == 1
    rows = client.get(f"/operations/{batch.pk}/rows/?show=first").context["page"].rows
    assert [row.flag_labels for row in rows] == [["New recipient", "Largest amount"]]


TO_CHECK_FIRST = '<section class="panel" aria-labelledby="check-first"'


def test_the_page_that_decides_shows_the_rows_to_check_first(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    rows = [*payouts.transfers(12), "NGN,9000.00,person.99,,", "NGN,1000.00,person.1,,Bonus of May"]
    batch, client = payouts.prepared(preparer, rows), sign_in(Client(), approver)
    html = client.get(f"/operations/{batch.pk}/").content.decode()
    listed = html.partition(TO_CHECK_FIRST)[2].partition("</section>")[0]
    assert listed.count("<li>") == 2
    assert "All 14 rows pay a recipient for the first time." in listed
    assert "<b>Largest amount</b>" in listed
    assert "<b>Repeated payment</b> <q>Bonus of May</q>" in listed
    assert f'<a href="/operations/{batch.pk}/rows/?show=first">View all 2 rows to check first' in listed
    assert html.index(TO_CHECK_FIRST) < html.index("Approve 14 payments</button>")
    assert "NGN 22,000.00" in html
    rows_page = client.get(f"/operations/{batch.pk}/rows/?show=first").content.decode()
    assert "<q>Bonus of May</q>" in rows_page
    payouts.approve(batch, approver)
    assert TO_CHECK_FIRST not in client.get(f"/operations/{batch.pk}/").content.decode()


# Approval


def test_the_preparer_does_not_approve_the_batch(preparer: User) -> None:
    preparer.groups.add(*factories.person("Both", Role.APPROVER).groups.all())
    batch = payouts.prepared(preparer, payouts.transfers(2))
    with pytest.raises(errors.SelfApprovalError):
        payouts.approve(batch, User.objects.get(pk=preparer.pk))
    creation.create_operations(batch.pk)
    assert Operation.objects.get() == batch


def test_the_preparer_of_a_batch_does_not_send_its_rows(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    preparer.groups.add(*approver.groups.all())
    with pytest.raises(errors.SelfApprovalError):
        payouts.release(payouts.row_operations(batch)[0], User.objects.get(pk=preparer.pk))


@pytest.mark.parametrize(
    ("rows", "needed"),
    [
        (payouts.transfers(2, amount="400.00"), 1),
        (payouts.transfers(3, amount="400.00"), 2),
        (payouts.transfers(1, amount="1001.00"), 2),
    ],
)
def test_limits_look_at_the_total_and_at_each_row(
    rows: list[str], needed: int, preparer: User, approver: User, second_approver: User, settings: Settings
) -> None:
    settings.SECOND_APPROVAL_ABOVE = {"NGN": Decimal(1000)}
    batch = payouts.prepared(preparer, rows)
    assert batch.approvals_needed == needed
    payouts.approve(batch, approver)
    creation.create_operations(batch.pk)
    assert len(payouts.row_operations(batch)) == (len(rows) if needed == 1 else 0)
    if needed == 2:
        payouts.approve(batch, second_approver)
        creation.create_operations(batch.pk)
        for operation in payouts.row_operations(batch):
            assert operation.approvals.count() == operation.approvals_needed == 2


@pytest.mark.parametrize("mode", ["managed", "not_asked"])
def test_the_approver_types_the_total_where_no_person_enters_a_one_time_code(
    mode: str, preparer: User, approver: User, settings: Settings
) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(3, amount="4260.00"))
    kind, payload = read_content(batch)
    assert kind.confirmation(payload) is None, "whoever sends it enters a code"
    settings.OTP_MODE = mode
    asked = kind.confirmation(payload)
    assert asked is not None
    assert asked.label == "Total NGN"
    wrong = ("", "0", "12780.01", "12780.000000000000001", "12.780,00", "12,780,00", "1278", "12780e0", "NaN")
    for typed in wrong:
        with pytest.raises(errors.ConfirmationWrongError):
            payouts.approve(batch, approver, typed=typed)


@pytest.mark.parametrize("typed", ["12780", "12780.00", "12,780.00", " 12 780.0 "])
def test_the_total_may_have_separators_and_no_final_zeros(
    typed: str, preparer: User, approver: User, settings: Settings
) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(3, amount="4260.00"))
    settings.OTP_MODE = "not_asked"
    assert payouts.approve(batch, approver, typed=typed).status == Status.APPROVED


def test_a_batch_is_not_approved_in_bulk(preparer: User, approver: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(1))
    chosen = approvals.SelectedOperation(batch, batch.digest)
    [result] = approvals.approve_operations([chosen], actor=approver, second_factor_at=batch.prepared_at)
    assert result.result == approvals.BulkOutcome.REFUSED


# No row twice


def test_rows_become_operations_once_however_often_it_is_tried(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    for _ in range(2):
        creation.create_operations(batch.pk)
        jobs.JOBS["create_batch_rows"]()
    assert len(payouts.row_operations(batch)) == 3
    with pytest.raises(DatabaseError), transaction.atomic():
        BatchRow.objects.filter(batch=batch, number=2).update(operation=None)


def test_a_batch_that_stopped_halfway_goes_on(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "CHUNK", 2)
    batch = payouts.approve(payouts.prepared(preparer, payouts.transfers(5)), approver)
    assert creation._create_chunk(batch.pk)
    batch.refresh_from_db()
    assert (batch.status, len(payouts.row_operations(batch))) == (Status.APPROVED, 2)
    first = payouts.row_operations(batch)
    jobs.JOBS["create_batch_rows"]()
    batch.refresh_from_db()
    assert batch.status == Status.SUCCEEDED
    assert len(payouts.row_operations(batch)) == 5
    assert payouts.row_operations(batch)[:2] == first


def test_a_batch_is_offered_to_be_sent_once_all_rows_are_operations(
    sign_in: SignIn, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "CHUNK", 2)
    batch = payouts.approve(payouts.prepared(preparer, payouts.transfers(3)), approver)
    page, offer = sign_in(Client(), approver), f"/operations/send/?batch={batch.reference}"
    assert creation._create_chunk(batch.pk)
    assert offer not in page.get(f"/operations/{batch.pk}/rows/").content.decode()
    assert creation.create_operations(batch.pk)
    assert offer in page.get(f"/operations/{batch.pk}/rows/").content.decode()


def test_a_row_whose_equal_content_waits_becomes_no_second_operation(preparer: User, approver: User) -> None:
    batch = payouts.prepared(preparer, [f"{payouts.transfers(1)[0]}Bonus", *payouts.transfers(1, first=2)])
    row = batch.rows.first()
    assert row is not None
    content = read_content(Operation(kind=row.kind, payload=row.payload))[1]
    other = factories.prepared_of_kind(row.kind, content, preparer)
    creation.create_operations(payouts.approve(batch, approver).pk)
    row.refresh_from_db()
    assert (row.operation, row.duplicate_of) == (None, other)
    assert len(payouts.row_operations(batch)) == 1


# What is approved is what is sent


@pytest.mark.parametrize(
    "change",
    [
        {
            "payload": {
                "receiver_username": "mallory",
                "currency": "NGN",
                "amount": "1000.00",
                "memo": "week 46",
            }
        },
        {
            "payload": {
                "receiver_username": "person.1",
                "currency": "NGN",
                "amount": "1000.00",
                "memo": "another",
                "duplicate_reason": "",
            }
        },
        {"amount": Decimal("1.00")},
        {"recipient_key": "user:mallory"},
        {"number": 7},
        {"digest": "0" * 64},
    ],
)
def test_altered_rows_are_not_approved(change: dict[str, object], preparer: User, approver: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(3))
    with lifted(connection, ["operations_batchrow"]):
        batch.rows.filter(number=2).update(**change)
    with pytest.raises(errors.AlteredRecordError):
        payouts.approve(batch, approver)
    assert Incident.objects.get().kind == IncidentKind.ALTERED_RECORD


@pytest.mark.parametrize("payload", [5, [], {"amount": "x"}])
def test_a_row_that_cannot_be_read_hides_no_other_altered_operation(
    payload: Any, preparer: User, approver: User
) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(3))
    other = factories.prepared(preparer)
    with lifted(connection):
        row = batch.rows.get(number=2)
        digest = content_digest(row_operation_id(batch.pk, 2), row.kind, payload)
        batch.rows.filter(number=2).update(payload=payload, digest=digest)
        Operation.objects.filter(pk=other.pk).update(sentence="Withdraw NGN 25.00 to a friend")
    assert {one.pk for one in seals.altered_operations([batch.pk, other.pk])} == {batch.pk, other.pk}
    with pytest.raises(errors.AlteredRecordError):
        payouts.approve(batch, approver)


def test_a_row_that_was_removed_or_added_is_noticed(preparer: User, approver: User) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(3))
    with lifted(connection, ["operations_batchrow"]):
        batch.rows.filter(number=3).delete()
    with pytest.raises(errors.AlteredRecordError):
        payouts.approve(batch, approver)


def test_rows_altered_after_the_approval_become_no_operations(preparer: User, approver: User) -> None:
    batch = payouts.approve(payouts.prepared(preparer, payouts.transfers(3)), approver)
    with lifted(connection, ["operations_batchrow"]):
        row = batch.rows.get(number=3)
        batch.rows.filter(number=3).update(payload=row.payload | {"receiver_username": "mallory"})
    assert not creation.create_operations(batch.pk)
    assert not payouts.row_operations(batch)
    assert Incident.objects.get().kind == IncidentKind.ALTERED_RECORD


def test_rows_altered_after_they_became_operations_are_not_sent(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    operation = payouts.release(payouts.row_operations(batch)[0], approver)
    with lifted(connection, ["operations_batchrow"]):
        batch.rows.filter(operation=operation).update(digest="0" * 64)
    send.send_operation(operation.pk)
    assert provider.changes == []
    assert Incident.objects.get().kind == IncidentKind.ALTERED_RECORD


def test_one_altered_row_is_found_in_all_operations_of_its_batch(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    operations = payouts.row_operations(batch)
    payouts.release(operations[0], approver)
    with lifted(connection, ["operations_batchrow"]):
        batch.rows.filter(operation=operations[2]).update(digest="0" * 64)
    found = seals.altered_operations([one.pk for one in operations])
    assert {one.pk for one in found} == {one.pk for one in operations}
    inspect(full=True)
    assert not Release.objects.exists()
    assert set(Incident.objects.values_list("operation", flat=True)) == {one.pk for one in operations}


def test_an_operation_without_its_row_is_not_sent(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    operation = payouts.row_operations(batch)[0]
    with lifted(connection, ["operations_batchrow"]):
        batch.rows.filter(operation=operation).delete()
    with pytest.raises(errors.AlteredRecordError):
        payouts.release(operation, approver)


def add_row(row: BatchRow) -> None:
    row.pk, row.number, row.operation = None, 9, None
    row.save(force_insert=True)


def change_row(row: BatchRow) -> None:
    row.amount = Decimal(5)
    row.save()


@pytest.mark.parametrize("change", [add_row, change_row, BatchRow.delete])
def test_the_database_keeps_the_rows_of_a_decided_batch(
    change: Callable[[BatchRow], object], preparer: User, approver: User
) -> None:
    row = payouts.applied(preparer, approver, payouts.transfers(1)).rows.get()
    with pytest.raises(DatabaseError):
        change(row)


# Pause and cancel


def test_a_paused_batch_is_neither_released_nor_sent(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    first, second = payouts.row_operations(batch)
    payouts.release(first, approver)
    control.pause_batch(batch.pk, actor=preparer)
    send.send_operation(first.pk)
    assert provider.changes == []
    with pytest.raises(errors.BatchPausedError):
        payouts.release(second, approver)
    control.resume_batch(batch.pk, actor=approver)
    send.send_operation(payouts.release(second, approver).pk)
    assert len(provider.changes) == 1


def test_a_row_that_was_released_before_the_pause_is_to_be_sent_again_and_not_prepared_again(
    sign_in: SignIn, preparer: User, approver: User, provider: StubProvider
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    row, client = payouts.row_operations(batch)[0], sign_in(Client(), approver)
    payouts.release(row, approver)
    control.pause_batch(batch.pk, actor=preparer)
    send.send_operation(row.pk)
    assert provider.changes == []
    html = client.get(row.get_absolute_url()).content.decode()
    assert "Not sent: the batch was paused. Once it is resumed, choose “Send” again." in html
    assert "prepare it again" not in html


def test_the_preparer_does_not_resume_a_paused_batch(preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    control.pause_batch(batch.pk, actor=approver)
    with pytest.raises(errors.PermissionMissingError):
        control.resume_batch(batch.pk, actor=preparer)
    preparer.groups.add(*approver.groups.all())
    with pytest.raises(errors.SelfApprovalError):
        control.resume_batch(batch.pk, actor=User.objects.get(pk=preparer.pk))


def test_a_cancelled_batch_sends_no_further_row(
    preparer: User, approver: User, provider: StubProvider
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    first, second, third = payouts.row_operations(batch)
    send.send_operation(payouts.release(first, approver).pk)
    payouts.release(second, approver)
    control.cancel_batch(batch.pk, actor=preparer)
    send.send_operation(second.pk)
    with pytest.raises(errors.BatchCancelledError):
        payouts.release(third, approver)
    assert len(provider.changes) == 1
    jobs.JOBS["cancel_batch_rows"]()
    statuses = [one.status for one in payouts.row_operations(batch)]
    assert statuses == [Status.PROCESSING, Status.CANCELLED, Status.CANCELLED]
    factories.record_rights()
    assert inspect(full=True).violations == {}
    with pytest.raises(errors.BatchClosedError):
        control.pause_batch(batch.pk, actor=approver)


def test_only_its_preparer_and_approvers_cancel_a_batch(
    preparer: User, approver: User, second_approver: User, auditor: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    for other_person in (second_approver, auditor):
        with pytest.raises(errors.PermissionMissingError):
            control.cancel_batch(batch.pk, actor=other_person)
    control.cancel_batch(batch.pk, actor=approver)


def test_a_batch_cancelled_while_its_rows_are_made_makes_no_more(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(creation, "CHUNK", 1)
    batch = payouts.approve(payouts.prepared(preparer, payouts.transfers(3)), approver)
    creation._create_chunk(batch.pk)
    control.cancel_batch(batch.pk, actor=preparer)
    creation.create_operations(batch.pk)
    jobs.JOBS["cancel_batch_rows"]()
    assert [one.status for one in payouts.row_operations(batch)] == [Status.CANCELLED]
    assert not Batch.objects.get().is_cancelling


def test_unpaid_rows_are_prepared_again(preparer: User, approver: User, provider: StubProvider) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    provider.answer_post = lambda: (400, '{"success": false, "message": "Unknown user"}')
    send.send_operation(payouts.release(payouts.row_operations(batch)[1], approver).pk)
    file = control.retry_rows(batch.pk, actor=preparer, language="en")
    jobs.JOBS["check_payout_files"]()
    file.refresh_from_db()
    assert (file.state, file.row_count, file.error_count) == (FileState.CHECKED, 1, 0)
    again = submission.submit_file(file.pk, actor=preparer)
    assert again.prepared_from == batch
    assert again.rows.get().payload["receiver_username"] == "person.2"


# What is shown of a batch


def texts_of(client: Client, batch: Operation) -> dict[str, str]:
    """The badge of a batch on its page, on the page of its rows, on its sheet to print, and in two lists."""
    own = f"/operations/{batch.pk}/"
    pages = {"page": own, "rows": f"{own}rows/", "sheet": f"{own}receipt/"}
    pages |= {"all": "/operations/?tab=all&kind=batch", "batches": "/operations/batches/?tab=all"}
    found = {name: client.get(path).content.decode() for name, path in pages.items()}
    in_list = re.compile(r'class="st"><span class="badge[^>]*>([^<]*)')
    badge = re.compile(r'class="badge[^>]*>([^<]*)')
    return {
        name: match[1] if (match := (in_list if name in {"all", "batches"} else badge).search(html)) else ""
        for name, html in found.items()
    }


def shown(short: str, counts: str = "") -> dict[str, str]:
    """The same badge everywhere, in lists without the counts."""
    return {
        **dict.fromkeys(("page", "rows", "sheet"), counts or short),
        **dict.fromkeys(("all", "batches"), short),
    }


def test_a_batch_shows_what_became_of_its_rows(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(4))
    client = sign_in(Client(), approver)
    assert texts_of(client, batch) == shown("Ready to send")
    first, second, third, fourth = payouts.row_operations(batch)
    steps.put(first, Status.SENDING, Status.SUCCEEDED)
    steps.put(second, Status.SENDING)
    assert texts_of(client, batch) == shown("In progress", "2 of 4 sent")
    steps.put(second, Status.FAILED)
    steps.put(third, Status.SENDING, Status.UNKNOWN)
    steps.put(fourth, Status.SENDING, Status.SUCCEEDED)
    assert texts_of(client, batch) == shown(
        "Completed, 1 unpaid row, 1 unknown outcome", "Completed: 2 succeeded, 1 failed, 1 unknown outcome"
    )


def test_the_counts_lead_to_the_rows(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch, client = payouts.applied(preparer, approver, payouts.transfers(4)), sign_in(Client(), approver)
    ways = [(Status.UNKNOWN,), (Status.UNKNOWN, Status.REVIEW), (Status.FAILED,)]
    for operation, statuses in zip(payouts.row_operations(batch)[:3], ways, strict=True):
        steps.put(operation, Status.SENDING, *statuses)
    steps.put(payouts.row_operations(batch)[3], Status.SENDING)
    path = f"/operations/{batch.pk}/rows/"
    html = client.get(path).content.decode()
    assert html.count('<dd class="num"><a href="?show=unknown">1</a></dd>') == 2
    assert '<dd class="num"><a href="?show=failed">1</a></dd>' in html
    for shown, numbers in (("unknown", [2, 3]), ("failed", [4]), ("open", [5])):
        rows = client.get(f"{path}?show={shown}").context["page"].rows
        assert [row.number for row in rows] == numbers
    assert (
        'href="?show=unknown" aria-current="page">Unknown</a>'
        in client.get(f"{path}?show=unknown").content.decode()
    )


def test_a_batch_leads_to_its_bulk_send_while_there_is_one(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch, client = payouts.applied(preparer, approver, payouts.transfers(2)), sign_in(Client(), approver)
    other = payouts.applied(preparer, approver, payouts.transfers(1, first=10))
    path = f"/operations/{batch.pk}/rows/"
    seen = client.get(path).context["seen"]
    assert "Bulk send by" not in client.get(path).content.decode()
    rows = payouts.row_operations(batch)
    order = start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
    assert client.get(f"{path}live/?seen={seen}").status_code == 200
    assert "Bulk send by" not in client.get(f"/operations/{other.pk}/rows/").content.decode()
    link = f'href="{order.get_absolute_url()}">'
    for page in (path, batch.get_absolute_url()):
        html = client.get(page).content.decode()
        assert f"Bulk send by {approver}" in html
        assert "It is being carried out." in html
        assert link in html
        assert 'href="/operations/send/?batch=' not in html, "nothing is left to send beside it"
    steps.put(rows[0], Status.SENDING)
    assert link in client.get(path).content.decode()
    steps.put(rows[0], Status.SUCCEEDED)
    steps.put(rows[1], Status.SENDING, Status.UNKNOWN)
    assert link not in client.get(path).content.decode()


def test_beside_an_open_bulk_send_the_page_says_who_sends_what(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch, client = payouts.applied(preparer, approver, payouts.transfers(2)), sign_in(Client(), approver)
    path, rows = f"/operations/{batch.pk}/rows/", payouts.row_operations(batch)
    order = start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
    link = f'href="{order.get_absolute_url()}">'
    BulkRelease.objects.update(is_pending=False)
    html = client.get(path).content.decode()
    assert "2 operations wait in it until you continue." in html
    assert f"{link}Continue bulk send</a>" in html
    assert 'href="/operations/send/?batch=' not in html
    other_client = sign_in(Client(), factories.person("Other", Role.APPROVER))
    html = other_client.get(path).content.decode()
    assert f"2 operations wait in it until {approver} continues." in html
    assert f"{link}View bulk send</a>" in html
    assert 'class="ghost" href="/operations/send/?batch=' in html
    confirmation = other_client.get(f"/operations/send/?batch={batch.reference}").content.decode()
    assert f"A bulk send of this batch by {approver}" in confirmation


def test_a_cancelled_batch_is_not_shown_as_succeeded(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    steps.put(payouts.row_operations(batch)[0], Status.SENDING, Status.SUCCEEDED)
    control.cancel_batch(batch.pk, actor=preparer)
    expected = shown("Cancelled", "Cancelled: 1 succeeded, 2 not sent")
    assert texts_of(sign_in(Client(), approver), batch) == expected
    control.cancel_due()
    client = sign_in(Client(), approver)
    assert texts_of(client, batch) == expected
    unsent = client.get(f"/operations/{batch.pk}/rows/?show=unsent")
    assert {row.number for row in unsent.context["page"].rows} == {3, 4}
    html = unsent.content.decode()
    assert f"Cancelled by {preparer}" in html
    assert '<dd class="num"><a href="?show=unsent">2</a></dd>' in html


def test_a_row_without_an_operation_is_listed_as_not_sent(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    with lifted(connection):
        batch.rows.filter(number=2).update(operation=None)
    unsent = sign_in(Client(), approver).get(f"/operations/{batch.pk}/rows/?show=unsent")
    assert {row.number for row in unsent.context["page"].rows} == {2, 3}


def test_the_page_of_a_paused_batch_says_so_and_leads_to_its_rows(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch, client = payouts.applied(preparer, approver, payouts.transfers(2)), sign_in(Client(), approver)
    control.pause_batch(batch.pk, actor=preparer)
    html = client.get(batch.get_absolute_url()).content.decode()
    assert "Paused: 0 of 2 sent" in html
    assert "Nothing more is sent until the batch is resumed." in html
    assert html.count(f'href="/operations/{batch.pk}/rows/"') == 1
    control.cancel_batch(batch.pk, actor=preparer)
    html = client.get(batch.get_absolute_url()).content.decode()
    assert "Paused" not in html
    assert "2 not sent" in html


@pytest.mark.parametrize("stop", [control.pause_batch, control.cancel_batch])
@pytest.mark.parametrize("is_pending", [True, False])
def test_no_bulk_send_of_a_stopped_batch_is_offered_to_be_continued(
    stop: Callable[..., object], is_pending: bool, sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch, client = payouts.applied(preparer, approver, payouts.transfers(2)), sign_in(Client(), approver)
    rows = payouts.row_operations(batch)
    bulk_release = start_bulk_release(uuid4(), rows, actor=approver, second_factor_at=timezone.now())
    BulkRelease.objects.update(is_pending=is_pending)
    pages = (batch.get_absolute_url(), f"/operations/{batch.pk}/rows/")
    said = "It is being carried out." if is_pending else "2 operations wait in it until you continue."
    for page in pages:
        assert said in client.get(page).content.decode()
    stop(batch.pk, actor=preparer)
    for page in pages:
        html = client.get(page).content.decode()
        assert said not in html
        assert "Continue bulk send" not in html
        assert f'class="ghost" href="{bulk_release.get_absolute_url()}">View bulk send' in html


@pytest.mark.parametrize(
    ("stop", "reason"),
    [
        (control.pause_batch, "The batch of this operation is paused."),
        (control.cancel_batch, "The batch of this operation was cancelled."),
    ],
)
def test_rows_of_a_stopped_batch_are_not_offered_to_be_sent(
    stop: Callable[..., object], reason: str, sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch, client = payouts.applied(preparer, approver, payouts.transfers(2)), sign_in(Client(), approver)
    address = f"/operations/send/?batch={batch.reference}"
    assert "2 operations</button>" in client.get(address).content.decode()
    stop(batch.pk, actor=preparer)
    html = client.get(address).content.decode()
    assert html.count(reason) == 2
    assert "operations</button>" not in html


@pytest.mark.parametrize("action", ["approve", "reject", "cancel"])
def test_a_stale_page_of_an_approved_batch_says_how_to_stop_it(
    action: str, sign_in: SignIn, preparer: User, approver: User, second_approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    client = sign_in(Client(), preparer if action == "cancel" else second_approver)
    values = {"digest": batch.digest, "reason": "Too late", "confirmation": "3.00"}
    answer = client.post(f"/operations/{batch.pk}/{action}/", values, follow=True)
    html = answer.content.decode()
    assert "pause or cancel the batch on the page of its rows" in html
    assert "Succeeded" not in html


def test_the_sheet_of_a_batch_is_no_receipt(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    client = sign_in(Client(), approver)
    page, sheet = (client.get(f"/operations/{batch.pk}/{part}").content.decode() for part in ("", "receipt/"))
    assert "Print record" in page
    assert "Print receipt" not in page
    assert "Receipt" not in sheet
    assert "2 not sent" in sheet
    assert "This record is not proof of payment of the rows." in sheet


def test_the_sheet_of_a_row_names_its_batch(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    row = payouts.row_operations(batch)[0]
    sheet = sign_in(Client(), approver).get(f"/operations/{row.pk}/receipt/").content.decode()
    assert f"<dt>Prepared in batch</dt>\n          <dd>{batch.reference}</dd>" in sheet


def test_an_open_page_of_a_batch_follows_its_rows(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    client = sign_in(Client(), approver)
    page = client.get(f"/operations/{batch.pk}/")
    live = f"/operations/{batch.pk}/live/?seen={page.context['seen']}"
    assert "data-poll" in page.content.decode()
    assert client.get(live).status_code == 204
    steps.put(payouts.row_operations(batch)[0], Status.SENDING, Status.SUCCEEDED)
    changed = client.get(live).content.decode()
    assert "Completed: 1 succeeded" in changed
    assert "data-poll" not in changed


@pytest.mark.usefixtures("warm_caches")
def test_a_list_reads_the_rows_of_all_batches_in_one_query(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    client = sign_in(Client(), approver)
    counts = []
    for number in (1, 2):
        payouts.applied(preparer, approver, payouts.transfers(2, first=number * 10))
        client.get("/operations/batches/")
        with CaptureQueriesContext(connection) as queries:
            client.get("/operations/batches/")
        counts.append(len(queries))
    assert counts[0] == counts[1]


NOTHING_SENT = "Nothing is sent until someone sends these operations."


def test_the_page_of_a_batch_offers_to_send_its_rows(sign_in: SignIn, preparer: User, approver: User) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    page, offer = f"/operations/{batch.pk}/", f"/operations/send/?batch={batch.reference}"
    client = sign_in(Client(), approver)
    html = client.get(page).content.decode()
    assert NOTHING_SENT in html
    assert f'href="{offer}">Send 2 operations…' in html
    assert offer not in sign_in(Client(), preparer).get(page).content.decode()
    first, second = payouts.row_operations(batch)
    payouts.release(first, approver)
    assert "Send 1 operation…" in client.get(page).content.decode()
    steps.put(first, Status.SENDING, Status.SUCCEEDED)
    steps.put(second, Status.CANCELLED)
    html = client.get(page).content.decode()
    assert NOTHING_SENT not in html
    assert offer not in html


def test_the_approval_of_a_batch_says_that_nothing_is_sent(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch = payouts.prepared(preparer, payouts.transfers(2))
    html = sign_in(Client(), approver).get(f"/operations/{batch.pk}/").content.decode()
    assert "Approve 2 payments</button>" in html
    assert "Nothing is sent yet." in html
    assert "Approve and apply" not in html
    assert html.index("Approved<small>") < html.index("Ready to send<small>")
    assert "Applied<small>" not in html
    payouts.approve(batch, approver)
    html = sign_in(Client(), approver).get(f"/operations/{batch.pk}/").content.decode()
    assert "Each row becomes an operation. Nothing is sent yet." in html


@pytest.mark.parametrize(
    ("rows", "amount"),
    [
        (payouts.transfers(2), "NGN 2,000.00"),
        ([*payouts.transfers(1), "USD,5.00,person.9,week 46,"], ""),
    ],
)
def test_the_list_of_batches_shows_the_total_of_one_currency(
    sign_in: SignIn, preparer: User, approver: User, rows: list[str], amount: str
) -> None:
    payouts.prepared(preparer, rows)
    html = sign_in(Client(), approver).get("/operations/batches/").content.decode()
    cell = re.search(r'<td class="amt num">(.*?)</td>', html)
    assert cell is not None
    assert re.sub("<[^>]*>", "", cell[1]) == amount
