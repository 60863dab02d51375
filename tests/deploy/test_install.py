"""`deploy/install.sh`, which the Dockerfile runs, makes a release that starts; in an empty folder, without root."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.processes import ROOT

NOBODY = 65_534
MOST_MEGABYTES = 200
EVERY_MODULE = """
import importlib, os, pkgutil, django
django.setup()
import backoffice, payments_gateway
TELEMETRY = "backoffice.core.telemetry."
OF_EXTRAS = "backoffice.core.storage.bucket", TELEMETRY + "error_reports", TELEMETRY + "tracing"
for package in (backoffice, payments_gateway):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.startswith(("payments_gateway.sandbox", "backoffice.demo", *OF_EXTRAS)):
            importlib.import_module(module.name)
"""

pytestmark = pytest.mark.stack


# Python itself may be in a folder of root's: it can be read, and nothing there can be written.
WITHOUT_ROOT = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *(
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--bounding-set=-all,+dac_read_search",
    ),
)


def as_nobody(*command: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run it as a user who owns this folder and nothing else, if this process is root; with no variable of ours."""
    user = WITHOUT_ROOT if os.geteuid() == 0 else ()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("COUNTERSIGN_")}
    environment = {**kept, "HOME": str(folder), **variables}
    return subprocess.run(
        [*user, *command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture
def empty_folder(tmp_path: Path) -> Path:
    """A folder that the other user owns."""
    if os.geteuid() == 0:
        os.chown(tmp_path, NOBODY, NOBODY)
    return tmp_path


def test_a_release_is_installed_from_the_runtime_lock_alone(empty_folder: Path) -> None:
    source, target = empty_folder / "source", empty_folder / "release"
    parts = "backoffice payments_gateway templates static locale deploy manage.py gunicorn.conf.py"
    parts += " pyproject.toml requirements.lock"
    source.mkdir()
    for part in parts.split():
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, source / part)
    python = str(Path(sys.executable).resolve())

    done = as_nobody(
        "sh", f"{source}/deploy/install.sh", str(source), str(target), folder=empty_folder, PYTHON=python
    )

    assert done.returncode == 0, done.stdout + done.stderr
    megabytes = re.search(r"(\d+) MB", done.stdout)
    assert megabytes is not None
    assert int(megabytes[1]) <= MOST_MEGABYTES
    product = {
        "DJANGO_SETTINGS_MODULE": "backoffice.settings",
        "PYTHONPATH": str(target),
        "COUNTERSIGN_DATA_DIR": str(empty_folder / "data"),
    }
    installed = str(target / ".venv" / "bin" / "python")
    started = as_nobody(installed, "-c", EVERY_MODULE, folder=empty_folder, **product)
    assert started.returncode == 0, started.stderr
    again = as_nobody("sh", f"{source}/deploy/install.sh", str(source), str(target), folder=empty_folder)
    assert again.returncode == 1
    assert "is not empty" in again.stderr
