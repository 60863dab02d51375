"""What a destination stores, what it gives back, and how it fails."""

import os
import re
import resource
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from backoffice.audit import destinations
from backoffice.audit.destinations import (
    LARGEST_LINE,
    NEWEST_BYTES,
    DestinationError,
    FileDestination,
    HttpsDestination,
    destination_at,
    problem_sentence,
)
from tests.audit.receivers import HttpReceiver, http_receiver, syslog_receiver, tls_receiver
from tools.rehearsal.certificates import write_certificate

LINE = b'{"position":7}'


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as running:
        yield running


def problem_of(error: pytest.ExceptionInfo[DestinationError]) -> str:
    return problem_sentence(error.value.detail)


def file_destination(path: Path) -> FileDestination:
    found = destination_at(f"file://{path}")
    assert isinstance(found, FileDestination)
    return found


def test_a_file_grows_by_one_line_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    destination = file_destination(tmp_path / "checkpoints.jsonl")
    assert destination.newest_lines() == []
    for number in range(3):
        destination.append(LINE + str(number).encode())
    written = tmp_path / "checkpoints.jsonl"
    assert written.read_bytes() == b'{"position":7}0\n{"position":7}1\n{"position":7}2\n'
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert destination.newest_lines() == written.read_bytes().splitlines()
    assert list(destination.all_lines()) == written.read_bytes().splitlines(keepends=True)


def test_a_line_is_on_the_disk_before_it_counts_as_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
    )
    destination = file_destination(tmp_path / "checkpoints.jsonl")
    destination.append(LINE)
    assert synced == [False, True], "the file, and the folder that names it"
    destination.append(LINE)
    assert synced == [False, True, False]


def test_a_line_cut_short_by_a_full_disk_does_not_swallow_the_next(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.jsonl"
    file.write_bytes(b'{"posi')
    file_destination(file).append(LINE)
    assert file.read_bytes() == b'{"posi\n' + LINE + b"\n"


def test_only_the_end_of_a_long_file_is_read_every_minute(tmp_path: Path) -> None:
    file = tmp_path / "checkpoints.jsonl"
    file.write_bytes((LINE + b"\n") * 10_000)
    newest = file_destination(file).newest_lines()
    assert NEWEST_BYTES / len(LINE) * 0.9 < len(newest) < NEWEST_BYTES / len(LINE)
    assert set(newest) == {LINE}
    file.write_bytes(b"x" * 3 * LARGEST_LINE)
    assert [len(piece) for piece in file_destination(file).all_lines()] == [LARGEST_LINE] * 3


@pytest.mark.parametrize("obstacle", ["no folder", "folder", "link", "pipe"])
def test_a_file_that_cannot_be_used_is_a_problem(tmp_path: Path, obstacle: str) -> None:
    file = tmp_path / "checkpoints.jsonl"
    if obstacle == "no folder":
        file = tmp_path / "not mounted" / "checkpoints.jsonl"
    elif obstacle == "folder":
        file.mkdir()
    elif obstacle == "link":
        file.symlink_to(tmp_path / "elsewhere")
    else:
        os.mkfifo(file)
    with pytest.raises(DestinationError) as refused:
        file_destination(file).append(LINE)
    assert problem_of(refused).startswith("It cannot be written: ")
    assert not (tmp_path / "elsewhere").exists()
    assert not (tmp_path / "not mounted").exists()
    with pytest.raises(DestinationError, match="cannot_read"):
        file_destination(file).newest_lines()


def test_a_line_that_is_written_in_part_is_a_problem(tmp_path: Path) -> None:
    """As on a full disk."""
    destination = file_destination(tmp_path / "checkpoints.jsonl")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5, before[1]))
    try:
        with pytest.raises(DestinationError) as refused:
            destination.append(LINE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert problem_of(refused) == "It cannot be written: only a part was written."
    destination.append(LINE)
    assert destination.newest_lines() == [LINE[:5], LINE]


SYSLOG = re.compile(
    r"<110>1 \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00 \S+ countersign \d+ checkpoint - "
    + re.escape(LINE.decode())
)


def test_syslog_over_udp_gets_one_message_of_rfc_5424() -> None:
    with syslog_receiver(socket.SOCK_DGRAM) as (port, receiver):
        destination = destination_at(f"syslog+udp://127.0.0.1:{port}")
        destination.append(LINE)
        assert SYSLOG.fullmatch(receiver.recv(65_536).decode())
    assert destination.newest_lines() is None
    assert destination.all_lines() is None


def test_syslog_over_tcp_ends_each_message_with_a_line_feed() -> None:
    with syslog_receiver(socket.SOCK_STREAM) as (port, receiver):
        destination_at(f"syslog+tcp://127.0.0.1:{port}").append(LINE)
        connection, _ = receiver.accept()
        with connection, connection.makefile("rb") as stream:
            received = stream.read().decode()
    assert received.endswith("\n")
    assert SYSLOG.fullmatch(received.removesuffix("\n"))


def test_syslog_over_tls_verifies_the_server_and_gets_messages_with_their_length(
    tmp_path: Path, settings: Settings
) -> None:
    certificate, key = write_certificate(tmp_path)
    with tls_receiver(certificate, key) as (port, received):
        destination = destination_at(f"syslog+tls://localhost:{port}")
        with pytest.raises(DestinationError, match="cannot_write"):
            destination.append(LINE)  # its authority is not one of the system
        settings.AUDIT_CHECKPOINT_CA_FILE = str(certificate)
        destination.append(LINE)
        with pytest.raises(DestinationError, match="cannot_write"):
            destination_at(f"syslog+tls://127.0.0.2:{port}").append(
                LINE
            )  # the certificate is of another host
    length, _, message = received[1].decode().partition(" ")
    assert [received[0], received[2]] == [b"", b""]
    assert int(length) == len(message)
    assert SYSLOG.fullmatch(message)
    assert destination.newest_lines() is None
    assert destination.all_lines() is None


def test_syslog_over_a_socket_of_this_machine(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(path))
        receiver.settimeout(10)
        destination_at(f"syslog+unix://{path}").append(LINE)
        assert SYSLOG.fullmatch(receiver.recv(65_536).decode())


@pytest.mark.parametrize("kind", ["tcp", "unix", "name"])
def test_a_syslog_server_that_is_away_is_a_problem(tmp_path: Path, kind: str) -> None:
    with syslog_receiver(socket.SOCK_STREAM) as (port, _):
        pass
    address = {
        "tcp": f"syslog+tcp://127.0.0.1:{port}",
        "unix": f"syslog+unix://{tmp_path}/nothing",
        "name": "syslog+udp://nowhere.invalid:514",
    }[kind]
    with pytest.raises(DestinationError, match="cannot_write"):
        destination_at(address).append(LINE)


def test_an_address_gets_each_line_by_post_and_returns_them(
    receiver: HttpReceiver, settings: Settings
) -> None:
    settings.AUDIT_CHECKPOINT_TOKEN = "a-token"
    destination = destination_at(receiver.url)
    assert destination.newest_lines() == []
    destination.append(LINE)
    assert (receiver.lines, receiver.tokens) == ([LINE], ["Bearer a-token"])
    assert destination.newest_lines() == [LINE]
    assert list(destination.all_lines() or []) == [LINE]


@pytest.mark.parametrize("status", [405, 501])
def test_an_address_that_answers_no_get_cannot_be_read_back(receiver: HttpReceiver, status: int) -> None:
    receiver.get_status = status
    assert destination_at(receiver.url).newest_lines() is None
    assert destination_at(receiver.url).all_lines() is None


@pytest.mark.parametrize("status", [302, 307, 401, 404, 413, 500, 503])
def test_an_address_that_refuses_is_a_problem(receiver: HttpReceiver, status: int) -> None:
    receiver.post_status = receiver.get_status = status
    with pytest.raises(DestinationError) as refused:
        destination_at(receiver.url).append(LINE)
    assert problem_of(refused) == f"It responded to POST with status {status}."
    with pytest.raises(DestinationError) as refused:
        destination_at(receiver.url).newest_lines()
    assert problem_of(refused) == f"It responded to GET with status {status}."


def test_a_redirect_is_not_followed(receiver: HttpReceiver) -> None:
    with http_receiver() as other:
        receiver.post_status, receiver.location = 307, other.url
        with pytest.raises(DestinationError, match="refused"):
            destination_at(receiver.url).append(LINE)
        assert other.tokens == []


def test_an_address_that_is_too_slow_is_a_problem(
    receiver: HttpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(destinations, "TIMEOUT", 0.2)
    receiver.is_slow = True
    with pytest.raises(DestinationError) as refused:
        destination_at(receiver.url).append(LINE)
    assert problem_of(refused) == "It did not respond completely and in time."


@pytest.mark.parametrize(
    "address", ["https://checkpoints.example/x", "syslog+tcp://checkpoints.example:6514"]
)
def test_a_name_server_that_does_not_answer_is_a_problem(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kwargs: answered.wait(30) and [])
    monkeypatch.setattr(destinations, "TIMEOUT", 0.3)
    try:
        with pytest.raises(DestinationError) as refused:
            destination_at(address).append(LINE)
    finally:
        answered.set()
    assert refused.value.detail == {"code": "no_answer"}


def test_an_address_where_nobody_listens_is_a_problem() -> None:
    with syslog_receiver(socket.SOCK_STREAM) as (port, _):
        pass
    with pytest.raises(DestinationError) as refused:
        destination_at(f"http://127.0.0.1:{port}/").append(LINE)
    assert problem_of(refused) == "It cannot be reached."


def test_an_answer_that_is_too_long_is_not_read(receiver: HttpReceiver) -> None:
    receiver.body = b"x" * (destinations.LARGEST_ANSWER + 1)
    with pytest.raises(DestinationError) as refused:
        destination_at(receiver.url).newest_lines()
    assert problem_of(refused) == "It sent back more than 1,000,000 bytes."


def test_plain_http_is_for_this_machine_only() -> None:
    assert destination_at("https://log.example/checkpoints") == HttpsDestination(
        "https://log.example/checkpoints"
    )
    assert destination_at("http://localhost:8080/x") == HttpsDestination("http://localhost:8080/x")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "checkpoints.jsonl",
        "/var/log/checkpoints.jsonl",
        "file://checkpoints.jsonl",
        "file:///var/log/",
        "http://log.example/checkpoints",
        "https:///checkpoints",
        "https://user:secret-of-mine@log.example/",
        "https://log.example/?key=secret-of-mine",
        "https://log.example/#x",
        "syslog+udp://log.example",
        "syslog+tls://log.example",
        "syslog+tls://log.example:6514/path",
        "syslog+udp://log.example:514/path",
        "syslog+udp://log.example:99999",
        "syslog+unix://dev/log",
        "ftp://log.example/",
    ],
)
def test_an_address_that_cannot_be_used_is_refused_without_repeating_it(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="COUNTERSIGN_AUDIT_CHECKPOINT_DESTINATIONS") as refused:
        destination_at(address)
    assert "secret-of-mine" not in str(refused.value)
