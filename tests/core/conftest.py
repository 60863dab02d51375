"""The log as an operator sees it."""

import io
import logging
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def log_lines() -> Iterator[Callable[[], str]]:
    """What the handlers of the product's own settings have written since the test began."""
    written = io.StringIO()
    [handler] = [found for found in logging.getLogger().handlers if found.name == "stderr"]
    assert isinstance(handler, logging.StreamHandler)
    before = handler.setStream(written)
    yield written.getvalue
    handler.setStream(before or handler.stream)
