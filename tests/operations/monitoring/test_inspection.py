"""What an inspection checks, when it is due, and what the command says of it."""

import json
from datetime import datetime, timedelta
from functools import partial
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from backoffice.audit import log as audit
from backoffice.audit.actions import Action
from backoffice.audit.models import Entry
from backoffice.core import clock
from backoffice.core.leases import acquire_lease
from backoffice.operations.models.monitoring import Inspection
from backoffice.operations.models.operations import Operation
from backoffice.operations.monitoring import inspection
from backoffice.operations.monitoring.inspection import LEASE_DURATION, inspect, inspect_due
from backoffice.operations.monitoring.integrity_checks import INTEGRITY_CHECKS
from tests.operations.monitoring.violations import (
    broken_audit_log,
    content_changed,
    past_every_safeguard,
    unchecked_outcome,
    violated_checks,
)

pytestmark = pytest.mark.django_db(transaction=True)


def test_operations_beyond_one_minutes_batch_are_inspected_in_turn(
    history: dict[str, Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "OPERATIONS_PER_INSPECTION", 4)
    monkeypatch.setattr(inspection, "RECENTLY_CLOSED", timedelta(0))
    with past_every_safeguard():
        content_changed(history)
        seen = [bool(violated_checks(full=False)) for _ in range(6)]
    assert seen[-1]
    assert seen == sorted(seen), "what is broken is reported until it is repaired"


def test_findings_of_a_full_inspection_are_reported_until_repaired(
    history: dict[str, Operation], monkeypatch: pytest.MonkeyPatch
) -> None:
    inspect(full=True)
    monkeypatch.setattr(inspection, "OPERATIONS_PER_INSPECTION", 1)
    monkeypatch.setattr(inspection, "RECENTLY_CLOSED", timedelta(0))
    with past_every_safeguard():
        content_changed(history)
        broken_audit_log(history)
        assert violated_checks() == {"content_changed", "broken_audit_log"}
        assert violated_checks(full=False) == {"content_changed", "broken_audit_log"}
        assert violated_checks(full=False) == {"content_changed", "broken_audit_log"}


def test_the_audit_log_is_verified_from_the_last_checkpoint(history: dict[str, Operation]) -> None:
    assert inspect(full=False).violations == {}
    verified = Inspection.objects.get().log_position
    assert verified == Entry.objects.count()
    audit_something(history["pending"])
    with past_every_safeguard():
        Entry.objects.filter(position=verified + 1).update(address="10.9.9.9")
        assert violated_checks(full=False) == {"broken_audit_log"}
        assert Inspection.objects.get().log_position == verified
        assert violated_checks(full=False) == {"broken_audit_log"}


def audit_something(operation: Operation) -> None:
    with transaction.atomic():
        audit.record(Action.INCIDENT_RAISED, actor=None, target=operation)


def test_an_inspection_runs_at_most_once_a_minute(db: None) -> None:
    assert [inspect_due() for _ in range(5)] == [1, 0, 0, 0, 0]
    at = Inspection.objects.get().at
    with clock.use_clock(lambda: timezone.now() + timedelta(seconds=61)):
        assert [inspect_due() for _ in range(5)] == [1, 0, 0, 0, 0]
    assert Inspection.objects.get().at > at


def test_a_long_inspection_is_awaited_and_a_dead_one_replaced(
    db: None,
) -> None:
    now = timezone.now()
    with clock.use_clock(partial(_as_constant, now)):
        assert acquire_lease("inspection", LEASE_DURATION)  # by a process that does not end it
    for seconds, runs in ((61, 0), (179, 0), (181, 1)):
        with clock.use_clock(partial(_as_constant, now + timedelta(seconds=seconds))):
            assert (seconds, inspect_due()) == (seconds, runs)


def _as_constant(moment: datetime) -> datetime:
    return moment


def check(*arguments: str) -> tuple[int, str]:
    output = StringIO()
    try:
        call_command("check_integrity", *arguments, stdout=output)
    except SystemExit as end:
        return int(str(end.code)), output.getvalue()
    return 0, output.getvalue()


def test_the_command_prints_one_line_for_each_rule(db: None) -> None:
    status, output = check("--full")
    assert status == 0
    assert output.splitlines()[:-1] == [f"{rule.name}: ok" for rule in INTEGRITY_CHECKS]
    assert output.splitlines()[-1].startswith("took ")


def test_the_command_fails_where_a_rule_is_broken(history: dict[str, Operation]) -> None:
    reference = history["unknown"].reference
    with past_every_safeguard():
        unchecked_outcome(history)
        status, output = check()
        as_json = check("--json")
    assert status == 1
    assert f"unchecked_outcome: 1 violation: {reference}" in output.splitlines()
    assert as_json[0] == 1
    violations = json.loads(as_json[1])["violations"]
    assert violations.pop("database_rule_altered")
    assert violations == {
        rule.name: [reference] if rule.name == "unchecked_outcome" else []
        for rule in INTEGRITY_CHECKS
        if rule.name != "database_rule_altered"
    }
