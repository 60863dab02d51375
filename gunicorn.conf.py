"""How the web process runs, wherever it is started: gunicorn reads this by itself when it is started in this folder.

An option on the command line, such as `--bind 127.0.0.1:9000 --workers 3`, overrides a value. Limits of time and size
are those of `backoffice/web_server.py`. gunicorn's own lines go to the log of Countersign, and its workers count
requests together and report that they run.
"""

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from django.conf import settings

from backoffice.startup_checks import read_settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")
read_settings()
# Where prometheus_client adds up the counts of all workers; it must be known before it is imported.
if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="countersign-metrics-")

wsgi_app = "backoffice.wsgi"
worker_class = "backoffice.web_server.BufferingWorker"
logger_class = "backoffice.web_server.GunicornLogger"
bind = "127.0.0.1:8000"
workers = 1
threads = 8
timeout = 60  # seconds without a sign of life of a process, which is then replaced
graceful_timeout = 30  # seconds to finish what has begun when the process is asked to stop
control_socket_disable = True  # nothing uses it, and it lies in the home folder

_SET_UP = """
import django
from backoffice.startup_checks import ended_by_refusals
with ended_by_refusals():
    django.setup()
"""


def on_starting(_arbiter: Any) -> None:
    # In a process of its own, because Django is not set up in the arbiter. If only the workers refused a setting, the
    # reason would stand before tracebacks of gunicorn, which ends badly when several fail at once. The sandbox, which
    # has usable defaults, starts without this second of delay.
    if settings.ENVIRONMENT == "sandbox":
        return
    own = {name: value for name, value in os.environ.items() if name != "PROMETHEUS_MULTIPROC_DIR"}
    checked = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", _SET_UP], cwd=Path(__file__).parent, env=own, check=False
    )
    if checked.returncode:
        shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
        sys.exit(checked.returncode)


def post_worker_init(_worker: Any) -> None:
    # Only here, because Django is set up in the workers and not in the arbiter.
    importlib.import_module("backoffice.core.database.time_limits").limit_web_process()
    importlib.import_module("backoffice.core.telemetry.processes").start("web")


def on_exit(_arbiter: Any) -> None:
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
