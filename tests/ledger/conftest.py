"""A provider that answers as the test says, and nothing remembered from another test."""

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests import stub_provider
from tests.stub_provider import StubProvider


@pytest.fixture
def provider(settings: Settings) -> Iterator[StubProvider]:
    """A provider that answers as the test says."""
    with stub_provider.running() as stub:
        settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = stub.url, stub.url_v4
        yield stub


@pytest.fixture
def unreachable(settings: Settings) -> None:
    settings.GATEWAY_URL, settings.GATEWAY_URL_V4 = "http://127.0.0.1:9/v2", "http://127.0.0.1:9/v4"
