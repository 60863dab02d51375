"""Static files of two releases in one folder."""

from pathlib import Path

import pytest
from pytest_django import Settings

from backoffice.core.storage.static_files import ReleaseStaticFilesStorage


@pytest.fixture(autouse=True)
def production(settings: Settings, tmp_path: Path) -> None:
    settings.DEBUG = False
    settings.STATIC_ROOT = tmp_path


def collect(storage: ReleaseStaticFilesStorage, **contents: str) -> None:
    root = Path(storage.location)
    for name, content in contents.items():
        (root / f"{name}.css").write_text(content)
    sources = {f"{name}.css": (storage, f"{name}.css") for name in contents}
    for _name, _stored, processed in storage.post_process(sources):  # type: ignore[no-untyped-call]
        assert not isinstance(processed, Exception)


def test_a_process_of_the_last_release_that_restarts_after_the_next_one_was_collected_finds_its_files(
    settings: Settings,
) -> None:
    """It restarts before it is replaced, or after going back."""
    last = settings.VERSION
    collect(ReleaseStaticFilesStorage(), app="a {}", removed="b {}")
    before = {name: ReleaseStaticFilesStorage().url(name) for name in ("app.css", "removed.css")}
    settings.VERSION = "9.9.9"
    collect(ReleaseStaticFilesStorage(), app="c {}")
    assert ReleaseStaticFilesStorage().url("app.css") != before["app.css"]
    settings.VERSION = last
    restarted = ReleaseStaticFilesStorage()
    assert {name: restarted.url(name) for name in before} == before
    for url in before.values():
        assert (Path(restarted.location) / url.rpartition("/")[2]).exists()
