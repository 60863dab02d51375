"""Sending several approved operations from the list: the confirmation, the releases, and the progress of each."""

import re
from contextlib import nullcontext
from datetime import timedelta
from decimal import Decimal
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import DjangoAssertNumQueries, Settings

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.leases import acquire_lease
from backoffice.operations import jobs
from backoffice.operations.batches import control
from backoffice.operations.delivery import expected_wait
from backoffice.operations.delivery.expected_wait import expected_seconds, seconds_per_payment
from backoffice.operations.delivery.release import release_operation
from backoffice.operations.errors import (
    PaymentsPausedError,
    PermissionMissingError,
    SecondFactorStaleError,
)
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.lifecycle import incidents
from backoffice.operations.lifecycle.pause import pause_payments
from backoffice.operations.models.bulk_releases import BulkRelease, BulkReleaseItem
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.pages import bulk_release as bulk_release_pages
from backoffice.operations.pages.bulk import bulk_totals
from backoffice.operations.pages.bulk_release import SendSelection
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow import approvals
from backoffice.operations.workflow import bulk_release as bulk_release_workflow
from backoffice.operations.workflow.bulk_release import (
    ORDER_VALID,
    continue_bulk_release,
    release_pending,
    release_with_code,
    start_bulk_release,
)
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations import steps
from tests.operations.batches import payouts
from tests.operations.conftest import SignIn
from tests.operations.kinds.samples import SAMPLES
from tests.operations.pages.bulk.steps import with_other_content
from tests.operations.steps import text_of

pytestmark = pytest.mark.django_db
SEND = "/operations/send/"
_AMOUNTS = count(1000)


def approved_conversion(preparer: User, approver: User) -> Operation:
    """Needs no one-time code."""
    content = SAMPLES["conversion"].model_copy(update={"amount": Decimal(next(_AMOUNTS))})
    return factories.approve(factories.prepared_of_kind("conversion", content, preparer), approver)


def address(*operations: Operation) -> str:
    return f"{SEND}?{'&'.join(f'operation={one.reference}' for one in operations)}"


def confirm(client: Client, *operations: Operation, **typed: str) -> Any:
    """Confirm exactly what the page shows."""
    page = client.get(address(*operations))
    return client.post(address(*operations), {"submission": str(uuid4()), **hidden(page), **typed})


def carry_out(bulk_release: BulkRelease) -> None:
    """What a worker does until nothing is pending."""
    while BulkRelease.objects.filter(pk=bulk_release.pk, is_pending=True).exists():
        release_pending(bulk_release.pk)


def start(*operations: Operation, actor: User) -> BulkRelease:
    return start_bulk_release(uuid4(), operations, actor=actor, second_factor_at=timezone.now())


def hidden(page: Any) -> dict[str, str]:
    return {"selection": page.context["selection"].digest}


def states(client: Client, bulk_release: BulkRelease) -> dict[str, int]:
    page = client.get(bulk_release.get_absolute_url())
    return {state.value: count for state, _label, count in page.context["counts"]}


def test_approved_operations_can_be_selected_and_sent(
    as_approver: Client, preparer: User, approver: User
) -> None:
    approved = factories.approved(preparer, approver)
    html = text_of(as_approver.get("/operations/?tab=waiting"))
    assert re.findall(r'name="operation" value="([^"]+)"', html) == [approved.reference]
    assert f'formaction="{SEND}"' in html
    assert f'href="{SEND}?tab=waiting"' in html


def test_the_confirmation_shows_totals_and_sends_nothing(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operations = [
        factories.approved(preparer, approver, amount=Decimal(amount)) for amount in ("100.10", "3")
    ]
    page = as_approver.get(address(*operations))
    assert page.context["totals"] == [("NGN", Decimal("103.10"))]
    assert "one-time code, a new one for each" in text_of(page)
    assert not Release.objects.exists()
    assert not BulkRelease.objects.exists()


def test_without_chosen_operations_all_that_wait_for_the_user_and_match_the_filters_are_shown(
    as_approver: Client, preparer: User, approver: User
) -> None:
    naira = factories.approved(preparer, approver)
    factories.approved(preparer, approver, currency="USD")
    factories.prepared_to_another_account(preparer)
    page = as_approver.get(f"{SEND}?currency=NGN")
    assert [one.reference for one in page.context["selection"].operations] == [naira.reference]


def test_the_confirmation_of_a_batch_names_it_and_its_file(
    as_approver: Client, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    link = f'href="/operations/{batch.pk}/rows/"'
    html = text_of(as_approver.get(f"{SEND}?batch={batch.reference}"))
    assert f"<h1>Send batch {batch.reference}</h1>" in html
    assert "payroll.csv" in html
    assert link in html
    assert "Send first of 2 operations</button>" in html, "each needs a one-time code"
    assert "Waiting for me" not in html
    part = text_of(as_approver.get(f"{SEND}?batch={batch.reference}&currency=NGN"))
    assert "<h1>Send 2 operations</h1>" in part, "another filter may leave out some of its operations"
    Operation.objects.filter(batch_row__batch=batch).update(status=Status.SENDING)
    html = text_of(as_approver.get(f"{SEND}?batch={batch.reference}"))
    assert "No operation of this batch is ready to be sent." in html
    assert "The list shows the reasons" not in html
    assert link in html
    assert "No operation is ready to be sent." in text_of(as_approver.get(SEND))


@pytest.mark.parametrize(
    ("query", "rows"),
    [("kind=batch", 2), ("text=payroll.csv", 2), ("text=person.2", 1), ("kind=transfer", 2)],
)
def test_all_approved_are_those_of_the_batches_that_the_list_shows(
    as_approver: Client, preparer: User, approver: User, query: str, rows: int
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    approved_conversion(preparer, approver)
    shown = as_approver.get(f"/operations/?tab=waiting&{query}")
    assert [one.pk for one in shown.context["page"].rows] == [batch.pk]
    [link] = re.findall(r'href="([^"]+)">Send all approved', text_of(shown))
    selection = as_approver.get(unescape(link)).context["selection"]
    assert [one.pk for one in selection.operations] == [
        one.pk for one in payouts.row_operations(batch)[-rows:]
    ]


@pytest.mark.parametrize("text", ["payroll.csv", "person.2"])
def test_within_a_batch_only_the_rows_are_selected_that_the_list_shows(
    as_approver: Client, preparer: User, approver: User, text: str
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    query = f"?tab=waiting&batch={batch.reference}&text={text}"
    shown = as_approver.get(f"/operations/{query}").context["page"].rows
    selection = as_approver.get(f"{SEND}{query}").context["selection"]
    assert [one.pk for one in selection.operations] == [one.pk for one in shown]


def test_totals_are_exact_whatever_the_decimals() -> None:
    amounts = ("12345678901.123456789012345678", "0.000000000000000001")
    operations = [Operation(kind="transfer", currency="ETH", amount=Decimal(amount)) for amount in amounts]
    expected = [("ETH", Decimal("12345678901.123456789012345679"))]
    assert bulk_totals(operations, debited=True) == expected


def test_the_number_of_operations_is_grouped(
    as_approver: Client, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = approved_conversion(preparer, approver)
    selection = SendSelection([operation] * 1200, [], {}, is_cut=False)
    monkeypatch.setattr(bulk_release_pages, "_selection", lambda _request: selection)
    assert text_of(as_approver.get(SEND)).count("Send 1,200 operations") == 2


def test_operations_that_cannot_be_sent_are_skipped_with_the_reason(
    as_approver: Client, preparer: User, approver: User, second_approver: User
) -> None:
    approver.groups.add(*preparer.groups.all())
    own = factories.approved(approver, second_approver)
    pending = factories.prepared_to_another_account(preparer)
    released = factories.approved(preparer, approver)
    factories.release(released, approver)
    executed = factories.approve(factories.prepared(preparer, amount=Decimal(7)), approver)
    incidents.raise_incident(executed, kind=IncidentKind.EXECUTED_AFTER_ALL, evidence={"transaction": "T-7"})
    page = as_approver.get(address(own, pending, released, executed))
    reasons = {row.operation.reference: row.skip_reason for row in page.context["skipped"]}
    assert "You prepared this operation" in reasons[own.reference]
    assert "status is “Pending” now" in reasons[pending.reference]
    assert "already been released" in reasons[released.reference]
    assert "may already be paid" in reasons[executed.reference]
    assert page.context["selection"].operations == []


def test_what_needs_no_code_is_released_at_once_each_with_its_own_audit_entry(
    as_approver: Client, preparer: User, approver: User
) -> None:
    first, second = (approved_conversion(preparer, approver) for _ in range(2))
    answer = confirm(as_approver, first, second)
    bulk_release = BulkRelease.objects.get()
    assert answer.headers["Location"] == bulk_release.get_absolute_url()
    assert states(as_approver, bulk_release) == {"waiting": 2}
    carry_out(bulk_release)
    assert {one.operation_id for one in Release.objects.all()} == {first.pk, second.pk}
    assert Entry.objects.filter(action=Action.OPERATION_RELEASED).count() == 2
    assert states(as_approver, bulk_release) == {"queued": 2}


def test_a_one_time_code_releases_one_operation_and_the_page_asks_for_the_next(
    as_approver: Client, preparer: User, approver: User
) -> None:
    first, second = (factories.approved(preparer, approver) for _ in range(2))
    confirm(as_approver, first, second, otp="111111")
    bulk_release = BulkRelease.objects.get()
    carry_out(bulk_release)
    assert [one.operation_id for one in Release.objects.all()] == [first.pk]
    page = as_approver.get(bulk_release.get_absolute_url())
    assert page.context["form"] is None, "the first code is still being used"
    Release.objects.all().delete()
    Operation.objects.filter(pk=first.pk).update(status="sending")
    page = as_approver.get(bulk_release.get_absolute_url())
    assert "otp" in page.context["form"].fields
    assert page.context["form"].fields["otp"].widget.attrs["autofocus"]
    html = text_of(page)
    assert "Send next operation</button>" in html
    assert f"are sent only when {approver} sends them here." in html
    assert "sending does not depend on it" not in html
    as_approver.post(bulk_release.get_absolute_url(), {"otp": "222222"})
    assert [one.operation_id for one in Release.objects.all()] == [second.pk]


def test_a_code_that_the_provider_takes_several_times_releases_several_operations(
    as_approver: Client, preparer: User, approver: User, settings: Settings, tmp_path: Path
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text("otp_single_use = false")
    settings.GATEWAY_PROFILE = str(profile)
    operations = [factories.approved(preparer, approver) for _ in range(3)]
    page = as_approver.get(address(*operations))
    assert "For up to 25 operations." in text_of(page)
    confirm(as_approver, *operations, otp="111111")
    assert {one.operation_id for one in Release.objects.all()} == {one.pk for one in operations}
    more = start(*(factories.approved(preparer, approver) for _ in range(2)), actor=approver)
    carry_out(more)
    assert "Send next 2 operations</button>" in text_of(as_approver.get(more.get_absolute_url()))


@pytest.mark.parametrize("released_before", [0, 1])
def test_a_stop_is_reported_only_if_the_code_has_released_nothing(
    preparer: User,
    approver: User,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    released_before: int,
) -> None:
    profile = tmp_path / "profile.toml"
    profile.write_text("otp_single_use = false")
    settings.GATEWAY_PROFILE = str(profile)
    bulk_release = start(*(factories.approved(preparer, approver) for _ in range(2)), actor=approver)

    def release_until_paused(*arguments: Any, **options: Any) -> Operation:
        if Release.objects.count() == released_before:
            raise PaymentsPausedError
        return release_operation(*arguments, **options)

    monkeypatch.setattr(bulk_release_workflow, "release_operation", release_until_paused)
    with nullcontext() if released_before else pytest.raises(PaymentsPausedError):
        assert release_with_code(
            bulk_release, actor=approver, second_factor_at=timezone.now(), otp=SecretStr("111111")
        )
    assert Release.objects.count() == released_before


def test_a_code_that_was_used_is_reported_and_held_against_no_operation(
    as_approver: Client, preparer: User, approver: User
) -> None:
    first, second = (factories.approved(preparer, approver) for _ in range(2))
    used = f"This one-time code was already entered for {first.reference}"
    confirm(as_approver, first, otp="111111")
    confirm(as_approver, second, otp="111111")
    assert [one.operation_id for one in Release.objects.all()] == [first.pk]
    item = BulkReleaseItem.objects.get(operation=second)
    assert item.refusal is None
    carry_out(item.bulk_release)
    address = item.bulk_release.get_absolute_url()
    assert used in text_of(as_approver.get(address)), "as a message: the form was another page's"
    refused = as_approver.post(address, {"otp": "111111"})
    assert refused.status_code == 422
    assert used in text_of(refused).partition('id="id_otp_error">')[2].partition("</p>")[0]
    assert refused.context["form"].non_field_errors() == []


def test_the_expected_time_follows_the_pace_of_the_last_payments_without_idle_time(
    preparer: User, approver: User
) -> None:
    assert seconds_per_payment()["NGN"] == 2.0, "before the first payments"
    began = timezone.now()
    for seconds in (0, 600, 604, 608, 620):
        factories.attempt(
            factories.approved(preparer, approver),
            balance="NGN",
            started_at=began + timedelta(seconds=seconds),
            closed_at=began + timedelta(seconds=seconds),
            outcome=Outcome.SUCCEEDED,
        )
    assert seconds_per_payment()["NGN"] == 4.0
    operations = [approved_conversion(preparer, approver) for _ in range(3)]
    assert expected_seconds(operations) == 12


def test_each_one_time_code_takes_the_time_until_the_next(preparer: User, approver: User) -> None:
    operations = [factories.approved(preparer, approver) for _ in range(4)]
    assert expected_seconds(operations) == 120


def test_what_debits_no_balance_does_not_lengthen_the_queue_of_its_currency(
    preparer: User, approver: User
) -> None:
    conversion = approved_conversion(preparer, approver)
    payment = factories.approve(factories.prepared_of_kind("payment", SAMPLES["payment"], preparer), approver)
    assert expected_seconds([conversion]) == expected_seconds([conversion, payment]) == 2
    assert expected_seconds([payment]) == 0


def test_a_list_that_has_changed_is_reported_beside_what_is_missing_in_the_form(
    as_approver: Client, preparer: User, approver: User
) -> None:
    """Otherwise only the code would be corrected, on a page that has another list."""
    factories.approved(preparer, approver)
    page = as_approver.get(SEND)
    factories.approved(preparer, approver)
    answer = as_approver.post(SEND, {"submission": str(uuid4()), **hidden(page), "otp": ""})
    assert answer.status_code == 422
    assert answer.context["form"].errors.keys() == {"otp", "__all__"}
    assert "The list has changed" in text_of(answer)


def test_a_list_that_has_changed_is_shown_again_and_nothing_is_sent(
    as_approver: Client, preparer: User, approver: User
) -> None:
    first = approved_conversion(preparer, approver)
    page = as_approver.get(SEND)
    approved_conversion(preparer, approver)
    answer = as_approver.post(SEND, {"submission": str(uuid4()), **hidden(page)})
    assert answer.status_code == 422
    assert "The list has changed" in text_of(answer)
    assert not Release.objects.exists()
    assert first.reference in text_of(answer)


def test_a_second_submission_of_the_form_finds_the_first(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operation = approved_conversion(preparer, approver)
    page = as_approver.get(address(operation))
    form = {"submission": str(uuid4()), **hidden(page)}
    first, second = (as_approver.post(address(operation), form) for _ in range(2))
    assert first.headers["Location"] == second.headers["Location"]
    carry_out(BulkRelease.objects.get())
    assert Entry.objects.filter(action=Action.OPERATION_RELEASED).count() == 1


def test_another_person_does_not_get_the_bulk_release_of_a_form(
    as_approver: Client, preparer: User, approver: User, second_approver: User
) -> None:
    operation = approved_conversion(preparer, approver)
    bulk_release = start(operation, actor=second_approver)
    with pytest.raises(PermissionMissingError):
        start_bulk_release(bulk_release.pk, [operation], actor=approver, second_factor_at=timezone.now())
    form = {"submission": str(bulk_release.pk), **hidden(as_approver.get(address(operation)))}
    answer = as_approver.post(address(operation), form)
    assert (answer.status_code, "You do not have permission" in text_of(answer)) == (422, True)
    assert BulkRelease.objects.get().released_by == second_approver


def test_a_refused_operation_is_reported_and_does_not_stop_the_others(
    as_approver: Client, preparer: User, approver: User
) -> None:
    changed, good = (approved_conversion(preparer, approver) for _ in range(2))
    bulk_release = start(changed, good, actor=approver)
    with_other_content(changed)
    carry_out(bulk_release)
    assert [one.operation_id for one in Release.objects.all()] == [good.pk]
    assert states(as_approver, bulk_release) == {"refused": 1, "queued": 1}
    assert "other content" in text_of(as_approver.get(bulk_release.get_absolute_url()))


def test_a_second_factor_that_is_stale_when_the_worker_starts_releases_nothing(
    as_approver: Client, preparer: User, approver: User
) -> None:
    stale = timezone.now() - timedelta(minutes=6)
    with pytest.raises(SecondFactorStaleError):
        start_bulk_release(
            uuid4(), [approved_conversion(preparer, approver)], actor=approver, second_factor_at=stale
        )
    bulk_release = start(approved_conversion(preparer, approver), actor=approver)
    bulk_release.second_factor_at = timezone.now() - ORDER_VALID - timedelta(minutes=1)
    bulk_release.make_seal()
    bulk_release.save()
    carry_out(bulk_release)
    assert not Release.objects.exists()
    assert [item.refusal for item in bulk_release.items.all()] == [None]
    assert states(as_approver, bulk_release) == {"waiting": 1}
    as_approver.post(bulk_release.get_absolute_url())
    carry_out(bulk_release)
    assert Release.objects.count() == 1, "confirmed again on the page"


@pytest.mark.parametrize("cause", ["account", "administrators", "permission"])
def test_what_concerns_every_operation_ends_the_order_and_can_be_continued(
    as_approver: Client,
    sign_in: SignIn,
    preparer: User,
    approver: User,
    auditor: User,
    settings: Settings,
    cause: str,
) -> None:
    bulk_release = start(*(approved_conversion(preparer, approver) for _ in range(2)), actor=approver)
    match cause:
        case "account":
            factories.break_glass(approver)
        case "administrators":
            settings.ADMINISTRATORS_TO_SEND = 20
        case "permission":
            approver.groups.clear()
    carry_out(bulk_release)
    assert not Release.objects.exists()
    assert [item.refusal for item in bulk_release.items.all()] == [None, None]
    assert Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).count() <= 1
    bulk_release.refresh_from_db()
    auditor_sees = text_of(sign_in(Client(), auditor).get(bulk_release.get_absolute_url()))
    reason = bulk_release.reason.split(".")[0]
    given = f"Reason given to {approver} for the operations that are still waiting: {reason}"
    assert given in auditor_sees
    refused = as_approver.post(bulk_release.get_absolute_url())
    assert not BulkRelease.objects.filter(is_pending=True).exists(), (
        "the page says why it cannot be continued"
    )
    if cause == "administrators":
        assert "Two administrators must be active" in text_of(refused)
        early = (
            "Sending ended early. Reason for the operations that are still waiting: Two administrators must"
        )
        assert early in text_of(as_approver.get(bulk_release.get_absolute_url()))
        settings.ADMINISTRATORS_TO_SEND = 0
        as_approver.post(bulk_release.get_absolute_url())
        assert BulkRelease.objects.get().refusal is None
        carry_out(bulk_release)
        assert Release.objects.count() == 2
        assert "Sending ended early" not in text_of(as_approver.get(bulk_release.get_absolute_url()))


@pytest.mark.parametrize("change", ["person", "second factor", "another operation", "no audit entry"])
def test_an_order_written_with_the_database_alone_releases_nothing_and_raises_an_incident(
    preparer: User, approver: User, second_approver: User, change: str
) -> None:
    operation, other = (approved_conversion(preparer, approver) for _ in range(2))
    bulk_release = start(operation, actor=approver)
    changed = BulkRelease.objects.filter(pk=bulk_release.pk)
    if change == "person":
        changed.update(released_by=second_approver)
    elif change == "second factor":
        changed.update(second_factor_at=timezone.now() + timedelta(seconds=1))
    elif change == "another operation":
        BulkReleaseItem.objects.create(
            bulk_release=bulk_release, position=2, operation=other, digest=other.digest
        )
    else:
        with lifted(connection):
            Entry.objects.filter(action=Action.BULK_RELEASE_CONFIRMED).delete()
    carry_out(bulk_release)
    assert not Release.objects.exists()
    assert Incident.objects.get().evidence == {"faults": ["bulk_release"]}


def test_the_sweeper_continues_an_order_whose_message_was_lost_some_operations_at_a_time(
    preparer: User, approver: User
) -> None:
    bulk_release = start(*(approved_conversion(preparer, approver) for _ in range(30)), actor=approver)
    BulkRelease.objects.update(confirmed_at=timezone.now() - timedelta(seconds=2))
    assert jobs.release_due() == 1
    assert Release.objects.count() == 25
    assert jobs.release_due() == 1
    assert Release.objects.count() == 30
    assert jobs.release_due() == 0
    assert not BulkRelease.objects.get(pk=bulk_release.pk).is_pending


def test_one_process_at_a_time_carries_out_an_order(preparer: User, approver: User) -> None:
    operation = approved_conversion(preparer, approver)
    bulk_release = start(operation, actor=approver)
    lease = acquire_lease(f"release:{bulk_release.pk.hex}", timedelta(minutes=1))
    assert lease is not None
    release_pending(bulk_release.pk)
    assert not Release.objects.exists()
    lease.release()
    release_pending(bulk_release.pk)
    assert Release.objects.filter(pk=operation.pk).exists()


def test_what_was_refused_or_returned_is_not_released_again_by_itself(preparer: User, approver: User) -> None:
    bulk_release = start(approved_conversion(preparer, approver), actor=approver)
    carry_out(bulk_release)
    Release.objects.all().delete()
    release_pending(bulk_release.pk)
    assert not Release.objects.exists()


def test_while_payments_are_paused_nothing_is_released(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operation = approved_conversion(preparer, approver)
    page = as_approver.get(address(operation))
    pause_payments(actor=approver, reason="Suspicious")
    as_approver.post(address(operation), {"submission": str(uuid4()), **hidden(page)})
    carry_out(BulkRelease.objects.get())
    assert not Release.objects.exists()
    assert states(as_approver, BulkRelease.objects.get()) == {"waiting": 1}


def test_while_a_batch_is_paused_its_operations_are_not_offered_to_be_sent(
    as_approver: Client, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    bulk_release = start(*payouts.row_operations(batch), actor=approver)
    carry_out(bulk_release)
    address = bulk_release.get_absolute_url()
    assert "2 operations waiting to be sent" in text_of(as_approver.get(address))
    control.pause_batch(batch.pk, actor=preparer)
    page = as_approver.get(address)
    assert page.context["form"] is None
    html = text_of(page)
    assert (
        f'<a href="/operations/{batch.pk}/rows/">Batch {batch.reference}</a> is paused by {preparer}.' in html
    )
    assert "sending does not depend on it" not in html
    as_approver.post(address, {"otp": "111111"})
    assert not Release.objects.exists()
    control.resume_batch(batch.pk, actor=approver)
    html = text_of(as_approver.get(address))
    assert "is paused by" not in html
    assert "2 operations waiting to be sent" in html


def test_a_paused_batch_does_not_hold_the_other_operations(
    as_approver: Client, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(1))
    other = approved_conversion(preparer, approver)
    bulk_release = start(*payouts.row_operations(batch), other, actor=approver)
    control.pause_batch(batch.pk, actor=preparer)
    carry_out(bulk_release)
    assert [one.operation_id for one in Release.objects.all()] == [other.pk]
    assert "sending does not depend on it" in text_of(as_approver.get(bulk_release.get_absolute_url()))
    with lifted(connection):
        Operation.objects.filter(pk=other.pk).update(status=Status.UNKNOWN)
    html = text_of(as_approver.get(bulk_release.get_absolute_url()))
    assert "1 outcome is unknown; Countersign keeps checking." in html
    assert "Everything is sent." not in html
    assert "sending does not depend on it" not in html


def test_a_batch_that_is_paused_during_a_turn_is_sent_after_it_is_resumed(
    as_approver: Client, preparer: User, approver: User, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OTP_MODE = "not_asked"
    batch = payouts.applied(preparer, approver, payouts.transfers(3))
    bulk_release = start(*payouts.row_operations(batch), actor=approver)
    to_pause = [batch.pk]

    def pause_after_the_first(*arguments: Any, **options: Any) -> Operation:
        if to_pause and Release.objects.count() == 1:
            control.pause_batch(to_pause.pop(), actor=preparer)
        return release_operation(*arguments, **options)

    monkeypatch.setattr(bulk_release_workflow, "release_operation", pause_after_the_first)
    carry_out(bulk_release)
    assert Release.objects.count() == 1
    assert [item.refusal for item in bulk_release.items.all()] == [None] * 3
    control.resume_batch(batch.pk, actor=approver)
    as_approver.post(bulk_release.get_absolute_url())
    carry_out(bulk_release)
    assert Release.objects.count() == 3


def test_at_its_end_it_leads_to_the_batch_the_outcomes_and_what_can_be_retried(
    sign_in: SignIn, preparer: User, approver: User
) -> None:
    batch = payouts.applied(preparer, approver, payouts.transfers(2))
    rows = payouts.row_operations(batch)
    bulk_release = start(*rows, actor=approver)
    view, export = (
        f'href="/operations/{batch.pk}/rows/">',
        f'href="/reports/operations.csv?batch={batch.reference}">',
    )
    client = sign_in(Client(), preparer)
    html = text_of(client.get(bulk_release.get_absolute_url()))
    assert f"{view}View batch {batch.reference}</a>" in html
    assert export not in html
    BulkRelease.objects.update(is_pending=False)
    steps.put(rows[0], Status.SENDING, Status.SUCCEEDED)
    steps.put(rows[1], Status.SENDING, Status.FAILED)
    html = text_of(client.get(bulk_release.get_absolute_url()))
    assert view in html
    assert export in html
    assert f'href="/operations/{batch.pk}/rows/retry/">Retry 1 unpaid row…</a>' in html
    assert "unpaid row" not in text_of(sign_in(Client(), approver).get(bulk_release.get_absolute_url()))


def test_an_unknown_outcome_is_not_reported_as_being_sent(
    as_approver: Client, preparer: User, approver: User
) -> None:
    bulk_release = start(approved_conversion(preparer, approver), actor=approver)
    carry_out(bulk_release)
    with lifted(connection):
        Operation.objects.update(status=Status.UNKNOWN)
    html = text_of(as_approver.get(bulk_release.get_absolute_url()))
    assert "sending does not depend on it" not in html
    assert "Everything is sent. 1 outcome is unknown; Countersign keeps checking." in html
    assert "data-poll" in html, "the page shows when the outcome is known"


def test_only_the_person_who_sent_them_is_asked_for_the_next_code(
    sign_in: SignIn, second_approver: User, as_approver: Client, preparer: User, approver: User
) -> None:
    first, second = (factories.approved(preparer, approver) for _ in range(2))
    confirm(as_approver, first, second, otp="111111")
    Release.objects.all().delete()
    bulk_release = BulkRelease.objects.get()
    carry_out(bulk_release)
    as_second_approver = sign_in(Client(), second_approver)
    assert as_second_approver.get(bulk_release.get_absolute_url()).context["form"] is None
    as_second_approver.post(bulk_release.get_absolute_url(), {"otp": "222222"})
    assert not Release.objects.exists()


def test_the_open_page_is_loaded_again_when_it_has_to_ask_for_a_code(
    as_approver: Client, preparer: User, approver: User
) -> None:
    confirm(as_approver, *(factories.approved(preparer, approver) for _ in range(2)), otp="111111")
    carry_out(BulkRelease.objects.get())
    live = f"{BulkRelease.objects.get().get_absolute_url()}live/"
    assert "HX-Refresh" not in as_approver.get(live, {"asks": "0"}).headers
    Release.objects.all().delete()
    assert as_approver.get(live, {"asks": "0"}).headers["HX-Refresh"] == "true"
    assert "HX-Refresh" not in as_approver.get(live, {"asks": "1"}).headers


def test_a_selection_of_nothing_to_send_is_not_counted(as_approver: Client, preparer: User) -> None:
    html = text_of(as_approver.get(address(factories.prepared(preparer))))
    assert "<h1>Nothing to send</h1>" in html
    assert "then confirm" not in html
    assert 'class="split"' in html  # what is skipped, and the next step beside it


def test_with_nothing_to_list_the_next_step_has_no_empty_column_beside_it(as_approver: Client) -> None:
    html = text_of(as_approver.get(f"{SEND}?operation=W-000000"))
    assert "No operation is ready to be sent." in html
    assert 'class="split"' not in html


def test_the_pages_keep_their_number_of_queries(
    as_approver: Client, preparer: User, approver: User, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    operations = [approved_conversion(preparer, approver) for _ in range(12)]
    with django_assert_max_num_queries(12):
        as_approver.get(address(*operations))
    confirm(as_approver, *operations)
    with django_assert_max_num_queries(12):
        as_approver.get(BulkRelease.objects.get().get_absolute_url())


def test_what_is_released_already_is_sent_before(preparer: User, approver: User) -> None:
    ahead = approved_conversion(preparer, approver)
    release_pending(start(ahead, actor=approver).pk)
    assert Release.objects.filter(operation=ahead).exists()
    assert expected_seconds([approved_conversion(preparer, approver)]) == 4


@pytest.mark.parametrize(("seconds", "lifetime"), [(2, 900), (100, 1000)])
def test_releases_of_many_wait_as_long_as_sending_all_may_take(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch, seconds: int, lifetime: int
) -> None:
    monkeypatch.setattr(expected_wait, "_USUAL_SECONDS", float(seconds))
    operations = [approved_conversion(preparer, approver) for _ in range(5)]
    release_pending(start(*operations, actor=approver).pk)
    released = list(Release.objects.filter(operation__in=operations))
    assert [one.expires_at - one.released_at for one in released] == [timedelta(seconds=lifetime)] * 5
    factories.record_rights()
    assert inspect(full=True).violations == {}
    monkeypatch.setattr(expected_wait, "_USUAL_SECONDS", 1e5)
    lifetime_of_one = expected_wait.release_lifetime({("NGN", "conversion"): 1})
    assert lifetime_of_one == expected_wait.LONGEST_RELEASE


def test_a_release_that_may_wait_long_ends_with_its_operation(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected_wait, "_USUAL_SECONDS", 10_000.0)
    operation = approved_conversion(preparer, approver)
    release_pending(start(operation, actor=approver).pk)
    assert Release.objects.get().expires_at == operation.expires_at


def test_one_operation_waits_as_long_as_the_queue_before_it(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected_wait, "_USUAL_SECONDS", 500.0)
    release_pending(start(approved_conversion(preparer, approver), actor=approver).pk)
    operation = approved_conversion(preparer, approver)
    release = factories.release(operation, approver, "").release
    assert release.expires_at > release.released_at + timedelta(minutes=15)


def test_an_order_is_carried_out_although_the_second_factor_ages_meanwhile(
    preparer: User, approver: User
) -> None:
    operation = approved_conversion(preparer, approver)
    bulk_release = start(operation, actor=approver)
    with clock.use_clock(lambda: timezone.now() + timedelta(minutes=6)):
        release_pending(bulk_release.pk)
    assert Release.objects.filter(operation=operation).exists()


@pytest.mark.parametrize(
    "passed", [ORDER_VALID + timedelta(minutes=1), -timedelta(minutes=1)], ids=["old", "clock set back"]
)
def test_an_old_order_releases_nothing(
    preparer: User, approver: User, settings: Settings, passed: timedelta
) -> None:
    """Nor one from the future: it would stay valid for as long as the clock was ahead."""
    settings.OTP_MODE = "not_asked"
    operation = factories.approved(preparer, approver)
    bulk_release = start(operation, actor=approver)
    with clock.use_clock(lambda: timezone.now() + passed):
        release_pending(bulk_release.pk)
    assert not Release.objects.exists()
    assert not operation.has_expired(timezone.now() + ORDER_VALID + timedelta(minutes=1))
    bulk_release.refresh_from_db()
    assert not bulk_release.is_pending


def test_an_old_order_ends_before_an_operation_that_fails_in_the_database(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What failed so is tried again, so it would keep the order pending, and those behind it waiting."""
    bulk_release = start(*(approved_conversion(preparer, approver) for _ in range(27)), actor=approver)

    def fail(*_arguments: Any, **_options: Any) -> Operation:
        raise DatabaseError

    monkeypatch.setattr(bulk_release_workflow, "release_operation", fail)
    release_pending(bulk_release.pk)
    assert BulkRelease.objects.get().is_pending
    with clock.use_clock(lambda: timezone.now() + ORDER_VALID + timedelta(minutes=1)):
        release_pending(bulk_release.pk)
    bulk_release.refresh_from_db()
    assert (bulk_release.is_pending, bulk_release.refusal) == (False, {"code": "second_factor_stale"})


def test_an_unforeseen_error_of_one_operation_does_not_stop_those_behind_it(
    as_approver: Client,
    preparer: User,
    approver: User,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, *others = (approved_conversion(preparer, approver) for _ in range(3))
    bulk_release = start(first, *others, actor=approver)

    def fail_for_the_first(operation_id: UUID, **options: Any) -> Operation:
        if operation_id == first.pk:
            raise ZeroDivisionError
        return release_operation(operation_id, **options)

    monkeypatch.setattr(bulk_release_workflow, "release_operation", fail_for_the_first)
    release_pending(bulk_release.pk)
    assert {one.operation_id for one in Release.objects.all()} == {one.pk for one in others}
    bulk_release.refresh_from_db()
    assert (bulk_release.is_pending, bulk_release.refusal) == (False, {"code": "internal_error"})
    assert "Internal error in Countersign" in text_of(as_approver.get(bulk_release.get_absolute_url()))
    assert "ZeroDivisionError" in caplog.text
    monkeypatch.setattr(bulk_release_workflow, "release_operation", release_operation)
    continue_bulk_release(bulk_release, actor=approver, second_factor_at=timezone.now())
    release_pending(bulk_release.pk)
    assert Release.objects.filter(operation=first).exists()
    bulk_release.refresh_from_db()
    assert bulk_release.refusal is None


def test_an_order_ends_if_nothing_of_a_turn_can_be_released(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the next turn would begin with the same operations, at once and again and again."""
    monkeypatch.setattr(bulk_release_workflow, "_AT_ONCE", 1)
    monkeypatch.setattr(bulk_release_workflow, "release_operation", lambda *_args, **_options: 1 / 0)
    bulk_release = start(*(approved_conversion(preparer, approver) for _ in range(3)), actor=approver)
    release_pending(bulk_release.pk)
    bulk_release.refresh_from_db()
    assert (bulk_release.is_pending, bulk_release.refusal) == (False, {"code": "internal_error"})


def test_what_was_released_long_before_two_people_resume_is_not_sent(
    preparer: User, approver: User, second_approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expected_wait, "_USUAL_SECONDS", 1_000.0)
    operation = approved_conversion(preparer, approver)
    release_pending(start(operation, actor=approver).pk)
    pause_payments(actor=approver, reason="Looks wrong")
    with clock.use_clock(lambda: timezone.now() + timedelta(minutes=16)):
        form = KINDS["resume"].form_type({"reason": "It was right"})
        assert form.is_valid()
        proposal = factories.prepared_of_kind("resume", form.payload(), approver)
        approvals.approve_operation(
            proposal.pk, actor=second_approver, digest=proposal.digest, second_factor_at=clock.now()
        )
    assert not Release.objects.exists()
    operation.refresh_from_db()
    assert operation.status == Status.APPROVED
    assert Entry.objects.filter(action=Action.OPERATION_RELEASE_EXPIRED, target_id=str(operation.pk)).exists()


def test_a_queued_operation_of_an_unknown_kind_does_not_break_the_estimate(
    preparer: User, approver: User
) -> None:
    operation = approved_conversion(preparer, approver)
    release_pending(start(operation, actor=approver).pk)
    with lifted(connection):
        Operation.objects.filter(pk=operation.pk).update(kind="of_another_version")
    assert expected_seconds([approved_conversion(preparer, approver)]) > 0
