"""Django settings of the sandbox. It shares no file, database or secret with the back office.

Start it with `python -m payments_gateway.sandbox`, which passes its options in these environment variables.
"""

import os
from pathlib import Path

from payments_gateway.profile.model import PROFILES, ProfileName

HOST = os.environ.get("SANDBOX_HOST", "127.0.0.1")
DATABASE = Path(os.environ.get("SANDBOX_DATABASE", "var/sandbox.sqlite3"))
SEED = int(os.environ.get("SANDBOX_SEED", "1"))
TRANSACTIONS = int(os.environ.get("SANDBOX_TRANSACTIONS", "6000"))
PROFILE_NAME: ProfileName = next(name for name in PROFILES if name == os.environ.get("SANDBOX_PROFILE", name))
PROFILE = PROFILES[PROFILE_NAME]
SETTLE_AFTER = float(os.environ.get("SANDBOX_SETTLE_AFTER", "8"))

SECRET_KEY = "nothing in the simulation is signed or hidden"  # noqa: S105 - required by Django; protects nothing
DEBUG = False
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["payments_gateway.sandbox"]
APPEND_SLASH = False
MIDDLEWARE = [
    "django.middleware.common.CommonMiddleware",  # adds Content-Length to every response
    "payments_gateway.sandbox.control.guard.GuardMiddleware",
    "payments_gateway.sandbox.api.http.ErrorMiddleware",
    "payments_gateway.sandbox.books.settlement.SettlementMiddleware",
]
ROOT_URLCONF = "payments_gateway.sandbox.urls"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"  # of the API; the console is in the language of the browser
LANGUAGES = [("en", "English"), ("fr", "Français")]
LOCALE_PATHS = [Path(__file__).resolve().parents[2] / "locale"]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATABASE,
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
        },
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "django.request": {"level": "ERROR"},  # rejected requests are not logged
        "django.security": {"level": "CRITICAL"},  # nor are invalid Host headers
    },
}
