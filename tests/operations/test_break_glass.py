"""Whoever was changed on the server by one person alone decides nothing for a day, and everybody sees it."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.accounts.restrictions import BreakGlassChange
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core.web.formatting import local_time
from backoffice.operations import errors
from backoffice.operations.approval import waiting
from backoffice.operations.delivery import send
from backoffice.operations.lifecycle import incidents
from backoffice.operations.models.operations import Approval, Attempt, Operation, Release
from backoffice.operations.monitoring.inspection import inspect
from backoffice.operations.reconciliation.selectors import cached_open_case_count
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals, prepare
from tests import factories
from tests.operations.provider_list import shows
from tests.operations.steps import do, show, status_of, text_of
from tests.operations.unknown_outcomes import proposed, record, resolution_form
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db

SignIn = Callable[[Client, User], Client]
PAGES_OF_ROLES = ("preparer", "approver", "auditor", "administrator")


def decide(action: Callable[..., Operation], operation: Operation, actor: User, **more: Any) -> Operation:
    return action(operation.pk, actor=actor, digest=operation.digest, second_factor_at=timezone.now(), **more)


def last_refusal() -> dict[str, str]:
    entry = Entry.objects.filter(action=Action.OPERATION_ACTION_REFUSED).latest("position")
    refusal: dict[str, str] = entry.detail["refusal"]
    return refusal


@pytest.mark.django_db(transaction=True)
def test_a_restricted_person_is_told_why_nothing_can_be_resolved(
    as_approver: Client, approver: User, preparer: User, provider: StubProvider, review: Operation
) -> None:
    shows(provider, record("T-1"))
    addresses = [f"/operations/{review.pk}/case/?read=1", "/reconciliation/unknown/"]
    for address in addresses:
        assert "Resolve as" in text_of(as_approver.get(address))
    factories.break_glass(approver)
    for address in addresses:
        html = text_of(as_approver.get(address))
        assert "Resolve as" not in html
        assert "You cannot approve, send, resolve or acknowledge before" in html


def test_a_restricted_approver_cannot_approve(operation: Operation, approver: User) -> None:
    until = factories.break_glass(approver).restricted_until
    with pytest.raises(errors.AccountRestrictedError, match="You cannot approve, send, resolve"):
        decide(approvals.approve_operation, operation, approver)
    assert (status_of(operation), Approval.objects.count()) == (Status.PENDING, 0)
    assert last_refusal() == {"code": "account_restricted", "until": until.isoformat()}


@pytest.mark.parametrize(
    ("action", "more"),
    [(approvals.reject_operation, {"reason": "No"}), (approvals.approve_and_release_operation, {})],
)
def test_a_restricted_approver_cannot_reject_or_approve_and_send(
    operation: Operation, approver: User, action: Any, more: dict[str, Any]
) -> None:
    factories.break_glass(approver)
    with pytest.raises(errors.AccountRestrictedError):
        decide(action, operation, approver, **more)
    assert status_of(operation) == Status.PENDING


def test_a_restricted_approver_approves_none_of_several(preparer: User, approver: User) -> None:
    operation = factories.prepared_to_another_account(preparer)
    factories.break_glass(approver)
    chosen = approvals.SelectedOperation(operation, operation.digest)
    [result] = approvals.approve_operations([chosen], actor=approver, second_factor_at=timezone.now())
    assert result.result == approvals.BulkOutcome.REFUSED
    assert "break-glass" in result.text


def test_a_restricted_approver_cannot_release(
    operation: Operation, approver: User, second_approver: User
) -> None:
    decide(approvals.approve_operation, operation, approver)
    factories.break_glass(second_approver)
    with pytest.raises(errors.AccountRestrictedError):
        factories.release(operation, second_approver)
    assert not Release.objects.exists()


@pytest.fixture
def released(
    provider: StubProvider, operation: Operation, approver: User, second_approver: User
) -> Operation:
    """One person approved it, another released it, and no worker has claimed it."""
    return factories.release(factories.approve(operation, approver), second_approver)


@pytest.mark.django_db(transaction=True)
def test_a_release_is_not_sent_if_the_releaser_is_restricted_meanwhile(
    released: Operation, provider: StubProvider, second_approver: User, sign_in: SignIn
) -> None:
    factories.break_glass(second_approver)
    send.send_operation(released.pk)
    assert (status_of(released), Attempt.objects.count(), provider.posts) == (Status.APPROVED, 0, [])
    assert not Release.objects.exists()
    assert last_refusal()["code"] == "account_restricted"
    page = text_of(show(sign_in(Client(), second_approver), released))
    assert "the account of the person who released it was changed by break-glass access" in page


@pytest.mark.django_db(transaction=True)
def test_a_release_is_not_sent_if_an_approver_is_restricted_meanwhile(
    released: Operation, provider: StubProvider, approver: User, second_approver: User, sign_in: SignIn
) -> None:
    factories.break_glass(approver)
    send.send_operation(released.pk)
    assert (status_of(released), Attempt.objects.count(), provider.posts) == (Status.APPROVED, 0, [])
    assert last_refusal()["code"] == "approver_restricted"
    page = text_of(show(sign_in(Client(), second_approver), released))
    assert "Approval no longer valid" in page
    assert "The account of an approver was changed" in page


@pytest.mark.django_db(transaction=True)
def test_a_restricted_person_cannot_propose_or_approve_a_resolution(
    review: Operation, preparer: User, approver: User
) -> None:
    resolution = proposed(review, preparer, "not_executed")
    factories.break_glass(approver)
    form = resolution_form(review, "not_executed")
    assert form.is_valid()
    with pytest.raises(errors.AccountRestrictedError):
        prepare.prepare_operation(uuid.uuid4(), actor=approver, kind="resolution", payload=form.payload())
    with pytest.raises(errors.AccountRestrictedError):
        decide(approvals.approve_operation, resolution, approver)
    assert status_of(review) == Status.REVIEW


@pytest.mark.parametrize(("hours", "may"), [(23.99, False), (24.01, True)])
def test_the_restriction_ends_after_24_hours(
    operation: Operation, approver: User, hours: float, may: bool
) -> None:
    factories.break_glass(approver, hours_ago=hours)
    if may:
        assert decide(approvals.approve_operation, operation, approver).status == Status.APPROVED
    else:
        with pytest.raises(errors.AccountRestrictedError):
            decide(approvals.approve_operation, operation, approver)


def test_the_setting_of_the_process_that_checks_counts(
    operation: Operation, approver: User, settings: Settings
) -> None:
    """Whoever runs the command can set its environment, but not that of the other processes."""
    factories.break_glass(approver, hours_ago=30)
    settings.BREAK_GLASS_RESTRICTION_HOURS = 31
    with pytest.raises(errors.AccountRestrictedError):
        decide(approvals.approve_operation, operation, approver)
    settings.BREAK_GLASS_RESTRICTION_HOURS = 29
    assert decide(approvals.approve_operation, operation, approver).status == Status.APPROVED


def test_acknowledging_does_not_end_the_restriction(
    operation: Operation, approver: User, administrator: User
) -> None:
    change = factories.break_glass(approver)
    incidents.acknowledge_break_glass(change.pk, actor=administrator, note="I asked for it")
    with pytest.raises(errors.AccountRestrictedError):
        decide(approvals.approve_operation, operation, approver)


def test_the_restriction_is_that_of_one_person(
    operation: Operation, approver: User, second_approver: User
) -> None:
    factories.break_glass(approver)
    assert decide(approvals.approve_operation, operation, second_approver).status == Status.APPROVED


def test_a_person_without_the_permission_is_told_only_that(operation: Operation, auditor: User) -> None:
    factories.break_glass(auditor)
    with pytest.raises(errors.PermissionMissingError):
        decide(approvals.approve_operation, operation, auditor)


def test_the_panel_says_why_nothing_is_offered(
    as_approver: Client, approver: User, second_approver: User, operation: Operation
) -> None:
    until = factories.break_glass(approver).restricted_until
    page = text_of(show(as_approver, operation))
    assert "You cannot approve yet" in page
    with timezone.override("Africa/Lagos"):  # where the reader is
        assert f"before {local_time(until)}." in page
    assert 'name="digest"' not in page
    answer = do(as_approver, operation, "approve", digest=operation.digest)
    assert (answer.status_code, status_of(operation)) == (422, Status.PENDING)

    decide(approvals.approve_operation, operation, second_approver)
    page = text_of(show(as_approver, operation))
    assert "You cannot send yet" in page
    assert 'name="digest"' not in page


def test_nothing_waits_for_a_restricted_person(operation: Operation, approver: User) -> None:
    assert list(waiting.operations_waiting_for(approver)) == [operation]
    factories.break_glass(approver)
    restricted = User.objects.get(pk=approver.pk)
    assert list(waiting.operations_waiting_for(restricted)) == []


def test_the_bulk_page_skips_what_a_restricted_person_selects(
    as_approver: Client, approver: User, operation: Operation
) -> None:
    factories.break_glass(approver)
    address = f"{reverse('operations:bulk_approve')}?operation={operation.reference}:{operation.digest}"
    assert "changed on the server by one person alone" in text_of(as_approver.get(address))


@pytest.mark.parametrize("role", PAGES_OF_ROLES)
def test_everybody_sees_an_open_incident_until_it_is_acknowledged(
    request: pytest.FixtureRequest, sign_in: SignIn, second_approver: User, role: str
) -> None:
    inspect(full=True)
    client = sign_in(Client(), request.getfixturevalue(role))
    change = factories.break_glass(request.getfixturevalue("preparer"))
    page = text_of(client.get("/"))
    assert 'class="note bad" role="alert"><b>1 account change by one person alone.' in page
    assert "Accounts changed by one person alone" in page
    incidents.acknowledge_break_glass(change.pk, actor=second_approver, note="Agreed with Zainab")
    assert "break-glass" not in text_of(client.get("/"))


def test_the_alert_is_shown_before_the_first_inspection(as_approver: Client, preparer: User) -> None:
    factories.break_glass(preparer)
    assert "1 account change by one person alone." in text_of(as_approver.get("/"))


def test_an_open_change_counts_in_the_menu_and_in_the_metrics(client: Client, preparer: User) -> None:
    assert cached_open_case_count() == 0
    factories.break_glass(preparer)
    cache.clear()
    assert cached_open_case_count() == 1
    assert "countersign_incidents_open 1.0" in client.get("/metrics").content.decode()


def test_the_incident_pages_show_who_did_what_and_why(as_approver: Client, preparer: User) -> None:
    change = factories.break_glass(preparer)
    address = reverse("operations:break_glass", args=[change.pk])
    listed = text_of(as_approver.get(reverse("operations:incidents")))
    assert f'<a href="{address}">The roles of Tunde Bello were changed</a>' in listed
    page = text_of(as_approver.get(address))
    for text in ("user root on bastion-1", "Nobody else is there", "Tunde Bello, tunde@", "Preparer"):
        assert text in page
    answer = as_approver.post(address, {"note": "Agreed on the phone"}, follow=True)
    assert "acknowledged by Amara Okafor" in text_of(answer)
    assert "Agreed on the phone" in text_of(as_approver.get(address))


def test_acknowledging_is_audited(preparer: User, approver: User) -> None:
    change = factories.break_glass(preparer)
    incidents.acknowledge_break_glass(change.pk, actor=approver, note=" Agreed ")
    entry = Entry.objects.get(action=Action.BREAK_GLASS_ACKNOWLEDGED)
    assert (entry.actor, entry.target_label) == (approver, "Tunde Bello")
    assert entry.detail == {"change": "roles_changed", "reason": "Nobody else is there", "note": "Agreed"}
    with pytest.raises(errors.AlreadyAcknowledgedError):
        incidents.acknowledge_break_glass(change.pk, actor=approver, note="Again")


def test_the_person_changed_cannot_acknowledge(as_approver: Client, approver: User) -> None:
    change = factories.break_glass(approver, hours_ago=30)
    address = reverse("operations:break_glass", args=[change.pk])
    assert "Another person must acknowledge this" in text_of(as_approver.get(address))
    assert as_approver.post(address, {"note": "It was me"}).status_code == 422
    with pytest.raises(errors.OwnAccountError):
        incidents.acknowledge_break_glass(change.pk, actor=approver, note="It was me")
    with pytest.raises(IntegrityError), transaction.atomic():
        BreakGlassChange.objects.update(
            acknowledged_by=approver, acknowledged_at=timezone.now(), note="It was me"
        )
    assert BreakGlassChange.objects.get().is_open


@pytest.mark.parametrize(
    "write",
    [
        lambda changes: changes.update(at=timezone.now() - timedelta(days=2)),
        lambda changes: changes.update(reason="Another one"),
        lambda changes: changes._raw_delete("default"),
    ],
    ids=["backdate", "rewrite", "delete"],
)
def test_the_database_keeps_a_break_glass_change(
    approver: User, write: Callable[[QuerySet[BreakGlassChange]], object]
) -> None:
    change = factories.break_glass(approver)
    with pytest.raises(IntegrityError), transaction.atomic():
        write(BreakGlassChange.objects.all())
    assert BreakGlassChange.objects.get().at == change.at


def test_the_database_keeps_an_acknowledgement(approver: User, administrator: User) -> None:
    change = factories.break_glass(approver)
    incidents.acknowledge_break_glass(change.pk, actor=administrator, note="Called the operator")
    with pytest.raises(IntegrityError), transaction.atomic():
        BreakGlassChange.objects.update(acknowledged_by=None, acknowledged_at=None, note="")
    assert not BreakGlassChange.objects.get().is_open


def test_two_restricted_people_cannot_acknowledge_each_other(
    as_approver: Client, approver: User, administrator: User
) -> None:
    factories.break_glass(approver)
    other = factories.break_glass(administrator)
    address = reverse("operations:break_glass", args=[other.pk])
    assert "You cannot acknowledge this yet" in text_of(as_approver.get(address))
    assert as_approver.post(address, {"note": "Fine"}).status_code == 422
    with pytest.raises(errors.AccountRestrictedError):
        incidents.acknowledge_break_glass(other.pk, actor=approver, note="Fine")


@pytest.mark.parametrize("role", ["preparer", "auditor"])
def test_acknowledging_needs_the_permission(
    request: pytest.FixtureRequest, approver: User, role: str
) -> None:
    change = factories.break_glass(approver)
    with pytest.raises(errors.PermissionMissingError):
        incidents.acknowledge_break_glass(change.pk, actor=request.getfixturevalue(role), note="Fine")


def test_acknowledging_needs_a_note(preparer: User, approver: User) -> None:
    change = factories.break_glass(preparer)
    with pytest.raises(errors.NoteMissingError):
        incidents.acknowledge_break_glass(change.pk, actor=approver, note="  ")
