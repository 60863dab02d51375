"""The log as an operator sees it."""

import io
import logging
from collections.abc import Callable, Iterator

import pytest


@pytest.fixture
def log_handler() -> logging.StreamHandler[io.StringIO]:
    """The one handler that the product's own settings make."""
    [handler] = [found for found in logging.getLogger().handlers if found.name == "stderr"]
    assert isinstance(handler, logging.StreamHandler)
    return handler


@pytest.fixture
def log_lines(log_handler: logging.StreamHandler[io.StringIO]) -> Iterator[Callable[[], str]]:
    """What that handler has written since the test began."""
    written = io.StringIO()
    before = log_handler.setStream(written)
    yield written.getvalue
    log_handler.setStream(before or log_handler.stream)
