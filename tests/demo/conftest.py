"""The product as `COUNTERSIGN_DEMO` sets it up."""

import pytest
from django.test import Client
from pytest_django import Settings

from backoffice.demo import people
from tests.demo import urls


@pytest.fixture
def demo(db: None, settings: Settings) -> Client:
    """The product as `COUNTERSIGN_DEMO` sets it up, with its cast."""
    settings.DEMO = True
    settings.ALLOWED_HOSTS = ["localhost"]
    templates = settings.TEMPLATES[0]
    processors = [
        *templates["OPTIONS"]["context_processors"],
        "backoffice.demo.people.demo_context",
    ]
    settings.TEMPLATES = [
        {**templates, "OPTIONS": {**templates["OPTIONS"], "context_processors": processors}}
    ]
    settings.INSTALLED_APPS = [*settings.INSTALLED_APPS, "backoffice.demo"]
    settings.ROOT_URLCONF = urls.__name__
    people.ensure_people()
    return Client(SERVER_NAME="localhost")
