"""The two forms of a line, the access log, and the lines of every process in the form of production."""

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.accounts.models import User
from backoffice.core.logs import JsonFormatter
from backoffice.core.web import request_context
from tests import factories

ROOT = Path(__file__).resolve().parents[2]
SECRET = 'ca"nary-7f3a'
logger = logging.getLogger("backoffice.tests")

Lines = Callable[[], str]


@pytest.fixture
def json_lines(
    log_handler: logging.Handler, log_lines: Lines
) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """The lines of the log in the form of production."""
    before = log_handler.formatter
    log_handler.setFormatter(JsonFormatter())
    yield lambda: [json.loads(line) for line in log_lines().splitlines()]
    log_handler.setFormatter(before)


JsonLines = Callable[[], list[dict[str, Any]]]


def test_a_json_line_has_its_context(json_lines: JsonLines) -> None:
    with request_context.call_context(request_id="3f2a", by_request=True):
        request_context.set_user(7)
        with request_context.about_operation("W-7Q2K9F"):
            logger.info("sent in %d ms", 12)
        logger.warning("done")
    first, second = json_lines()
    assert first["time"].endswith("+00:00")
    assert (first["level"], first["logger"], first["message"]) == (
        "INFO",
        "backoffice.tests",
        "sent in 12 ms",
    )
    assert (first["request_id"], first["user_id"], first["operation"]) == ("3f2a", 7, "W-7Q2K9F")
    assert first["pid"] == os.getpid()
    assert first["process"]
    assert "operation" not in second


def test_a_text_line_has_the_same_fields(log_lines: Lines) -> None:
    with request_context.call_context(request_id="3f2a", by_request=True):
        request_context.set_operation("W-7Q2K9F")
        logger.info("sent", extra={"duration_seconds": 0.5, "path": "/a\nb"})
    assert log_lines().endswith('[3f2a] sent operation=W-7Q2K9F path="/a\\nb" duration_seconds=0.5\n')


def test_a_job_names_an_operation_only_while_it_works_on_it(json_lines: JsonLines) -> None:
    with request_context.call_context(request_id="sweep"):
        request_context.set_operation("W-1")
        logger.info("outside")
    assert "operation" not in json_lines()[0]


def test_only_known_attributes_of_a_record_are_written(json_lines: JsonLines) -> None:
    logger.error("refused", extra={"request": "POST /?token=x", "data": {"otp": "1"}, "status": 422})
    assert json_lines()[0]["status"] == 422
    assert not {"request", "data"} & json_lines()[0].keys()


def test_a_secret_is_redacted_in_each_value_and_the_line_remains_json(
    settings: Settings, json_lines: JsonLines, log_lines: Lines
) -> None:
    settings.GATEWAY_API_KEY = SECRET
    try:
        raise ValueError(f'body was {{"token": "{SECRET}", "n": 1}}')
    except ValueError:
        logger.exception('{"otp": "%s", "amount": "1.00"}', SECRET, extra={"path": f"/x/{SECRET}"})
    [line] = json_lines()
    assert line["message"] == '{"otp": •••, "amount": "1.00"}'
    assert line["path"] == "/x/•••"
    assert "ValueError: body was" in line["exception"]
    assert "nary" not in log_lines()


@pytest.mark.django_db
def test_every_request_has_one_line_in_the_access_log(
    client: Client, preparer: User, json_lines: JsonLines
) -> None:
    factories.sign_in(client, preparer)
    answer = client.get("/operations/", {"q": "ADA OBI 0123456789"})
    [line] = [
        one for one in json_lines() if one["logger"] == "countersign.access" and one["path"] == "/operations/"
    ]
    assert (line["method"], line["status"], line["user_id"]) == ("GET", 200, preparer.pk)
    assert line["request_id"] == answer["X-Request-ID"]
    assert line["duration_seconds"] >= 0
    assert line["bytes"] == len(answer.content)
    assert "ADA" not in json.dumps(json_lines())


@pytest.mark.django_db
def test_a_webhook_address_and_a_one_time_link_are_redacted_in_the_access_log(
    client: Client, settings: Settings, log_lines: Lines
) -> None:
    settings.WEBHOOK_SECRET = "canary" * 6
    client.post(f"/hooks/{'canary' * 6}/", b"{}", content_type="application/json")
    client.get("/account/set-up/canary-of-the-link/")
    assert log_lines().count("countersign.access") == 2
    assert "canary" not in log_lines()


@pytest.mark.django_db
def test_a_decision_names_its_operation(client: Client, preparer: User, json_lines: JsonLines) -> None:
    operation = factories.prepared(preparer)
    factories.sign_in(client, preparer)
    client.post(f"{operation.get_absolute_url()}cancel/")
    line = [one for one in json_lines() if one["logger"] == "countersign.access"][-1]
    assert (line["operation"], line["user_id"]) == (operation.reference, preparer.pk)


@pytest.mark.parametrize(
    ("behind_proxy", "given", "is_taken"),
    [
        (True, "0b7c3d6e-1f0a-4c53-9a47-0d3c6a1b2c3d", True),
        (True, "abcdefgh", True),
        (False, "abcdefgh", False),
        (True, "short", False),
        (True, "x" * 37, False),
        (True, "abc defgh", False),
        (True, "abcdefgh\tx", False),
        (True, "ábcdefgh", False),
        (True, "abcdefgh'--", False),
    ],
)
def test_the_id_of_the_trusted_proxy_is_taken_if_it_is_well_formed(
    client: Client, db: None, settings: Settings, behind_proxy: bool, given: str, is_taken: bool
) -> None:
    settings.TRUST_FORWARDED_FOR = behind_proxy
    answer = client.get("/account/sign-in/", headers={"X-Request-ID": given})
    assert (answer["X-Request-ID"] == given) == is_taken


@pytest.mark.stack
def test_every_line_of_every_process_is_json_in_production_form(tmp_path: Path) -> None:
    """Those of gunicorn, Celery, the sweeper and a command that fails included.

    Celery itself prints that it shuts down, and that it runs as root.
    """
    (tmp_path / "static").mkdir()  # as after collectstatic; a web process warns without it
    environment = os.environ | {
        "COUNTERSIGN_DATA_DIR": str(tmp_path),
        "COUNTERSIGN_DATABASE_URL": f"sqlite:///{tmp_path / 'x.sqlite3'}",
        "COUNTERSIGN_LOG_FORMAT": "json",
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
    }

    def start(*arguments: str) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, env=environment, stderr=pipe, stdout=pipe, bufsize=0
        )

    assert b"Traceback" not in start("manage.py", "migrate", "-v0").communicate(timeout=120)[1]
    web = ("-m", "gunicorn", "backoffice.wsgi", "--bind", "127.0.0.1:0")
    worker = ("-m", "celery", "--quiet", "-A", "backoffice.celery", "worker", "--pool", "threads")
    processes = {
        "web": start(*web),
        "worker": start(*worker),
        "sweeper": start("manage.py", "sweep", "--once"),
        "shell": start("manage.py", "shell", "-v0", "-c", "raise ValueError('token=canary')"),
    }
    for name, process in processes.items():
        first = stopped_after_its_first_line(process) if name in {"web", "worker"} else b""
        output, errors = process.communicate(timeout=120)
        lines = (first + errors).splitlines()
        assert {json.loads(line)["process"] for line in lines if line.startswith(b"{")} == {name}
        others = b"\n".join(line for line in lines if not line.startswith(b"{"))
        assert name == "worker" or others == b""
        assert b"Traceback" not in others
        assert name in {"sweeper", "worker"} or output.strip() == b""
        assert b"canary" not in first + errors
        assert b"Control socket" not in first + errors  # gunicorn's, by which workers can be stopped


def stopped_after_its_first_line(process: "subprocess.Popen[bytes]") -> bytes:
    """The first line in JSON, by which it has started."""
    assert process.stderr is not None
    for line in iter(process.stderr.readline, b""):
        if line.startswith(b"{"):
            process.send_signal(signal.SIGTERM)
            return line
    raise AssertionError("it ended without a line")
