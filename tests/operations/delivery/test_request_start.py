"""A request begins by a commit right before its first byte: without it nothing was sent, and nothing will be."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.ledger import provider_list
from backoffice.ledger.mirror.merge import merge_records
from backoffice.operations import jobs
from backoffice.operations.delivery import send
from backoffice.operations.delivery.record import record_result, record_timeout, sender_grace
from backoffice.operations.delivery.release import AnotherPayment
from backoffice.operations.delivery.send import SendClaim, make_request
from backoffice.operations.errors import PossiblyExecutedError
from backoffice.operations.lifecycle.incidents import acknowledge_incident
from backoffice.operations.models.holds import LookAlike
from backoffice.operations.models.monitoring import Incident
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import IncidentKind, ResponseCode
from backoffice.operations.reconciliation.runner import reconcile
from backoffice.operations.states import Outcome, Status
from tests import factories
from tests.append_only.triggers import lifted
from tests.operations.delivery.test_late_senders import PassingAt, begun, claimed
from tests.operations.provider_list import record, shows
from tests.operations.steps import reloaded, show, status_of, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)

GIVEN_UP = "Sending did not begin in time. Nothing was sent."
DATABASE_GONE = "The database connection was lost before sending began. Nothing was sent."


class ActingAt(dict[str, str]):
    """In place of the fault points: at this one something happens."""

    def __init__(self, point: str, act: Callable[[], object]) -> None:
        self._point, self._act = point, act

    def get(self, name: str, default: Any = None) -> Any:
        if name == self._point:
            self._act()
        return default


def silent_since_the_claim(attempt_id: int) -> datetime:
    """The first moment at which the sweeper gives up a request that has not begun."""
    begin_by = Attempt.objects.get(pk=attempt_id).begin_by
    assert begin_by is not None
    return begin_by + sender_grace() + timedelta(milliseconds=1)


def given_up(claim: SendClaim) -> None:
    """The sweeper ends the attempt, whatever the sender's own clock says."""
    record_timeout(claim.attempt.pk, now=silent_since_the_claim(claim.attempt.pk))


def test_the_beginning_is_committed_before_the_provider_receives_the_request(
    released: Operation, provider: StubProvider
) -> None:
    seen = []

    def read_from_outside() -> tuple[int, str]:
        try:
            attempt = Attempt.objects.get()
            seen.append(
                attempt.begun_at is not None and attempt.started_at <= attempt.begun_at <= clock.now()
            )
        finally:
            connection.close()  # that of the thread that answers
        return 200, '{"data": {"transactionId": "T-1"}}'

    provider.answer_post = read_from_outside
    send.send_operation(released.pk)
    assert seen == [True]


def test_a_sender_that_died_before_its_request_began_returns_the_operation(
    provider: StubProvider, released: Operation
) -> None:
    attempt_id = claimed(released).attempt.pk
    record_timeout(attempt_id, now=silent_since_the_claim(attempt_id))
    attempt = Attempt.objects.get()
    assert (status_of(released), attempt.outcome) == (Status.APPROVED, Outcome.NOT_SENT)
    assert [response["code"] for response in attempt.responses] == [ResponseCode.NOT_BEGUN]
    assert (attempt.closed_at is None, attempt.next_check_at, attempt.begun_at) == (False, None, None)
    assert not Release.objects.exists()
    assert Entry.objects.filter(action=Action.OPERATION_RETURNED).count() == 1


def test_a_returned_operation_is_sent_only_when_it_is_released_again(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    given_up(claimed(released))
    send.send_operation(released.pk)
    jobs.send_due()
    assert provider.posts == []
    factories.release(reloaded(released), approver)
    send.send_operation(released.pk)
    assert (len(provider.posts), status_of(released)) == (1, Status.PROCESSING)


def test_the_sweeper_returns_it_within_seconds_and_not_before(
    provider: StubProvider, released: Operation
) -> None:
    attempt_id = claimed(released).attempt.pk
    assert jobs.expire_due() == 0
    late = silent_since_the_claim(attempt_id)
    record_timeout(attempt_id, now=late - timedelta(milliseconds=2))
    assert status_of(released) == Status.SENDING
    with clock.use_clock(lambda: late):
        assert jobs.expire_due() == 1
    assert late - Attempt.objects.get().started_at < timedelta(seconds=11)
    assert status_of(released) == Status.APPROVED


def test_a_request_that_began_is_never_returned(provider: StubProvider, released: Operation) -> None:
    attempt_id = begun(released).pk
    record_timeout(attempt_id, now=silent_since_the_claim(attempt_id))
    assert status_of(released) == Status.SENDING
    record_timeout(attempt_id, now=clock.now() + timedelta(hours=1))
    assert status_of(released) == Status.UNKNOWN


def test_an_attempt_of_an_earlier_release_is_never_returned(
    provider: StubProvider, released: Operation
) -> None:
    """It has no `begin_by`: its sender may have begun without recording it."""
    attempt_id = claimed(released).attempt.pk
    Attempt.objects.update(begin_by=None)
    record_timeout(attempt_id, now=clock.now() + timedelta(hours=1))
    assert status_of(released) == Status.UNKNOWN


def test_a_sender_whose_operation_was_returned_meanwhile_sends_nothing(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    """By its own clock it is in time: that of a virtual machine, which stood still with it."""
    claim = claimed(released)
    settings.FAULT_POINTS = ActingAt("send.connected", lambda: given_up(claim))
    answer = make_request(claim)
    assert (answer.outcome, answer.response["error"], provider.posts) == (Outcome.NOT_SENT, GIVEN_UP, [])
    record_result(claim.attempt, answer)
    attempt = Attempt.objects.get()
    assert (status_of(released), attempt.outcome) == (Status.APPROVED, Outcome.NOT_SENT)
    assert attempt.begun_at is None
    assert not Incident.objects.exists()


def test_a_sender_that_is_late_by_the_databases_clock_sends_nothing(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    claim = claimed(released)
    settings.FAULT_POINTS = night = PassingAt("send.connected", timedelta(hours=8))
    with clock.use_clock(night.now):
        answer = make_request(claim)
    assert (answer.response["error"], provider.posts) == (GIVEN_UP, [])
    assert Attempt.objects.get().begun_at is None


def test_a_sender_frozen_after_the_beginning_sends_nothing(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    settings.FAULT_POINTS = night = PassingAt("send.begun", timedelta(hours=8))
    with clock.use_clock(night.now):
        answer = make_request(claimed(released))
    assert (answer.outcome, provider.posts) == (Outcome.NOT_SENT, [])
    assert "The time limit for sending had passed" in answer.response["error"]
    assert Attempt.objects.get().begun_at is not None


@pytest.mark.parametrize("fails_at", ["UPDATE", "COMMIT"])
def test_nothing_is_sent_if_the_beginning_cannot_be_committed(
    provider: StubProvider, released: Operation, monkeypatch: pytest.MonkeyPatch, fails_at: str
) -> None:
    claim, failures = claimed(released), list[str]()

    def fail(execute: Callable[..., object], sql: str, *rest: object) -> object:
        if fails_at == "UPDATE" and sql.startswith("UPDATE"):
            failures.append(sql)
            raise OperationalError("the connection is lost")
        return execute(sql, *rest)

    def commit_unconfirmed() -> None:
        """The database commits, and the confirmation is lost."""
        commit()
        failures.append("COMMIT")
        raise OperationalError("the connection is lost")

    database: Any = connection
    commit = database._commit
    if fails_at == "COMMIT":
        monkeypatch.setattr(database, "_commit", commit_unconfirmed)
    with connection.execute_wrapper(fail):
        answer = make_request(claim)
    monkeypatch.undo()
    assert len(failures) == 1
    assert (answer.outcome, answer.response["error"], provider.posts) == (Outcome.NOT_SENT, DATABASE_GONE, [])
    record_result(claim.attempt, answer)
    assert status_of(released) == Status.APPROVED


def test_a_request_begins_once(provider: StubProvider, released: Operation) -> None:
    attempt = begun(released)
    at = Attempt.objects.get().begun_at
    assert not send.begin_request(attempt)
    assert Attempt.objects.get().begun_at == at


def test_the_beginning_is_never_part_of_another_transaction(
    provider: StubProvider, released: Operation
) -> None:
    claim = claimed(released)
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        send.begin_request(claim.attempt)


def test_a_debit_of_a_returned_operation_raises_an_incident(
    provider: StubProvider, released: Operation
) -> None:
    """It cannot exist; if the provider shows one all the same, an incident is raised and it is not sent again."""
    given_up(claimed(released))
    shows(provider, record("T-7"))
    with transaction.atomic():
        merge_records(provider_list.recent_transactions("NGN", back_to=timezone.now() - timedelta(days=1)))
    reconcile()
    about = Incident.objects.get(operation__isnull=False)
    assert (about.operation, about.kind) == (released, IncidentKind.EXECUTED_AFTER_ALL)
    assert status_of(released) == Status.APPROVED


def test_a_returned_operation_is_not_sent_again_if_the_list_shows_it(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    """As after a restore that lost the commit that its request began."""
    given_up(claimed(released))
    shows(provider, record("T-7"))
    factories.release(reloaded(released), approver)
    send.send_operation(released.pk)
    assert (provider.posts, status_of(released)) == ([], Status.APPROVED)
    assert Incident.objects.get().kind == IncidentKind.EXECUTED_DESPITE_PROOF
    assert not Release.objects.exists()


def test_a_person_may_declare_that_what_the_list_shows_is_another_payment(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    given_up(claimed(released))
    shows(provider, record("T-7"))
    factories.release(reloaded(released), approver)
    send.send_operation(released.pk)
    assert LookAlike.objects.get().transaction_id == "T-7"
    acknowledge_incident(Incident.objects.get().pk, actor=approver, note="Paid for another invoice")
    factories.release(
        reloaded(released), approver, statement=AnotherPayment(("T-7",), "Paid for another invoice")
    )
    send.send_operation(released.pk)
    assert (len(provider.posts), status_of(released)) == (1, Status.PROCESSING)


def test_what_an_attempt_of_the_operation_has_claimed_is_no_other_payment(
    provider: StubProvider, released: Operation, approver: User
) -> None:
    """Rows alone could say that it was not sent, although its transaction is on record."""
    given_up(claimed(released))
    Attempt.objects.update(provider_transaction_id="T-7")
    shows(provider, record("T-7"))
    factories.release(reloaded(released), approver)
    send.send_operation(released.pk)
    assert (provider.posts, status_of(released)) == ([], Status.APPROVED)
    assert not LookAlike.objects.exists()
    assert not Release.objects.exists()


def test_a_used_release_orders_no_second_attempt(provider: StubProvider, released: Operation) -> None:
    """Somebody with the database alone has kept it, and writes it again with the entries that belong to it."""
    kept = Release.objects.select_related("released_by").get()
    given_up(claimed(released))
    kept.save(force_insert=True)
    with transaction.atomic():
        audit.record(
            Action.OPERATION_RELEASED, actor=kept.released_by, target=released, digest=released.digest
        )
    with lifted(connection):
        Entry.objects.filter(action=Action.OPERATION_CLAIMED).delete()
    send.send_operation(released.pk)
    assert (provider.posts, status_of(released)) == ([], Status.APPROVED)
    assert Incident.objects.get().kind == IncidentKind.ALTERED_RECORD
    assert not Release.objects.exists()


def test_a_late_sender_makes_no_incident_of_what_another_process_has_sent(
    provider: StubProvider, released: Operation
) -> None:
    release = Release.objects.select_related("operation", "released_by").get()
    claimed(released)  # by another process, while this one was stopped before its check
    shows(provider, record("T-7"))
    with pytest.raises(PossiblyExecutedError):
        send.preflight_read(release)
    assert not Incident.objects.exists()


def test_the_page_says_why_it_was_not_sent(
    as_approver: Any, provider: StubProvider, released: Operation
) -> None:
    given_up(claimed(released))
    shown = text_of(show(as_approver, released))
    assert "The sending process stopped before the request began. Nothing was sent." in shown
    assert "It can be sent again with a new one-time code." in shown


def test_a_connection_that_broke_while_the_provider_was_reached_is_replaced(
    provider: StubProvider, released: Operation, settings: Settings
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has a connection that can break")
    claim = claimed(released)
    settings.FAULT_POINTS = ActingAt("send.connected", lambda: connection.connection.close())
    assert make_request(claim).outcome != Outcome.NOT_SENT
    assert len(provider.posts) == 1
