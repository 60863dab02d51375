"""Which journals are compared and how often; journals that cannot be written, read or found; what was lost."""

import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.audit.models import Entry
from backoffice.operations import errors
from backoffice.operations.delivery import journal, release, restore_check, send
from backoffice.operations.delivery.record import complete_result, record_result
from backoffice.operations.jobs import expire_due
from backoffice.operations.models.monitoring import Incident, LostAttempt, is_paused
from backoffice.operations.models.operations import Attempt, Operation, Release
from backoffice.operations.models.reason_codes import Blocker
from backoffice.operations.states import Outcome, Status
from backoffice.operations.workflow.approvals import cancel_operation, reject_operation
from tests import factories
from tests.backups import backup
from tests.operations.delivery.test_late_senders import NAMED, begun, claimed
from tests.operations.provider_list import NAMELESS, shows
from tests.operations.steps import put, show, status_of, text_of
from tests.stub_provider import StubProvider

pytestmark = pytest.mark.django_db(transaction=True)
SignIn = Callable[[Client, User], Client]


@pytest.fixture
def lost(provider: StubProvider, preparer: User, approver: User) -> Operation:
    """A withdrawal that was sent, in a database that was restored to when it was released."""
    return lose(
        provider, preparer, approver, factories.release(factories.approved(preparer, approver), approver)
    )


def lose(provider: StubProvider, preparer: User, approver: User, operation: Operation) -> Operation:
    """Send it, and restore the database to before; a pending one is approved and released first."""
    shows(provider)
    provider.answer_post = lambda: NAMELESS
    before = backup()
    if status_of(operation) == Status.PENDING:
        factories.release(factories.approve(operation, approver), approver)
    send.send_operation(operation.pk)
    assert len(provider.posts) == 1
    before.restore()
    return operation


def renamed(name: str) -> Path:
    """This machine's journal under another name."""
    return journal.own_path().rename(journal.own_path().with_name(name))


def without(path: Path, member: str) -> None:
    path.write_text(re.sub(rf'"{member}":("[^"]*"|\d+),', "", path.read_text()))


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


@pytest.mark.parametrize("is_of_an_earlier_release", [False, True])
def test_a_database_restored_under_another_name_is_found(
    provider: StubProvider, lost: Operation, is_of_an_earlier_release: bool
) -> None:
    path = renamed("worker-1--former_name.jsonl")
    if is_of_an_earlier_release:
        without(path, "origin")
    send.send_operation(lost.pk)
    assert (len(provider.posts), is_paused()) == (1, True)
    assert Incident.objects.get().evidence["machine"] == "worker-1"


def test_it_is_found_although_the_journal_began_after_the_backup(
    provider: StubProvider, lost: Operation
) -> None:
    """None of its entries is in the log any more."""
    path = renamed("worker-1--former_name.jsonl")
    path.write_text(re.sub(r'"hash":"\w+"', '"hash":"lost"', path.read_text()))
    send.send_operation(lost.pk)
    assert (len(provider.posts), is_paused()) == (1, True)


def test_the_journal_of_another_installation_is_ignored(
    provider: StubProvider, lost: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = renamed("worker-1--their_name.jsonl")
    theirs = re.sub(r'"(hash|origin)":"\w+"', r'"\1":"theirs"', path.read_text())
    path.write_text(theirs)
    (path.parent / "not-a-journal.jsonl").write_text('{"line": 7}\n[]\n{"line":"claimed"}\n')
    assert restore_check.compare_with_journals() == 0
    read: list[Path] = []
    reads = journal.read

    def noted(path: Path, *position: int) -> object:
        read.append(path)
        return reads(path, *position)

    monkeypatch.setattr(journal, "read", noted)
    restore_check.compare_with_journals()
    assert path not in read  # again only once it has grown
    without(path, "origin")
    restore_check.forget_positions()
    assert restore_check.compare_with_journals() == 0
    assert not is_paused()


def test_a_process_compares_the_newest_entry_that_it_saw(preparer: User, approver: User) -> None:
    """Another machine wrote it, and no journal here has it yet."""
    restore_check.compare_with_journals()
    before = backup()
    factories.approved(preparer, approver)
    newest = Entry.objects.latest("position").position
    restore_check.compare_with_journals()
    assert f'"position":{newest}' not in journal.own_path().read_text()
    seen = restore_check._memory.seen
    before.restore(while_running=True)
    assert restore_check.compare_with_journals() == 1
    assert is_paused()
    assert Incident.objects.get().evidence["log_position"] == newest
    restore_check._memory.seen = seen  # as another process, which has not compared since
    assert restore_check.compare_with_journals() == 0
    assert Incident.objects.count() == 1


def test_the_newest_lines_are_compared_without_what_the_process_saw(lost: Operation) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(restore_check, "_lost", lambda _lines: [])
        patched.setattr(restore_check, "_missing_entry", lambda _lines: None)
        restore_check.compare_with_journals()  # has read all lines, as if nothing was missing
    assert not is_paused()
    restore_check._memory.seen = None
    restore_check.compare_with_journals()
    assert is_paused()


def test_the_newest_entry_is_written_every_few_seconds(
    preparer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore_check.compare_with_journals()
    factories.prepared(preparer)
    restore_check.compare_with_journals()
    size = journal.own_path().stat().st_size
    monkeypatch.setattr(restore_check, "DATABASE_LINE_EVERY", timedelta(0))
    restore_check.compare_with_journals()
    restore_check.compare_with_journals()
    grown = journal.own_path().read_bytes()[size:].splitlines()
    assert [json.loads(line)["position"] for line in grown] == [Entry.objects.latest("position").position]


def test_a_response_is_not_recorded_for_an_attempt_that_was_given_the_same_id(
    provider: StubProvider, released: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    sent = begun(released)
    sent.started_at -= timedelta(minutes=1)  # it was lost, and another one was claimed and begun since
    sent.begun_at = sent.started_at
    rejected = replace(NAMED, status=Status.APPROVED, outcome=Outcome.NOT_SENT, transaction_id=None)
    record_result(sent, rejected)
    complete_result(sent, {"fee": "1"})
    assert (status_of(released), Attempt.objects.get().outcome) == (Status.SENDING, Outcome.OPEN)
    assert "is not recorded" in messages(caplog, logging.ERROR)[0]


def test_a_request_does_not_begin_for_an_attempt_that_was_given_the_same_id(
    provider: StubProvider, released: Operation
) -> None:
    claimed_before = claimed(released).attempt
    claimed_before.started_at -= timedelta(minutes=1)
    assert not send.begin_request(claimed_before)


def test_another_attempt_with_the_same_number_hides_nothing(lost: Operation, approver: User) -> None:
    now = timezone.now()
    values = {"closed_at": now, "outcome": Outcome.NOT_SENT, "begun_at": now}
    factories.attempt(lost, number=1, released_by=approver, **values)
    restore_check.compare_with_journals()
    assert LostAttempt.objects.get().number == 1


@pytest.mark.parametrize("end", ["cancel", "reject", "expire"])
def test_what_may_have_been_executed_does_not_end_as_unsent(
    provider: StubProvider, preparer: User, approver: User, end: str
) -> None:
    operation = lose(provider, preparer, approver, factories.prepared(preparer))
    if end == "expire":
        factories.expire(operation)
        expire_due()  # compares by itself first
    else:
        restore_check.compare_with_journals()
        ways: dict[str, Callable[[], object]] = {
            "cancel": lambda: cancel_operation(operation.pk, actor=preparer),
            "reject": lambda: reject_operation(
                operation.pk,
                actor=approver,
                digest=operation.digest,
                reason="Not needed",
                second_factor_at=timezone.now(),
            ),
        }
        with pytest.raises(errors.MaybeExecutedError, match="cannot be rejected or cancelled"):
            ways[end]()
    assert (status_of(operation), is_paused()) == (Status.PENDING, True)
    factories.approve(operation, approver)  # also after its expiry: it is not sent, but looked for
    restore_check.compare_with_journals()
    assert (status_of(operation), len(provider.posts)) == (Status.UNKNOWN, 1)


def test_an_operation_prepared_anew_under_the_same_id_may_be_cancelled(
    provider: StubProvider, preparer: User, approver: User
) -> None:
    operation = lose(provider, preparer, approver, factories.prepared(preparer))
    path = journal.own_path()
    path.write_text(path.read_text().replace(operation.reference, "W-FORMER"))
    restore_check.compare_with_journals()
    assert LostAttempt.objects.get().operation_id == operation.pk
    cancel_operation(operation.pk, actor=preparer)
    assert status_of(operation) == Status.CANCELLED


def test_a_new_journal_is_logged_once_and_begins_with_the_database(
    provider: StubProvider, released: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    attempt = Attempt(pk=7, operation=released, begun_at=timezone.now(), started_at=timezone.now())
    journal.write_answered(attempt, Outcome.SUCCEEDED, "T-1")
    assert not journal.own_path().exists()
    restore_check.compare_with_journals()
    send.send_operation(released.pk)
    assert sum("is new" in text for text in messages(caplog, logging.WARNING)) == 1
    assert journal.first_line(journal.own_path())["line"] == "database"


@pytest.mark.parametrize("is_replaced", [False, True])
def test_nothing_is_sent_once_the_own_journal_is_gone(
    provider: StubProvider, released: Operation, caplog: pytest.LogCaptureFixture, is_replaced: bool
) -> None:
    restore_check.compare_with_journals()  # writes it
    restore_check.compare_with_journals()  # reads it
    kept = journal.own_path().rename(journal.own_path().with_suffix(".kept"))
    if is_replaced:
        journal.write_database(journal.database_line())
    send.send_operation(released.pk)
    restore_check.compare_with_journals()
    assert (provider.posts, Release.objects.get().blocker) == ([], Blocker.JOURNAL_GONE)
    assert sum("was deleted or replaced" in text for text in messages(caplog, logging.CRITICAL)) == 1
    kept.rename(journal.own_path())
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


def test_the_missing_journal_of_another_machine_is_logged(
    lost: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    path = renamed("worker-2--former_name.jsonl")
    restore_check.compare_with_journals()
    restore_check.compare_with_journals()
    path.unlink()
    assert restore_check.compare_with_journals() == restore_check.compare_with_journals() == 0
    assert sum("worker-2" in text and "deleted" in text for text in messages(caplog, logging.CRITICAL)) == 1


@pytest.mark.parametrize("is_full", [True, False])
def test_a_journal_that_cannot_be_written_uses_up_no_release(
    provider: StubProvider,
    released: Operation,
    approver: User,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_full: bool,
) -> None:
    if is_full:
        monkeypatch.setattr(journal, "FREE_BYTES", 2**62)
    else:
        restore_check.compare_with_journals()
        kept = journal.own_path().rename(journal.own_path().with_suffix(".kept"))
        journal.own_path().symlink_to(kept)  # refused when it is written, not when it is read
    send.send_operation(released.pk)
    found = Release.objects.get()
    assert (found.blocker, bytes(found.encrypted_otp or b"") != b"") == (Blocker.JOURNAL_UNWRITABLE, True)
    assert (provider.posts, Attempt.objects.exists()) == ([], False)
    reason = "the disk is full." if is_full else ""
    sentence = f"The journal of sent requests cannot be written: {reason}"
    assert sentence in text_of(show(sign_in(Client(), approver), released))
    assert any(sentence in text for text in messages(caplog, logging.WARNING))


def test_nothing_is_sent_if_the_line_cannot_be_written(
    provider: StubProvider, released: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_attempt: Attempt, _database: object) -> None:
        raise journal.JournalError(Blocker.JOURNAL_UNWRITABLE, error="No space left on device")

    monkeypatch.setattr(journal, "write_claimed", refuse)
    send.send_operation(released.pk)
    assert (provider.posts, status_of(released)) == ([], Status.APPROVED)
    assert Attempt.objects.get().outcome == Outcome.NOT_SENT


@pytest.fixture
def unreadable(settings: Settings) -> Iterator[Path]:
    path: Path = settings.JOURNAL_DIR / "worker-3--former_name.jsonl"
    path.mkdir()
    yield path
    path.rmdir()


def test_nothing_is_sent_while_a_journal_cannot_be_read(
    provider: StubProvider,
    released: Operation,
    unreadable: Path,
    auditor: User,
    sign_in: SignIn,
    caplog: pytest.LogCaptureFixture,
) -> None:
    restore_check.compare_with_journals()
    restore_check.compare_with_journals()
    send.send_operation(released.pk)
    found = Release.objects.get()
    assert (provider.posts, found.blocker) == ([], Blocker.JOURNAL_UNREADABLE)
    assert (
        found.blocker_sentence
        == f"The journal of sent requests {unreadable.name} cannot be read: it is not a regular file."
    )
    assert messages(caplog, logging.CRITICAL) == [found.blocker_sentence]
    with translation.override("fr"):
        assert "ce n\N{RIGHT SINGLE QUOTATION MARK}est pas un fichier ordinaire." in found.blocker_sentence
    assert "A file in the folder of this journal cannot be read" in text_of(
        sign_in(Client(), auditor).get("/settings/system/")
    )


@pytest.mark.parametrize(
    "content",
    [
        '{"line":"database","position":[1],"hash":"x"}',
        '{"line":"database","position":"abc","hash":"x"}',
        '{"line":"database","position":99999999999999999999,"hash":"x"}',
        '{"line":"database","position":1,"hash":["x"]}',
        '{"line":"claimed","operation":"abc","begun_at":"x","started_at":"y","position":1,"hash":"z"}',
        '{"line":"claimed","operation":7,"begun_at":7,"started_at":7}',
        "[" * 100_000,
        "\x00\xff\xfe",
    ],
)
def test_the_file_of_another_program_stops_nothing(
    provider: StubProvider, released: Operation, content: str
) -> None:
    shows(provider)
    journal.own_path().with_name("other.jsonl").write_text(f"{content}\n")
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


def test_the_lock_of_an_editor_stops_nothing(provider: StubProvider, released: Operation) -> None:
    shows(provider)
    journal.own_path().with_name(f".#{journal.own_path().name}").symlink_to("someone@machine.7")
    send.send_operation(released.pk)
    assert len(provider.posts) == 1


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("nowhere", path)], ids=["pipe", "link"])
def test_what_is_no_file_is_named_and_not_opened(
    provider: StubProvider, released: Operation, make: Callable[[Path], None]
) -> None:
    shows(provider)
    make(journal.own_path().with_name("other.jsonl"))
    send.send_operation(released.pk)
    assert provider.posts == []
    assert "other.jsonl cannot be read" in Release.objects.get().blocker_sentence


def test_the_other_journals_are_compared_while_one_cannot_be_read(lost: Operation, unreadable: Path) -> None:
    restore_check.compare_with_journals()
    assert is_paused()


def test_a_folder_without_access_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert journal.folder_problem() == journal.FolderProblem.NOT_ACCESSIBLE


@pytest.mark.parametrize("problem", journal.FolderProblem)
def test_at_the_shell_the_operator_reads_what_to_do(
    problem: journal.FolderProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The texts of the pages refer their readers to the operator."""
    monkeypatch.setattr(journal, "folder_problem", lambda: problem)
    [warning] = journal.check_folder()
    assert str(journal.own_path().parent) in warning.msg
    assert "Ask the operator" in problem.label
    assert "operator" not in f"{warning.msg} {warning.hint}"
    assert "{" not in f"{warning.hint}"


def test_all_journals_of_a_finding_are_one_incident(lost: Operation) -> None:
    own = journal.own_path()
    for number in range(20):
        text = own.read_text().replace('"id":"', f'"id":"{number}')
        own.with_name(own.name.replace("--", f"-{number}--", 1)).write_text(text)
    restore_check.compare_with_journals()
    evidence = Incident.objects.get().evidence
    assert len(evidence["journals"]) == 21
    restore_check.forget_positions()
    assert restore_check.compare_with_journals() <= 1  # made again, not found again
    assert Incident.objects.count() == LostAttempt.objects.count() == 1


def queries_of_a_comparison() -> int:
    restore_check.check_database()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        restore_check.check_database()
    return len(queries)


def test_unchanged_journals_cost_no_query_each(provider: StubProvider, released: Operation) -> None:
    send.send_operation(released.pk)
    one, own = queries_of_a_comparison(), journal.own_path()
    for number in range(30):
        own.with_name(own.name.replace("--", f"-{number}--", 1)).write_bytes(own.read_bytes())
    assert queries_of_a_comparison() == one <= 6


def test_a_release_that_read_the_pause_too_early_is_refused(
    preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = factories.approved(preparer, approver)
    answers = iter([False, True])  # the finding is committed in between
    monkeypatch.setattr(release, "is_paused", lambda: next(answers))
    with pytest.raises(errors.PaymentsPausedError):
        factories.release(operation, approver)
    assert not Release.objects.exists()


def test_a_release_that_was_committed_with_the_finding_is_withdrawn(
    lost: Operation, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore_check.compare_with_journals()
    monkeypatch.setattr(release, "is_paused", lambda: False)
    factories.release(factories.approved(preparer, approver, amount=Decimal(70)), approver)
    restore_check.compare_with_journals()
    assert not Release.objects.exists()


def test_those_that_must_wait_do_not_keep_the_others_waiting(
    provider: StubProvider, lost: Operation, preparer: User, approver: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = put(factories.approved(preparer, approver), Status.SENDING, Status.UNKNOWN)
    factories.attempt(other, balance="NGN")
    restore_check.compare_with_journals()
    waiting = LostAttempt.objects.get()
    further = factories.approved(preparer, approver, amount=Decimal(70))
    line = {**waiting.line, "reference": further.reference, "balance": None}
    LostAttempt.objects.create(
        incident=waiting.incident, operation=further, number=1, started_at=timezone.now(), line=line
    )
    monkeypatch.setattr(restore_check, "BATCH_SIZE", 1)
    restore_check.forget_positions()
    for _ in range(2):
        restore_check.compare_with_journals()
    assert (status_of(lost), status_of(further)) == (Status.APPROVED, Status.UNKNOWN)


def test_a_journal_has_no_digest_of_the_recipient(provider: StubProvider, released: Operation) -> None:
    send.send_operation(released.pk)
    assert released.digest not in journal.own_path().read_text()
