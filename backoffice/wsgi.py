"""The WSGI entry point, for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import resolve

from backoffice.loading import without_garbage_collection

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "backoffice.settings")
with without_garbage_collection():
    application = get_wsgi_application()
    resolve("/")  # loads all pages, before the first request
