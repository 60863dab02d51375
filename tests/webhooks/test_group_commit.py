"""Several threads share a commit, and each gets its own result or its own error."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from django.db import IntegrityError, InterfaceError

from backoffice.webhooks.storing import GroupCommit
from tests.sandbox.webhook_receiver import eventually

PATIENCE = 30  # seconds


@dataclass
class Disk:
    """Stores texts, and pauses at "slow" until `go_on`. It refuses a group with "bad" in it, and loses the connection
    the first time that there is "lost" in it.
    """

    go_on: threading.Event = field(default_factory=threading.Event)
    has_paused: threading.Event = field(default_factory=threading.Event)
    groups: list[list[str]] = field(default_factory=list)

    def write(self, texts: Sequence[str]) -> list[str]:
        self.groups.append(list(texts))
        if "slow" in texts:
            self.has_paused.set()
            assert self.go_on.wait(PATIENCE)
        if "bad" in texts:
            raise IntegrityError("bad")
        if "lost" in texts and sum("lost" in group for group in self.groups) == 1:
            raise InterfaceError("connection already closed")
        if "defect" in texts:
            raise ZeroDivisionError
        return [f"{text} stored" for text in texts]


@contextmanager
def queued(
    disk: Disk, texts: Sequence[str], *, limit: int = 10, writers: int = 1
) -> Iterator[list[Future[str]]]:
    """These texts wait in the queue, behind the ones that are being written, until the block begins."""
    commit = GroupCommit[str, str](disk.write, key=lambda text: text[:4], limit=limit, writers=writers)
    with ThreadPoolExecutor(20) as threads:
        first = [threads.submit(commit.store, "slow")]
        assert disk.has_paused.wait(PATIENCE)
        waiting = []
        for text in texts:
            waiting.append(threads.submit(commit.store, text))
            eventually(_is_queued(commit, len(waiting)))
        disk.go_on.set()
        yield first + waiting


def _is_queued(commit: GroupCommit[str, str], count: int) -> Callable[[], bool]:
    return lambda: commit.queue_length == count


def test_one_item_is_written_at_once() -> None:
    disk = Disk()
    commit = GroupCommit[str, str](disk.write, key=str, limit=10, writers=1)
    assert [commit.store("a"), commit.store("b")] == ["a stored", "b stored"]
    assert disk.groups == [["a"], ["b"]]


def test_what_waits_is_written_together_and_each_gets_its_own_result() -> None:
    disk = Disk()
    with queued(disk, ["a", "b", "c"]) as futures:
        results = [future.result(PATIENCE) for future in futures]
    assert results == ["slow stored", "a stored", "b stored", "c stored"]
    assert disk.groups == [["slow"], ["a", "b", "c"]]


def test_a_group_has_one_item_of_each_key_and_no_more_than_the_limit() -> None:
    disk = Disk()
    with queued(disk, ["same1", "same2", "a", "b", "c"], limit=3) as futures:
        results = {future.result(PATIENCE) for future in futures}
    assert len(results) == 6
    assert disk.groups == [["slow"], ["same1", "a", "b"], ["same2", "c"]]


def test_one_that_fails_does_not_fail_the_others_of_its_group() -> None:
    disk = Disk()
    with queued(disk, ["a", "bad", "c"]) as [_slow, a, bad, c]:
        assert [a.result(PATIENCE), c.result(PATIENCE)] == ["a stored", "c stored"]
        with pytest.raises(IntegrityError):
            bad.result(PATIENCE)
    assert disk.groups[:2] == [["slow"], ["a", "bad", "c"]]
    assert sorted(disk.groups[2:]) == [["a"], ["bad"], ["c"]]


def test_a_lost_connection_fails_no_item_of_the_group() -> None:
    disk = Disk()
    with queued(disk, ["lost", "b"]) as [_slow, lost, b]:
        assert [lost.result(PATIENCE), b.result(PATIENCE)] == ["lost stored", "b stored"]
    assert sorted(disk.groups[2:]) == [["b"], ["lost"]]


def test_a_defect_leaves_nobody_waiting_and_the_next_is_written() -> None:
    disk = Disk()
    with queued(disk, ["defect", "b"]) as [_slow, defect, b]:
        with pytest.raises(ZeroDivisionError):
            defect.result(PATIENCE)
        assert b.result(PATIENCE) == "b stored"


def test_a_second_writer_does_not_wait_for_the_first() -> None:
    disk = Disk()
    commit = GroupCommit[str, str](disk.write, key=str, limit=10, writers=2)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(commit.store, "slow")
        assert disk.has_paused.wait(PATIENCE)
        assert commit.store("a") == "a stored"
        assert commit.store("b") == "b stored"
        disk.go_on.set()
        assert slow.result(PATIENCE) == "slow stored"
