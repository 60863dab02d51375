"""How the web process runs, wherever it is started: gunicorn reads this by itself when it is started in this folder.

An option on the command line, such as `--bind 127.0.0.1:9000 --workers 3`, overrides a value. Limits of time and size
are those of `backoffice/web_server.py`. gunicorn's own lines go to the log of Countersign, and its workers count
requests together and report that they run.
"""

import importlib
import os
import shutil
import tempfile
from typing import Any

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


def post_worker_init(_worker: Any) -> None:
    # Only here, because Django is set up in the workers and not in the arbiter.
    importlib.import_module("backoffice.core.database.time_limits").limit_web_process()
    importlib.import_module("backoffice.core.telemetry.processes").start("web")


def on_exit(_arbiter: Any) -> None:
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
