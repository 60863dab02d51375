"""The log of a real worker: it says why, and no secret."""

import subprocess
import sys
from pathlib import Path

import pytest
from celery import Celery

from backoffice.celery import broker_options
from tests.sandbox_process import ROOT
from tests.tools.test_brokers import wait_until
from tools.processes import clean_environment, run_python

pytestmark = pytest.mark.stack
BROKER = "filesystem://localhost//"
CELERY = [sys.executable, "-m", "celery", "-A", "backoffice.celery"]

SAY_IT_EVERYWHERE = """
import django
django.setup()
from backoffice.celery import app
app.log.setup(loglevel="INFO", redirect_stdouts=True)
import logging
from celery.utils.log import get_logger, get_task_logger
for logger in (get_task_logger("ours"), get_logger("celery.worker"), logging.getLogger("multiprocessing")):
    logger.error("it was token=canary-7f3a")
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A deployment of its own, in a folder."""
    return clean_environment({"COUNTERSIGN_DATA_DIR": str(tmp_path)})


def test_worker_errors_are_logged_with_a_traceback_and_without_secrets(
    environment: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "worker.log"
    with Celery(broker=BROKER) as broker_client:
        broker_client.conf.broker_transport_options = broker_options(BROKER, tmp_path)
        broker_client.send_task("operations.send", args=["no id"])
        broker_client.send_task("operations.unknown", kwargs={"token": "canary-7f3a"})
    with log.open("wb") as output:
        worker = subprocess.Popen(
            [*CELERY, "worker", "--pool", "solo"], cwd=ROOT, env=environment, stdout=output, stderr=output
        )
    try:
        wait_until(lambda: all(sign in log.read_text() for sign in ("raised unexpected", "KeyError")))
    finally:
        worker.kill()
        worker.wait()
    lines = log.read_text()
    assert "ValueError: badly formed hexadecimal UUID string" in lines
    assert "'token': •••" in lines
    assert "canary" not in lines


def test_celery_loggers_use_the_redacting_handler(tmp_path: Path) -> None:
    result = run_python("-c", SAY_IT_EVERYWHERE, own={"COUNTERSIGN_DATA_DIR": str(tmp_path)})
    assert result.stderr.count("it was token=•••") == 3
    assert "canary" not in result.stdout + result.stderr
