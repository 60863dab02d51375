"""The product's settings plus the libraries that the benchmarks compare it with: see `rivals.py`."""

from backoffice.settings import *  # noqa: F403
from backoffice.settings import BASE_DIR, INSTALLED_APPS, TEMPLATES

INSTALLED_APPS = [*INSTALLED_APPS, "django.contrib.admin", "import_export"]
ROOT_URLCONF = "tools.bench.rivals"
TEMPLATES = [
    *TEMPLATES,
    {
        "BACKEND": "django.template.backends.jinja2.Jinja2",
        "NAME": "jinja2",
        "DIRS": [BASE_DIR / "tools" / "bench" / "templates"],
        "OPTIONS": {"environment": "tools.bench.rivals.jinja2_environment", "auto_reload": False},
    },
]
