"""A setting that is refused ends every process with one line that names it, and no traceback."""

import os
import subprocess
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from backoffice.startup_checks import ended_by_refusals
from tests.core.environments import PRODUCTION
from tools.processes import free_port, run_python

UNKNOWN = {"COUNTERSIGN_ENVIRONMENT": "live"}
UNKNOWN_SAYS = "COUNTERSIGN_ENVIRONMENT is not known: set sandbox, rehearsal, staging or production\n"
SHORT_KEY = {"COUNTERSIGN_ENCRYPTION_KEYS": "2027:abc"}
SHORT_KEY_SAYS = "COUNTERSIGN_ENCRYPTION_KEYS: each key is `id:` and 32 bytes in base64\n"
COMMAND = ("manage.py", "check")
WORKER = ("-m", "celery", "--quiet", "-A", "backoffice.celery", "worker")


def started(*arguments: str, **own: str) -> "subprocess.CompletedProcess[str]":
    Path(os.environ["COUNTERSIGN_DATA_DIR"]).chmod(0o700)
    environment = {"COUNTERSIGN_DATA_DIR": os.environ["COUNTERSIGN_DATA_DIR"], **own}
    return run_python(*arguments, own=environment, timeout=60)


@pytest.mark.parametrize(
    ("process", "environment", "says"),
    [
        (COMMAND, UNKNOWN, UNKNOWN_SAYS),
        (COMMAND, SHORT_KEY, SHORT_KEY_SAYS),
        (COMMAND, {**PRODUCTION, **SHORT_KEY}, SHORT_KEY_SAYS),
        (WORKER, UNKNOWN, UNKNOWN_SAYS),
        (WORKER, SHORT_KEY, SHORT_KEY_SAYS),
    ],
    ids=["command", "command, keys", "command, keys in production", "worker", "worker, keys"],
)
def test_a_process_writes_nothing_but_the_sentence(
    process: tuple[str, ...], environment: dict[str, str], says: str
) -> None:
    refused = started(*process, **environment)
    assert refused.stdout == ""
    assert refused.stderr == says
    assert refused.returncode == 1


def test_a_missing_file_of_variables_is_one_line_as_well(tmp_path: Path) -> None:
    refused = started("manage.py", "verify_audit", COUNTERSIGN_ENV_FILE=str(tmp_path / "missing"))
    assert refused.stderr == f"COUNTERSIGN_ENV_FILE names {tmp_path / 'missing'}, which does not exist\n"
    assert refused.returncode == 1


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [("PROFILE", "foo", "COUNTERSIGN_GATEWAY_PROFILE, foo"), ("CA_FILE", "/missing", "ca_file must name")],
)
def test_a_setting_of_the_provider_is_refused_in_one_line(name: str, value: str, says: str) -> None:
    refused = started(*COMMAND, **PRODUCTION, **{f"COUNTERSIGN_GATEWAY_{name}": value})
    [line] = refused.stderr.splitlines()
    assert line.startswith(f"A setting COUNTERSIGN_GATEWAY_… cannot be used: {says}")


@pytest.mark.parametrize(
    ("environment", "says"), [(UNKNOWN, UNKNOWN_SAYS), ({**PRODUCTION, **SHORT_KEY}, SHORT_KEY_SAYS)]
)
def test_the_web_process_names_a_setting_in_its_last_line(environment: dict[str, str], says: str) -> None:
    """Also with several workers, which gunicorn ends with tracebacks of its own if two of them cannot start."""
    web = ("-m", "gunicorn", "--bind", f"127.0.0.1:{free_port()}", "--workers", "3")
    refused = started(*web, **environment)
    assert refused.stderr.endswith(says)
    assert "Traceback" not in refused.stderr
    assert refused.returncode == 1


def test_an_error_of_the_program_keeps_its_traceback() -> None:
    with pytest.raises(ImproperlyConfigured), ended_by_refusals():
        raise ImproperlyConfigured("SOME_SETTING of a library")
