"""Actions of people and processes in a race, each ready to start at the same moment as another."""

import itertools
import threading
import uuid
from datetime import timedelta

from django.utils import timezone
from pydantic import SecretStr

from backoffice.accounts.models import User
from backoffice.core import clock
from backoffice.operations.delivery import record, send
from backoffice.operations.kinds.base import Payload
from backoffice.operations.kinds.registry import KINDS
from backoffice.operations.models.operations import Attempt, Operation
from backoffice.operations.outcome import confirmation
from backoffice.operations.states import Status
from backoffice.operations.workflow import approvals, prepare
from tests import factories
from tests.faults.races.racing import Act
from tests.operations.provider_list import shows
from tests.operations.steps import status_of
from tests.stub_provider import StubProvider

LOST = (502, "bad gateway")


def approves(operation: Operation, person: User) -> Act:
    return lambda: approvals.approve_operation(
        operation.pk, actor=person, digest=operation.digest, second_factor_at=timezone.now()
    )


def once_the_list_is_read(provider: StubProvider, act: Act, *, dawdling: int) -> Act:
    """Run it once the provider has had two reads, as before a claim or an end, and after so many polls of a
    row.
    """
    read, gets = threading.Event(), itertools.count(1)
    provider.before_get = lambda: read.set() if next(gets) == 2 else None

    def late() -> None:
        assert read.wait(60)
        for _ in range(dawdling):
            Operation.objects.first()
        act()

    return late


def begins_and_records(claim: send.SendClaim) -> Act:
    """Make the one request of the claim, and record its result."""

    def act() -> None:
        record.record_result(claim.attempt, send.make_request(claim))

    return act


def gives_up(claim: send.SendClaim, *, dawdling: int) -> Act:
    """End the attempt as if its sender had been silent for long, after so many polls of a row."""
    late = claim.begin_by + record.sender_grace() + timedelta(seconds=1)

    def act() -> None:
        for _ in range(dawdling):
            Operation.objects.first()
        record.record_timeout(claim.attempt.pk, now=late)

    return act


def rejects(operation: Operation, person: User) -> Act:
    return lambda: approvals.reject_operation(
        operation.pk,
        actor=person,
        digest=operation.digest,
        second_factor_at=timezone.now(),
        reason="The invoice is not ours.",
    )


def cancels(operation: Operation) -> Act:
    return lambda: approvals.cancel_operation(operation.pk, actor=operation.preparer)


def releases(operation: Operation, person: User) -> Act:
    """Release it, and send it as the worker would."""

    def act() -> None:
        factories.release(operation, person)
        send.send_operation(operation.pk)

    return act


def approves_and_sends(operation: Operation, person: User) -> Act:
    def act() -> None:
        approvals.approve_and_release_operation(
            operation.pk,
            actor=person,
            digest=operation.digest,
            second_factor_at=timezone.now(),
            otp=SecretStr("123456"),
        )
        send.send_operation(operation.pk)

    return act


def sends(operation: Operation) -> Act:
    return lambda: send.send_operation(operation.pk)


def checks_status(operation: Operation) -> Act:
    return lambda: confirmation.confirm_operation(operation.pk)


def approved_to_another_account(preparer: User, approver: User) -> Operation:
    return factories.approve(factories.prepared_to_another_account(preparer), approver)


def lost(provider: StubProvider, preparer: User, approver: User, *, age: timedelta) -> Operation:
    """An operation whose response was lost this long ago."""
    shows(provider)
    named, provider.answer_post = provider.answer_post, lambda: LOST
    operation = factories.release(approved_to_another_account(preparer, approver), approver)
    send.send_operation(operation.pk)
    provider.answer_post = named
    assert status_of(operation) == Status.UNKNOWN
    backdated(operation, age)
    return operation


def backdated(operation: Operation, age: timedelta) -> None:
    Attempt.objects.filter(operation=operation).update(started_at=clock.now() - age)


def expires(operation: Operation) -> Act:
    """The sweeper at the moment of expiry."""

    def act() -> None:
        while not Operation.objects.get(pk=operation.pk).has_expired(clock.now()):
            pass
        approvals.expire_operation(operation.pk)

    return act


def edits(operation: Operation) -> Act:
    payload = {**operation.payload, "account_number": "9999999999"}
    return lambda: Operation.objects.filter(pk=operation.pk).update(payload=payload)


def resumed(preparer: User, approver: User) -> Operation:
    form = KINDS["resume"].form_type({"reason": "The key was replaced"})
    assert form.is_valid(), form.errors
    return factories.approve(factories.prepared_of_kind("resume", form.payload(), preparer), approver)


def proposes(payload: Payload, person: User) -> Act:
    return lambda: prepare.prepare_operation(uuid.uuid4(), actor=person, kind="resolution", payload=payload)
