"""A receiver of webhooks with the provider's present key, and people who read what arrived."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from backoffice.webhooks import processing
from tests.payments_gateway.vectors.make_vectors import FOLDER
from tests.webhooks.steps import SECRET

UseKeys = Callable[..., None]


@pytest.fixture(autouse=True)
def nothing_enqueued(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process enqueues once a second; each test is a process of its own."""
    monkeypatch.setattr(processing, "_enqueued_at", float("-inf"))


@pytest.fixture
def use_keys(settings: Settings, tmp_path: Path) -> UseKeys:
    """Configure the public keys of these names, or these texts in PEM."""

    def use(*keys: str) -> None:
        texts = [key if "-----" in key else (FOLDER / f"{key}.pub.pem").read_text() for key in keys]
        file = tmp_path / f"keys-{len(list(tmp_path.iterdir()))}.pem"
        file.write_text("\n".join(texts))
        settings.WEBHOOK_KEYS = str(file)

    return use


@pytest.fixture
def receiver(settings: Settings, use_keys: UseKeys) -> None:
    """The receiver is on, and knows the key that `make_vectors` signs with."""
    settings.WEBHOOK_SECRET = SECRET
    use_keys("current")
