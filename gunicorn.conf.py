"""What gunicorn reads by itself when it is started in this folder: its own lines go to the log of Countersign, and
its workers count requests together and report that they run.
"""

import importlib
import os
import shutil
import tempfile
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")
# Where prometheus_client adds up the counts of all workers; it must be known before it is imported.
if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="countersign-metrics-")

logger_class = "backoffice.core.telemetry.web_process.GunicornLogger"


def post_worker_init(_worker: Any) -> None:
    # Only here, because Django is set up in the workers and not in the arbiter.
    importlib.import_module("backoffice.core.telemetry.processes").start("web")


def on_exit(_arbiter: Any) -> None:
    shutil.rmtree(os.environ["PROMETHEUS_MULTIPROC_DIR"], ignore_errors=True)
