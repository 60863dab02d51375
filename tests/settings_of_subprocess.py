"""Settings of a process started by a test: the test's database, not one of its own."""

import os

os.environ.setdefault("COUNTERSIGN_DATA_DIR", "var")
os.environ["COUNTERSIGN_ENVIRONMENT"] = "sandbox"

from backoffice.settings import *  # noqa: F403
from backoffice.settings import DATABASES

DATABASES["default"]["NAME"] = os.environ["COUNTERSIGN_TEST_DATABASE_NAME"]
