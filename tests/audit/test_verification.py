"""Whatever is done to the log behind the program's back, verification names the first broken place."""

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, connection, transaction
from django.test.utils import CaptureQueriesContext

from backoffice.accounts.models import User
from backoffice.audit import verification
from backoffice.audit.actions import Action
from backoffice.audit.checkpoints import verify_log
from backoffice.audit.log import record
from backoffice.audit.models import ChainHead, Entry
from backoffice.audit.verification import VerifiedPosition, verify_chain, verify_since
from backoffice.core.web.formatting import exact_zoned_time
from tests.append_only.triggers import lifted

pytestmark = pytest.mark.django_db


@pytest.fixture
def log(preparer: User, approver: User) -> None:
    """Five entries."""
    for number in range(5):
        record(Action.OPERATION_PREPARED, actor=preparer, target=approver, number=number)


def tamper(number: int, /, **changes: Any) -> None:
    with lifted(connection):
        Entry.objects.filter(position=number).update(**changes)


def test_an_unmodified_log_is_intact(log: None) -> None:
    verdict = verify_chain()

    assert (verdict.is_intact, verdict.verified) == (True, 5)
    assert verdict.newest_hash == Entry.objects.get(position=5).hash


def test_an_empty_log_is_intact() -> None:
    assert str(verify_chain()) == "0 entries verified; their chain is intact"


FORGED: dict[str, tuple[Any, str]] = {
    "position": (99, "entry 3: missing; the next one is entry 4"),
    "at": (datetime(2026, 1, 1, tzinfo=UTC), "content does not match its hash"),
    "actor": (None, "content does not match its hash"),
    "actor_label": ("Somebody else", "content does not match its hash"),
    "address": ("10.9.9.9", "content does not match its hash"),
    "request_id": ("other", "content does not match its hash"),
    "action": ("operation.rejected", "content does not match its hash"),
    "target_type": ("operations.operation", "content does not match its hash"),
    "target_id": ("77", "content does not match its hash"),
    "target_label": ("CS-9", "content does not match its hash"),
    "detail": ({"number": 7}, "content does not match its hash"),
    "version": ("v0", "content does not match its hash"),
    "previous_hash": ("f" * 64, "does not follow the entry before it"),
    "hash": ("f" * 64, "content does not match its hash"),
}


def test_every_column_has_a_tampering_case() -> None:
    assert set(FORGED) == {field.name for field in Entry._meta.concrete_fields}


@pytest.mark.parametrize("column", FORGED)
def test_a_change_of_any_column_is_detected(log: None, column: str) -> None:
    value, problem = FORGED[column]
    tamper(3, **{column: value})

    verdict = verify_chain()

    assert verdict.verified == 2
    assert str(verdict).startswith("entry 3")
    assert str(verdict).endswith(problem)


def test_the_result_names_action_and_time_of_the_broken_entry(log: None) -> None:
    tamper(3, actor_label="Somebody else")

    at = exact_zoned_time(Entry.objects.get(position=3).at)
    assert str(verify_chain()) == f"entry 3 (operation.prepared, {at}): content does not match its hash"


def cut_the_middle() -> None:
    Entry.objects.filter(position=3).delete()


def cut_the_end() -> None:
    Entry.objects.filter(position__gte=4).delete()


def cut_everything() -> None:
    Entry.objects.all().delete()


def swap_two() -> None:
    Entry.objects.filter(position=2).update(position=99)
    Entry.objects.filter(position=3).update(position=2)
    Entry.objects.filter(position=99).update(position=3)


def append_behind_the_head() -> None:
    newest = ChainHead.objects.get().hash
    forged = Entry(position=6, at=datetime(2026, 1, 1, tzinfo=UTC), action="x", previous_hash=newest)
    forged.hash = forged.digest()
    forged.save(force_insert=True)


def replace_the_newest() -> None:
    entry = Entry.objects.get(position=5)
    entry.actor_label = "Somebody else"
    Entry.objects.filter(position=5).update(actor_label=entry.actor_label, hash=entry.digest())


def forge_the_head() -> None:
    ChainHead.objects.update(hash="f" * 64)


def take_the_head() -> None:
    ChainHead.objects.all().delete()


@pytest.mark.parametrize(
    ("damage", "verdict"),
    [
        (cut_the_middle, "entry 3: missing; the next one is entry 4"),
        (cut_the_end, "entry 4: missing; the log was cut off: entry 5 is recorded as the newest"),
        (cut_everything, "entry 1: missing; the log was cut off: entry 5 is recorded as the newest"),
        (append_behind_the_head, "entry 6: later than entry 5, which is recorded as the newest"),
        (replace_the_newest, "entry 5: the record of the newest entry has another hash"),
        (forge_the_head, "entry 5: the record of the newest entry has another hash"),
        (take_the_head, "entry 5: the record of the newest entry is missing"),
    ],
)
def test_damage_to_the_chain_is_detected(log: None, damage: Callable[[], None], verdict: str) -> None:
    with lifted(connection):
        damage()

    assert str(verify_chain()) == verdict


def test_swapped_entries_are_detected(log: None) -> None:
    with lifted(connection):
        swap_two()

    assert str(verify_chain()).endswith("does not follow the entry before it")


@pytest.mark.parametrize("text", ["some day", "2026-13-45 00:00:00"])
def test_an_invalid_time_is_refused_or_detected(log: None, text: str) -> None:
    with lifted(connection), connection.cursor() as cursor:
        forge = partial(cursor.execute, "UPDATE audit_entry SET at = %s WHERE position = 3", [text])
        if connection.vendor == "postgresql":
            with pytest.raises(DataError), transaction.atomic():
                forge()
            return
        forge()

    verdict = verify_chain()

    assert verdict.verified == 2
    assert str(verdict).startswith("entry 3: unreadable")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has no such times")
@pytest.mark.parametrize("text", ["infinity", "0044-03-15 BC"])
def test_a_time_that_python_has_not_is_detected(log: None, text: str) -> None:
    with lifted(connection), connection.cursor() as cursor:
        cursor.execute("UPDATE audit_entry SET at = %s WHERE position = 3", [text])
    assert str(verify_chain()).startswith("entry 3: unreadable")


@pytest.mark.parametrize(
    "text",
    [
        "detail = json_set('{}', '$.number', 9)",
        """detail = '{"number": 9, "number": 2}'""",
        """detail = '{"number": 2, "number": 2}'""",
        "at = replace(at, ' ', 'T')",
        "at = at || '+00:00'",
    ],
)
@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL keeps values and not their texts")
def test_a_text_that_queries_read_otherwise_than_python_is_detected(log: None, text: str) -> None:
    """SQLite takes the first of two equal names, on which integrity checks would rely, and Python the last."""
    with lifted(connection), connection.cursor() as cursor:
        cursor.execute(f"UPDATE audit_entry SET {text} WHERE position = 3")  # noqa: S608
    assert str(verify_chain()).endswith("content does not match its hash")


def test_verification_reads_the_log_in_batches(log: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "CHUNK_SIZE", 2)

    with CaptureQueriesContext(connection) as queries:
        verdict = verify_chain()

    assert verdict.verified == 5
    pages = [query["sql"] for query in queries if "audit_entry" in query["sql"]]
    assert len(pages) == 4
    assert all(page.endswith("LIMIT 2") for page in pages)


def test_verification_is_audited(log: None, auditor: User) -> None:
    verdict = verify_log(actor=auditor)

    entry = Entry.objects.get(position=6)
    assert (entry.action, entry.actor_id) == ("audit.verified", auditor.pk)
    assert entry.detail == {
        "whole": True,
        "verified": 5,
        "newest_hash": verdict.chain.newest_hash,
        "checkpoints": 0,
        "fault": {},
    }
    assert verify_chain().is_intact


def test_damage_is_reported_even_if_the_result_cannot_be_audited(
    log: None, auditor: User, caplog: pytest.LogCaptureFixture
) -> None:
    with lifted(connection):
        take_the_head()

    verdict = verify_log(actor=auditor)

    assert str(verdict) == "entry 5: the record of the newest entry is missing"
    assert "the record of the newest entry is missing" in caplog.text


def test_the_command_prints_the_result_and_the_newest_hash(
    log: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("verify_audit")

    assert capsys.readouterr().out == (
        f"5 entries verified; their chain is intact\nnewest entry 5, hash {Entry.objects.get(position=5).hash}\n"
        "The audit log is intact.\n"
    )


def test_the_command_fails_and_names_the_broken_entry(log: None, capsys: pytest.CaptureFixture[str]) -> None:
    tamper(3, actor_label="Somebody else")

    with pytest.raises(CommandError, match="The audit log is not intact"):
        call_command("verify_audit")

    assert "entry 3 (operation.prepared" in capsys.readouterr().err


def test_verification_from_a_checkpoint_reads_only_later_entries(log: None) -> None:
    third = Entry.objects.get(position=3)
    tamper(2, address="10.9.9.9")
    verdict = verify_since(VerifiedPosition(3, third.hash), at_most=100)
    assert (verdict.is_intact, verdict.verified) == (True, 5)
    tamper(4, address="10.9.9.9")
    verdict = verify_since(VerifiedPosition(3, third.hash), at_most=100)
    assert (verdict.is_intact, verdict.verified) == (False, 3)


def test_a_missing_checkpoint_is_reported(log: None) -> None:
    mark = VerifiedPosition(3, Entry.objects.get(position=3).hash)
    tamper(3, hash="f" * 64)
    verdict = verify_since(mark, at_most=100)
    assert str(verdict) == "entry 3: missing, or its hash differs from the one verified earlier"
    assert (verdict.verified, verdict.newest_hash) == (mark.position, mark.hash)


def test_verification_from_a_checkpoint_is_limited_per_run(log: None) -> None:
    mark, verified = VerifiedPosition(), []
    for _ in range(3):
        verdict = verify_since(mark, at_most=2)
        assert verdict.is_intact
        mark = VerifiedPosition(verdict.verified, verdict.newest_hash)
        verified.append(verdict.verified)
    assert verified == [2, 4, 5]


def test_a_log_truncated_after_the_checkpoint_is_detected(log: None) -> None:
    mark = VerifiedPosition(3, Entry.objects.get(position=3).hash)
    with lifted(connection):
        Entry.objects.filter(position=5).delete()
    assert str(verify_since(mark, at_most=100)).startswith("entry 5: missing; the log was cut off")
