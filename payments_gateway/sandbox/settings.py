"""Django settings of the sandbox. It shares no file, database or secret with the back office.

The documented way in is the command line of `python -m payments_gateway.sandbox`, which passes its options on
in these environment variables.
"""

import os
from pathlib import Path

HOST = os.environ.get("SANDBOX_HOST", "127.0.0.1")
DATABASE = Path(os.environ.get("SANDBOX_DATABASE", "var/sandbox.sqlite3"))
SEED = int(os.environ.get("SANDBOX_SEED", "1"))
TRANSACTIONS = int(os.environ.get("SANDBOX_TRANSACTIONS", "6000"))
SETTLE_AFTER = float(os.environ.get("SANDBOX_SETTLE_AFTER", "8"))

SECRET_KEY = "nothing in the simulation is signed or hidden"  # noqa: S105 - Django demands one; it guards nothing
DEBUG = False
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "payments_gateway.sandbox",
    "payments_gateway.sandbox.merchant",
    "payments_gateway.sandbox.webhooks",
]
APPEND_SLASH = False
MIDDLEWARE = [
    "django.middleware.common.CommonMiddleware",  # gives every answer its Content-Length
    "payments_gateway.sandbox.control.guard.GuardMiddleware",
    "payments_gateway.sandbox.api.http.ErrorMiddleware",
    "payments_gateway.sandbox.books.settlement.SettlementMiddleware",
]
ROOT_URLCONF = "payments_gateway.sandbox.urls"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

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
        "django.request": {"level": "ERROR"},  # a request that was refused is no event
        "django.security": {"level": "CRITICAL"},  # nor is an impossible Host header
    },
}
