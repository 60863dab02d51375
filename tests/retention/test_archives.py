"""Archives of evidence: signed, complete for their time, and verified without the database."""

import base64
import gzip
import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from pytest_django import DjangoDbBlocker, Settings

from backoffice.accounts.models import User
from backoffice.audit import checkpoints
from backoffice.audit.actions import Action
from backoffice.audit.models import ChainHead, Entry
from backoffice.core import clock
from backoffice.core.storage.files import ARCHIVES, file_store
from backoffice.operations.models.operations import Operation
from backoffice.retention import archives
from backoffice.retention.archive_file import InvalidArchiveError, verify_archive
from tests import factories

pytestmark = pytest.mark.django_db
BEGINNING = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def signing_key(settings: Settings) -> None:
    """A key that signs checkpoints and archives."""
    settings.AUDIT_CHECKPOINT_KEYS = [f"first:{base64.b64encode(os.urandom(32)).decode()}"]


@pytest.fixture
def archive(preparer: User, approver: User) -> Path:
    """An archive with an operation that two people agreed on."""
    factories.approve(factories.prepared(preparer), approver)
    return made()


def made(since: datetime = BEGINNING) -> Path:
    name = archives.archive_evidence(since, clock.now()).name
    return Path(file_store(ARCHIVES).path(name))


def rows(path: Path, table: str) -> list[dict[str, object]]:
    with gzip.open(path) as file:
        lines = [json.loads(line) for line in file]
    return [line["row"] for line in lines if line.get("table") == table]


def rewritten(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> Path:
    with gzip.open(path) as file:
        lines = file.readlines()
    with gzip.open(path, "wb") as file:
        file.writelines(change(lines))
    return path


def test_an_archive_has_the_evidence_and_verifies_without_the_database(
    archive: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    operation = Operation.objects.get()
    keys = checkpoints.public_keys()
    with django_db_blocker.block():
        found = verify_archive(archive, keys)
    assert found.trailer["counts"]["operations_operation"] == 1
    assert found.trailer["counts"]["audit_entry"] == found.trailer["last"]
    [row] = rows(archive, "operations_operation")
    assert (row["id"], row["digest"], row["status"]) == (str(operation.pk), operation.digest, "approved")
    assert len(rows(archive, "operations_approval")) == 1
    assert archive.stat().st_mode & 0o777 == 0o600


def test_archives_hold_no_accounts_with_passwords(archive: Path) -> None:
    assert rows(archive, "accounts_user") == []


def test_archiving_is_recorded_and_deletes_nothing(archive: Path) -> None:
    entry = Entry.objects.get(action=Action.EVIDENCE_ARCHIVED)
    assert entry.target_label == archive.name
    assert Operation.objects.count() == 1
    assert Entry.objects.count() == ChainHead.objects.get().position


def test_an_archive_is_on_the_disk_before_it_gets_its_name(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = dict[int, int]()
    sync = os.fsync

    def watched_sync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        synced[status.st_ino] = status.st_size
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched_sync)
    factories.prepared(preparer)
    status = made().stat()
    assert synced[status.st_ino] == status.st_size > 0


def changed_amount(lines: list[bytes]) -> list[bytes]:
    """Of the operation: no hash of an audit entry covers its row."""
    old, new = b'"status":"approved"', b'"status":"rejected"'
    return [line.replace(old, new) if b'"operations_operation"' in line else line for line in lines]


def without_an_entry(lines: list[bytes]) -> list[bytes]:
    return [lines[0], *lines[2:]]


def changed_entry(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"actor_label":"', b'"actor_label":"X', 1) for line in lines]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_amount, "not those that were signed"),
        (without_an_entry, "Entry 1 is missing"),
        (changed_entry, "Entry 1 was changed"),
        (lambda lines: lines[:-1], "cut off"),
        (lambda lines: [*lines, lines[-1]], "follows the end"),
        (
            lambda lines: [*lines[:-1], lines[-1].replace(b'"last":', b'"last":1')],
            "does not agree|not that of",
        ),
        (lambda _lines: [b"{}\n"], "no archive"),
        (lambda lines: [lines[0], b"[]\n", *lines[1:]], "Line 2 cannot be read"),
    ],
)
def test_a_changed_archive_is_refused(
    archive: Path, change: Callable[[list[bytes]], list[bytes]], message: str
) -> None:
    with pytest.raises(InvalidArchiveError, match=message):
        verify_archive(rewritten(archive, change), checkpoints.public_keys())


def test_a_damaged_file_is_refused(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-20])
    with pytest.raises(InvalidArchiveError, match="damaged"):
        verify_archive(archive, checkpoints.public_keys())


def test_an_archive_of_another_key_is_refused(archive: Path, settings: Settings) -> None:
    settings.AUDIT_CHECKPOINT_KEYS = [f"first:{base64.b64encode(os.urandom(32)).decode()}"]
    with pytest.raises(InvalidArchiveError, match="signature"):
        verify_archive(archive, checkpoints.public_keys())
    with pytest.raises(InvalidArchiveError, match="public key first is not known"):
        verify_archive(archive, {})


def test_the_next_archive_continues_the_one_before(preparer: User) -> None:
    factories.prepared(preparer)
    between = clock.now()
    first = Path(file_store(ARCHIVES).path(archives.archive_evidence(BEGINNING, between).name))
    second, output = made(between), StringIO()
    call_command("verify_archive", str(first), str(second), stdout=output)
    assert output.getvalue().count("intact") == 2
    with pytest.raises(CommandError, match="does not continue"):
        call_command("verify_archive", str(second), str(first))


def test_an_archive_is_compared_with_checkpoints(preparer: User, tmp_path: Path) -> None:
    factories.prepared(preparer)
    head, output, file = ChainHead.objects.get(), StringIO(), tmp_path / "heads"
    file.write_bytes(checkpoints.sign(head.position, head.hash, clock.now()).line + b"\nno checkpoint\n")
    path = made()
    call_command("verify_archive", str(path), against=file, stdout=output)
    assert "1 checkpoints agree" in output.getvalue()
    file.write_bytes(checkpoints.sign(head.position, "0" * 64, clock.now()).line)
    with pytest.raises(CommandError, match="contradicts its checkpoint"):
        call_command("verify_archive", str(path), against=file)
    file.write_bytes(b"no checkpoint\n")
    with pytest.raises(CommandError, match="no checkpoint could be compared"):
        call_command("verify_archive", str(path), against=file)


def test_an_archive_is_compared_with_checkpoints_without_the_signing_key(
    archive: Path, settings: Settings, tmp_path: Path
) -> None:
    entry, file, output = Entry.objects.get(position=1), tmp_path / "heads", StringIO()
    file.write_bytes(checkpoints.sign(entry.position, entry.hash, clock.now()).line)
    [(name, key)] = checkpoints.public_keys().items()
    settings.AUDIT_CHECKPOINT_KEYS = []
    call_command("verify_archive", str(archive), public_key=[f"{name}:{key}"], against=file, stdout=output)
    assert "1 checkpoints agree" in output.getvalue()
    with pytest.raises(CommandError, match="public key first is not known"):
        call_command("verify_archive", str(archive), public_key=[f"other:{key}"], against=file)


def test_every_checkpoint_of_an_entry_is_compared_with_the_archive(archive: Path, tmp_path: Path) -> None:
    entry, file = Entry.objects.get(position=1), tmp_path / "heads"
    signed = [checkpoints.sign(1, hash_, clock.now()).line for hash_ in ("0" * 64, entry.hash)]
    file.write_bytes(b"\n".join(signed))
    with pytest.raises(CommandError, match="entry 1 contradicts its checkpoint"):
        call_command("verify_archive", str(archive), against=file)


def test_a_forged_checkpoint_is_named(archive: Path, tmp_path: Path) -> None:
    entry, file = Entry.objects.get(position=1), tmp_path / "heads"
    good = checkpoints.sign(1, entry.hash, clock.now())
    file.write_bytes(good.line + b"\n" + replace(good, hash="0" * 64).line)
    with pytest.raises(CommandError, match="signature of the checkpoint of entry 1 is invalid"):
        call_command("verify_archive", str(archive), against=file)


def test_a_malformed_public_key_is_refused(archive: Path) -> None:
    with pytest.raises(CommandError, match="'x' is no public key: write ID:BASE64"):
        call_command("verify_archive", str(archive), public_key=["x"])


def test_the_commands_archive_days_and_verify_with_a_public_key(archive: Path, settings: Settings) -> None:
    [(name, key)] = checkpoints.public_keys().items()
    settings.AUDIT_CHECKPOINT_KEYS = []
    output = StringIO()
    call_command("verify_archive", str(archive), public_key=[f"{name}:{key}"], stdout=output)
    assert "intact" in output.getvalue()


@pytest.mark.parametrize(
    ("since", "until", "why"),
    [
        ("2001-01-01", "2001-01-02", "The audit log has no entry in these days"),
        ("2001-01-02", "2001-01-02", "The last day must be after the first one"),
        ("2001-01-01", "2999-01-01", "These days are not over before 2999-01-01"),
        ("2001-13-01", "2001-01-02", "'2001-13-01' is no day: write it as 2026-01-31"),
    ],
)
def test_the_command_says_why_nothing_is_archived(since: str, until: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        call_command("archive_evidence", since, until)


def test_the_command_names_the_file(preparer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.prepared(preparer)
    days, output = (f"{clock.now():%Y-%m-%d}", f"{clock.now() + timedelta(days=1):%Y-%m-%d}"), StringIO()
    monkeypatch.setattr(clock, "now", lambda: timezone.now() + timedelta(days=2))
    call_command("archive_evidence", *days, stdout=output)
    path = Path(output.getvalue().partition(": ")[0])
    assert path.is_file()
    call_command("verify_archive", str(path), stdout=output)


def test_a_time_that_is_not_over_is_not_archived(preparer: User) -> None:
    factories.prepared(preparer)
    with pytest.raises(archives.NothingToArchiveError):
        archives.archive_evidence(BEGINNING, clock.now() + timedelta(hours=1))


def test_an_archive_goes_into_the_bucket(bucket: str, preparer: User, tmp_path: Path) -> None:
    factories.prepared(preparer)
    summary, copy = archives.archive_evidence(BEGINNING, clock.now()), tmp_path / "copy"
    with file_store(ARCHIVES).read(summary.name) as file:
        copy.write_bytes(file.read())
    assert verify_archive(copy, checkpoints.public_keys()).trailer["last"] == summary.last
    file_store(ARCHIVES).delete(summary.name)
