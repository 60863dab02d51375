"""A signing key for checkpoints, and a file as their destination."""

from pathlib import Path

import pytest
from pytest_django import Settings

KEYS = ["2027:" + "K" * 43 + "=", "2026:" + "L" * 43 + "="]


@pytest.fixture
def checkpoint_keys(settings: Settings) -> None:
    settings.AUDIT_CHECKPOINT_KEYS = KEYS


@pytest.fixture
def checkpoint_file(tmp_path: Path, settings: Settings, checkpoint_keys: None) -> Path:
    """The only destination: a file that does not exist yet."""
    file = tmp_path / "checkpoints.jsonl"
    settings.AUDIT_CHECKPOINT_DESTINATIONS = [f"file://{file}"]
    return file
