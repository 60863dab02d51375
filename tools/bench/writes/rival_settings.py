"""Settings of the two Django projects in `delivery_rivals`; BENCH_RIVAL names one. Both keep their connections."""

import environ

_env = environ.Env()
_IS_STOCK = _env.str("BENCH_RIVAL") == "stock"

SECRET_KEY = "of-a-benchmark"  # noqa: S105
ALLOWED_HOSTS = ["127.0.0.1"]
USE_TZ = True
DATABASES = {"default": {**_env.db_url("BENCH_DATABASE_URL"), "CONN_MAX_AGE": None}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"]
ROOT_URLCONF = "tools.bench.writes.delivery_rivals"
WEBHOOK_KEYS = _env.str("BENCH_WEBHOOK_KEYS")
MIDDLEWARE = [  # that of `startproject`
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
] * _IS_STOCK
