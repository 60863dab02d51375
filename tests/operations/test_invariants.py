"""Every rule of what must always hold goes red when the database is broken past the services, and only that one."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit import services as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.models import GatewayKey
from backoffice.operations import services
from backoffice.operations.models import Approval, Attempt, Operation, Release, Secret
from backoffice.operations.oversight import Inspection
from backoffice.operations.services import inspecting
from backoffice.operations.services.inspecting import inspect, inspect_due
from backoffice.operations.services.invariants import RULES
from backoffice.operations.states import Outcome, Status
from tests import factories, stub_service
from tests.append_only.triggers import lifted
from tests.operations import cases
from tests.operations.test_watching import NAMED, OLD, REFUSED, TOKEN_REFUSED, record, sent
from tests.stub_service import StubService

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def service(settings: Settings) -> Iterator[StubService]:
    with stub_service.running() as stub:
        settings.GATEWAY_URL = stub.url
        stub.records = json.dumps([OLD])
        yield stub


@pytest.fixture
def history(service: StubService, maker: User, checker: User, second_checker: User) -> dict[str, Operation]:
    """One operation in each status, each brought there by the services."""
    made = {
        "pending": factories.prepared(maker),
        "half signed": factories.prepared(maker, amount=20_000_000),
        "approved": factories.approved(maker, checker),
        "rejected": factories.prepared(maker),
        "cancelled": factories.approved(maker, checker),
        "expired": factories.prepared(maker),
        "returned": sent(service, maker, checker, TOKEN_REFUSED),
        "failed": sent(service, maker, checker, REFUSED),
        "succeeded": sent(service, maker, checker, NAMED),
        "processing": sent(service, maker, checker, (200, '{"data": {"transactionId": "T-2"}}')),
    }
    factories.countersigned(made["half signed"], checker)
    services.reject_operation(
        made["rejected"].pk,
        actor=checker,
        digest=made["rejected"].digest,
        second_factor_at=timezone.now(),
        reason="No",
    )
    services.cancel_operation(made["cancelled"].pk, actor=maker)
    Operation.objects.filter(pk=made["expired"].pk).update(expires_at=timezone.now())
    services.expire_operation(made["expired"].pk)
    service.records = json.dumps([record("T-1"), OLD])
    services.confirm_operation(made["succeeded"].pk)
    made["sent twice"] = _sent_after_a_refused_token(service, maker, checker)
    made["settled"] = _settled_by_two(service, maker, checker, second_checker)
    made["unknown"] = sent(service, maker, checker, (502, "bad gateway"), account_number="0000000001")
    made["released"] = factories.release(factories.approved(maker, checker), checker)
    return {name: Operation.objects.get(pk=each.pk) for name, each in made.items()}


def _sent_after_a_refused_token(service: StubService, maker: User, checker: User) -> Operation:
    operation = sent(service, maker, checker, TOKEN_REFUSED)
    service.answer_post = lambda: (200, '{"data": {"transactionId": "T-3"}}')
    factories.release(operation, checker)
    services.send_operation(operation.pk)
    service.records = json.dumps([record("T-3"), record("T-1"), OLD])
    return services.confirm_operation(operation.pk)


def _settled_by_two(service: StubService, maker: User, checker: User, other: User) -> Operation:
    operation = sent(service, maker, checker, (502, "bad gateway"), account_number="0000000002")
    Attempt.objects.filter(operation=operation).update(started_at=timezone.now() - timedelta(hours=25))
    services.confirm_operation(operation.pk)
    return cases.settled(operation, checker, other, "did_not_happen")


def red() -> set[str]:
    return set(inspect(full=True).violations)


def test_the_history_has_each_status(history: dict[str, Operation]) -> None:
    reached = {operation.status for operation in history.values()}
    assert reached == set(Status) - {Status.SENDING, Status.REVIEW}


def test_what_the_services_did_breaks_no_rule(history: dict[str, Operation]) -> None:
    assert red() == set()
    assert set(inspect(full=False).violations) == set()


# Each way to break it stands under the name of the rule that has to see it.
BREAKS: dict[str, Callable[[dict[str, Operation]], object]] = {}


def breaks(act: Callable[[dict[str, Operation]], object]) -> Callable[[dict[str, Operation]], object]:
    BREAKS[act.__name__] = act
    return act


PLAIN = ("operations_attempt", "operations_approval")


@contextmanager
def past_every_safeguard() -> Iterator[None]:
    """Without triggers, and without constraints on attempts and approvals; afterwards nothing of it has happened."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            for table in PLAIN:
                cursor.execute(f"ALTER TABLE {table} RENAME TO kept_{table}")
                cursor.execute(f"CREATE TABLE {table} AS SELECT * FROM kept_{table}")  # noqa: S608 - our own names
        with lifted(connection):
            yield
        transaction.set_rollback(True)


@breaks
def sent_again(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["sent twice"], number=1).update(outcome=Outcome.SUCCEEDED)


@breaks
def unsigned(history: dict[str, Operation]) -> None:
    Approval.objects.filter(operation=history["approved"]).delete()


@breaks
def unsigned__but_by_the_maker(history: dict[str, Operation]) -> None:
    Approval.objects.filter(operation=history["succeeded"]).update(approver=history["succeeded"].maker)


@breaks
def unsigned__by_a_second_person(history: dict[str, Operation]) -> None:
    Operation.objects.filter(pk=history["succeeded"].pk).update(approvals_needed=2)


@breaks
def unsigned__under_other_content(history: dict[str, Operation]) -> None:
    Approval.objects.filter(operation=history["succeeded"]).update(digest="0" * 64)


@breaks
def content_changed(history: dict[str, Operation]) -> None:
    changed = {**history["succeeded"].payload, "amount": "250000.01"}
    Operation.objects.filter(pk=history["succeeded"].pk).update(payload=changed)


@breaks
def content_changed__when_it_was_sent(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["succeeded"]).update(digest="0" * 64)


@breaks
def unrecorded_move(history: dict[str, Operation]) -> None:
    Operation.objects.filter(pk=history["pending"].pk).update(
        status=Status.CANCELLED, closed_at=timezone.now()
    )


@breaks
def unrecorded_move__told_twice(history: dict[str, Operation]) -> None:
    audit.record(Action.OPERATION_CANCELLED, actor=None, target=history["cancelled"])


@breaks
def unrecorded_move__sent_without_a_word(history: dict[str, Operation]) -> None:
    attempt = Attempt.objects.get(operation=history["returned"])
    attempt.pk, attempt.number = 10**6, 2
    attempt.save(force_insert=True)


@breaks
def unfounded_end(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["succeeded"]).update(outcome=Outcome.REJECTED)


@breaks
def unfounded_end__that_names_no_transaction(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["succeeded"]).update(service_transaction_id=None)


@breaks
def unfounded_end__of_what_was_never_sent(history: dict[str, Operation]) -> None:
    """What is applied here has no attempt; nothing that moves money gets there without one."""
    Operation.objects.filter(pk=history["approved"].pk).update(
        status=Status.SUCCEEDED, closed_at=timezone.now()
    )
    audit.record(Action.OPERATION_APPLIED, actor=None, target=history["approved"])


@breaks
def broken_log(history: dict[str, Operation]) -> None:
    Entry.objects.filter(position=3).update(address="10.9.9.9")


@breaks
def stale_release(history: dict[str, Operation]) -> None:
    Release.objects.update(expires_at=timezone.now() - timedelta(minutes=5))


@breaks
def stale_release__that_lives_too_long(history: dict[str, Operation]) -> None:
    Release.objects.update(expires_at=timezone.now() + timedelta(minutes=5))


@breaks
def stale_release__of_what_is_closed(history: dict[str, Operation]) -> None:
    Release.objects.update(operation=history["cancelled"])


@breaks
def kept_secret(history: dict[str, Operation]) -> None:
    _keep_secret(history["succeeded"])
    audit.record(Action.SECRET_REVEALED, actor=None, target=history["succeeded"])


@breaks
def kept_secret__in_use(history: dict[str, Operation]) -> None:
    _keep_secret(history["succeeded"])
    GatewayKey.objects.create(
        name="till",
        made_by=history["succeeded"].pk,
        state=GatewayKey.State.IN_USE,
        since=timezone.now(),
        sealed=b"",
    )


def _keep_secret(operation: Operation) -> None:
    Secret.objects.create(operation=operation, belongs_to=operation.maker, kept_at=timezone.now(), sealed=b"")


@breaks
def forgotten(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["unknown"]).update(next_check_at=None)


@breaks
def forgotten__for_long(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["unknown"]).update(
        next_check_at=timezone.now() - timedelta(hours=1)
    )


@breaks
def shared_transaction(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["processing"]).update(service_transaction_id="T-1")


@breaks
def balance_in_doubt_twice(history: dict[str, Operation]) -> None:
    Attempt.objects.filter(operation=history["processing"]).update(service_transaction_id=None)


def test_each_break_turns_exactly_its_rule_red(history: dict[str, Operation]) -> None:
    seen = {}
    for name, act in BREAKS.items():
        with past_every_safeguard():
            act(history)
            seen[name] = red()
    assert seen == {name: {name.partition("__")[0]} for name in BREAKS}
    assert red() == set()


def test_every_rule_has_its_break() -> None:
    assert {name.partition("__")[0] for name in BREAKS} == {rule.name for rule in RULES}


def test_a_violation_names_the_operation(history: dict[str, Operation]) -> None:
    with past_every_safeguard():
        forgotten(history)
        assert inspect(full=False).violations == {
            "forgotten": {"count": 1, "references": [history["unknown"].reference]}
        }


def test_what_a_minute_does_not_look_at_is_looked_at_in_turn(
    history: dict[str, Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspecting, "AT_ONCE", 4)
    monkeypatch.setattr(inspecting, "CLOSED_LATELY", timedelta(0))
    with past_every_safeguard():
        content_changed(history)
        seen = [bool(inspect(full=False).violations) for _ in range(6)]
    assert seen[-1]
    assert seen == sorted(seen), "what is broken is told until it is mended"


def test_what_a_full_inspection_found_is_told_until_it_is_mended(
    history: dict[str, Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect(full=True)
    monkeypatch.setattr(inspecting, "AT_ONCE", 1)
    monkeypatch.setattr(inspecting, "CLOSED_LATELY", timedelta(0))
    with past_every_safeguard():
        content_changed(history)
        broken_log(history)
        assert red() == {"content_changed", "broken_log"}
        assert set(inspect(full=False).violations) == {"content_changed", "broken_log"}
        assert set(inspect(full=False).violations) == {"content_changed", "broken_log"}


def test_the_log_is_verified_from_where_it_was_found_whole(history: dict[str, Operation]) -> None:
    assert inspect(full=False).violations == {}
    verified = Inspection.objects.get().log_position
    assert verified == Entry.objects.count()
    audit_something(history["pending"])
    with past_every_safeguard():
        Entry.objects.filter(position=verified + 1).update(address="10.9.9.9")
        assert set(inspect(full=False).violations) == {"broken_log"}
        assert Inspection.objects.get().log_position == verified
        assert set(inspect(full=False).violations) == {"broken_log"}


def audit_something(operation: Operation) -> None:
    with transaction.atomic():
        audit.record(Action.INCIDENT_RAISED, actor=None, target=operation)


def test_one_turn_a_minute_whoever_asks(db: None) -> None:
    assert [inspect_due() for _ in range(5)] == [1, 0, 0, 0, 0]
    at = Inspection.objects.get().at
    with clock.running_by(lambda: timezone.now() + timedelta(seconds=61)):
        assert [inspect_due() for _ in range(5)] == [1, 0, 0, 0, 0]
    now = Inspection.objects.get().at
    assert at is not None
    assert now is not None
    assert now > at


def test_an_inspection_that_takes_longer_than_a_minute_is_waited_for_and_a_dead_one_is_followed(
    db: None,
) -> None:
    assert inspect_due() == 1
    begun_at = Inspection.objects.get().begun_at
    Inspection.objects.update(at=begun_at - timedelta(minutes=1))  # as if this one had not ended
    for seconds, runs in ((61, 0), (179, 0), (181, 1)):
        with clock.running_by(partial(_stands, begun_at + timedelta(seconds=seconds))):
            assert (seconds, inspect_due()) == (seconds, runs)


def _stands(moment: datetime) -> datetime:
    return moment


def check(*arguments: str) -> tuple[int, str]:
    said = StringIO()
    try:
        call_command("check_invariants", *arguments, stdout=said)
    except SystemExit as end:
        return int(str(end.code)), said.getvalue()
    return 0, said.getvalue()


def test_the_command_prints_one_line_for_each_rule(db: None) -> None:
    status, said = check("--full")
    assert status == 0
    assert said.splitlines()[:-1] == [f"{rule.name}: ok" for rule in RULES]
    assert said.splitlines()[-1].startswith("took ")


def test_the_command_fails_where_a_rule_is_broken(history: dict[str, Operation]) -> None:
    reference = history["unknown"].reference
    with past_every_safeguard():
        forgotten(history)
        status, said = check()
        as_json = check("--json")
    assert status == 1
    assert f"forgotten: 1 violation: {reference}" in said.splitlines()
    assert as_json[0] == 1
    told = json.loads(as_json[1])["violations"]
    assert told == {rule.name: [reference] if rule.name == "forgotten" else [] for rule in RULES}
