"""For tests of what a round reads, not of when it begins."""

from datetime import timedelta

import pytest

from backoffice.ledger.mirror import sync


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A requested round begins at once, however soon after the one before."""
    monkeypatch.setattr(sync, "REQUEST_INTERVAL", timedelta(0))
