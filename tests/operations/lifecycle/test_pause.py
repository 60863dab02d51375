"""The switch that stops all sending."""

import re
import uuid
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from backoffice.accounts.models import User
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.delivery import send
from backoffice.operations.kinds.registry import KINDS, read_content
from backoffice.operations.lifecycle import pause
from backoffice.operations.models import monitoring
from backoffice.operations.models.monitoring import Pause
from backoffice.operations.models.operations import Operation, Release
from backoffice.operations.states import Status
from backoffice.operations.workflow import prepare
from tests import factories
from tests.operations.steps import do, show, status_of, text_of
from tests.operations.unknown_outcomes import lost
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("name", ["preparer", "approver", "administrator"])
def test_any_working_role_pauses_payments_alone_and_at_once(
    name: str, request: pytest.FixtureRequest
) -> None:
    person: User = request.getfixturevalue(name)
    assert not monitoring.is_paused()
    pulled = pause.pause_payments(actor=person, reason=" A key has leaked ")
    assert monitoring.is_paused()
    assert monitoring.current_pause() == pulled
    assert (pulled.paused_by, pulled.reason) == (person, "A key has leaked")


@pytest.mark.parametrize("name", ["auditor", "outsider"])
def test_readers_cannot_pause_payments(name: str, request: pytest.FixtureRequest) -> None:
    with pytest.raises(errors.PermissionMissingError):
        pause.pause_payments(actor=request.getfixturevalue(name), reason="I want to")
    assert not monitoring.is_paused()


def test_a_pause_is_audited_with_its_reason(preparer: User) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    entry = Entry.objects.get(action=Action.PAYMENTS_PAUSED)
    assert (entry.actor_id, entry.detail["reason"]) == (preparer.pk, "A key has leaked")


def test_a_pause_needs_a_reason(preparer: User) -> None:
    with pytest.raises(errors.ReasonMissingError):
        pause.pause_payments(actor=preparer, reason="  ")
    assert not monitoring.is_paused()


def test_a_second_pause_is_refused_and_names_the_first(preparer: User, approver: User) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    with pytest.raises(errors.AlreadyPausedError, match="already paused by Tunde Bello"):
        pause.pause_payments(actor=approver, reason="Me too")
    assert Pause.objects.get().reason == "A key has leaked"


def test_the_database_allows_one_open_pause(preparer: User) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    with pytest.raises(IntegrityError), transaction.atomic():
        Pause.objects.create(paused_by=preparer, paused_at=timezone.now(), reason="Another")


def test_the_database_refuses_to_end_a_pause_without_an_approved_resumption(preparer: User) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    with pytest.raises(IntegrityError), transaction.atomic():
        Pause.objects.update(ended_at=timezone.now())


def resumption(person: User) -> Operation:
    """The proposal to let sending go on."""
    form = KINDS["resume"].form_type({"reason": "The key is ended"})
    assert form.is_valid(), form.errors
    return prepare.prepare_operation(uuid.uuid4(), actor=person, kind="resume", payload=form.payload())


def test_two_people_resume_payments(preparer: User, approver: User) -> None:
    pulled = pause.pause_payments(actor=approver, reason="A key has leaked")
    proposal = resumption(preparer)
    assert monitoring.is_paused()
    assert factories.approve(proposal, approver).status == Status.SUCCEEDED
    assert not monitoring.is_paused()
    pulled.refresh_from_db()
    assert pulled.ended_by == proposal
    entry = Entry.objects.get(action=Action.PAYMENTS_RESUMED)
    assert (entry.actor_id, entry.detail["by"]) == (approver.pk, proposal.reference)


def test_both_people_who_resume_see_that_released_operations_are_sent_then(
    as_preparer: Client, as_approver: Client, preparer: User, released: Operation
) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    said = "1 operation was released and not sent. It is sent as soon as payments are resumed"
    page = as_preparer.get("/operations/prepare/resume/")
    assert "Nothing is sent to the provider." not in text_of(page)
    review = as_preparer.post(
        page.request["PATH_INFO"],
        {"submission": str(uuid.uuid4()), "reason": "It is ended", "step": "review"},
        follow=True,
    )
    assert said in text_of(review)
    proposal = resumption(preparer)
    assert said in text_of(show(as_approver, proposal))
    answer = do(as_approver, proposal, "approve")
    html = text_of(as_approver.get(answer["Location"]))
    assert "Payments are resumed, and released operations are sent now." in html
    assert "Nothing was sent." not in html


def test_what_a_resumption_does_not_send_is_not_announced(preparer: User, released: Operation) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    kind, payload = read_content(resumption(preparer))
    assert len(kind.cautions(payload)) == 1
    factories.change_release(released.release, released_at=timezone.now() - timedelta(hours=1))
    assert kind.cautions(payload) == []


def test_one_person_cannot_resume_payments_alone(approver: User) -> None:
    pause.pause_payments(actor=approver, reason="A key has leaked")
    with pytest.raises(errors.SelfApprovalError):
        factories.approve(resumption(approver), approver)
    assert monitoring.is_paused()


def test_a_resumption_ends_only_its_own_pause(preparer: User, approver: User, second_approver: User) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    first = resumption(preparer)
    Pause.objects.update(ended_at=timezone.now(), ended_by=first)
    pause.pause_payments(actor=preparer, reason="Another one has leaked")
    with pytest.raises(errors.NotPausedError, match="already ended"):
        factories.approve(first, approver)
    assert monitoring.is_paused()


def test_a_resumption_needs_an_open_pause(as_preparer: Client) -> None:
    form = text_of(as_preparer.get("/operations/prepare/resume/", follow=True))
    assert "Payments are not paused: there is nothing to resume." in form
    answer = as_preparer.post("/operations/prepare/resume/", {"reason": "The key is ended", "step": "review"})
    assert answer.status_code == 422
    assert "Payments are not paused" in text_of(answer)


def test_payments_are_paused_on_their_page_and_every_page_shows_it(
    as_preparer: Client, as_approver: Client
) -> None:
    assert "Pause payments…" in text_of(as_preparer.get("/"))
    assert as_preparer.post("/operations/pause/", {"reason": "A key has leaked"}).status_code == 302
    for address in ("/", "/operations/", "/reconciliation/unknown/", "/transactions/"):
        html = text_of(as_approver.get(address))
        assert re.search(
            r"<b>Payments are paused.</b> Paused by Tunde Bello, .*. Reason: A key has leaked", html
        )
    assert "Pause payments…" not in text_of(as_preparer.get("/"))


def test_an_invalid_pause_is_reported_at_the_form(as_preparer: Client, approver: User) -> None:
    answer = as_preparer.post("/operations/pause/", {"reason": ""})
    assert (answer.status_code, "Enter a reason. Payments were not paused." in text_of(answer)) == (422, True)
    pause.pause_payments(actor=approver, reason="A key has leaked")
    answer = as_preparer.post("/operations/pause/", {"reason": "Me too"})
    assert (answer.status_code, "already paused by Amara Okafor" in text_of(answer)) == (422, True)


def test_an_operation_shows_the_pause_and_requests_no_one_time_code(
    as_approver: Client, preparer: User, approver: User
) -> None:
    operation = factories.approved(preparer, approver)
    seen = show(as_approver, operation).context["seen"]
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    html = text_of(show(as_approver, operation, "live/", seen=seen))
    assert "Not sent: payments are paused" in html
    assert (
        "Tunde Bello paused payments: A key has leaked. Nothing is sent until payments are resumed." in html
    )
    assert "Ready to send" not in html
    assert ">Send<" not in html
    assert 'name="otp"' not in html


def test_pending_operations_can_be_approved_but_not_sent_during_a_pause(
    as_approver: Client, operation: Operation, preparer: User
) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    html = text_of(show(as_approver, operation))
    assert ">Approve<" in html
    assert "Approve and send" not in html


def test_nothing_is_sent_during_a_pause_and_the_release_waits(
    provider: StubProvider, released: Operation, preparer: User
) -> None:
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    send.send_operation(released.pk)
    released.refresh_from_db()
    assert (released.status, provider.changes) == (Status.APPROVED, [])
    assert hasattr(released, "release")


def test_checking_for_a_pause_takes_one_query(preparer: User, django_assert_num_queries: object) -> None:
    with django_assert_num_queries(1):  # type: ignore[operator]
        monitoring.is_paused()


def test_an_operation_both_paused_and_queued_shows_both(
    provider: StubProvider, as_approver: Client, preparer: User, approver: User
) -> None:
    lost(provider, preparer, approver)
    waiting = factories.approve(factories.prepared_to_another_account(preparer), approver)
    pause.pause_payments(actor=approver, reason="Something looks wrong")
    pause.clear_pause_cache()
    shown = text_of(show(as_approver, waiting))
    assert "Not sent: payments are paused" in shown
    assert "1 operation is ahead of this one for the NGN balance" in shown


@pytest.mark.parametrize("action", ["release", "approve-and-send"])
def test_a_page_left_open_releases_nothing_during_a_pause(
    operation: Operation, as_approver: Client, preparer: User, action: str
) -> None:
    """A one-time code that nothing sends would only wait, and expire."""
    if action == "release":
        do(as_approver, operation, "approve")
    before = status_of(operation)
    pause.pause_payments(actor=preparer, reason="A key has leaked")
    answer = do(as_approver, operation, action, otp="123456", comment="Invoice seen")
    assert answer.status_code == 422
    assert "Payments are paused. Nothing was done, and the one-time code was not stored." in text_of(answer)
    assert (status_of(operation), Release.objects.count()) == (before, 0)
    assert Entry.objects.latest("position").action == Action.OPERATION_ACTION_REFUSED
