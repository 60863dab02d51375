"""Settings of the test suite: the product's own, with a configurable database and fast password hashing."""

import os
import tempfile
from pathlib import Path

_folder = Path(tempfile.mkdtemp(prefix="countersign-tests-"))
os.environ["COUNTERSIGN_DATA_DIR"] = str(_folder)
os.environ["COUNTERSIGN_DATABASE_URL"] = os.environ.get(
    "COUNTERSIGN_TEST_DATABASE_URL", f"sqlite:///{_folder / 'countersign.sqlite3'}"
)
os.environ["COUNTERSIGN_ENVIRONMENT"] = "sandbox"
os.environ["COUNTERSIGN_ENV_FILE"] = ""

from backoffice.settings import *  # noqa: E402, F403
from backoffice.settings import DATABASES, INSTALLED_APPS, STORAGES  # noqa: E402

INSTALLED_APPS = [*INSTALLED_APPS, "tests.append_only"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    **STORAGES,
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_AUTOREFRESH = True
_OPTIONS = DATABASES["default"]["OPTIONS"]
ADMINISTRATORS_TO_SEND = 0  # most tests need no administrators; tests/governance checks the rule
# Tests need no durability, so commits do not wait for the disk; tests/test_settings.py checks the real setting.
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    # A file, not memory: several threads and processes of tests use it, like production.
    _OPTIONS = {**_OPTIONS, "init_command": f"{_OPTIONS['init_command']} PRAGMA synchronous=OFF;"}
    _TEST = {"NAME": str(_folder / "test.sqlite3")}
else:
    _OPTIONS = {**_OPTIONS, "options": f"{_OPTIONS['options']} -c synchronous_commit=off"}
    _TEST = {}
DATABASES = {"default": {**DATABASES["default"], "OPTIONS": _OPTIONS, "TEST": _TEST}}
