"""Releases are numbered, written down for operators, and examined against the one before."""

import re
import shutil
import tomllib

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from backoffice.settings import VERSION
from tools.processes import ROOT
from tools.upgrade import lint
from tools.upgrade.lint import examine
from tools.upgrade.releases import last_release, recorded_releases

CHANGES = (ROOT / "CHANGELOG.md").read_text()
in_a_clone = pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="no clone")


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def test_this_version_follows_the_last_release() -> None:
    recorded = [number(version) for version in recorded_releases()]
    assert recorded == sorted(set(recorded))
    assert number(VERSION) > recorded[-1]


def test_the_change_log_says_what_operators_do_for_each_version() -> None:
    sections = dict(
        re.findall(r"^## (\d+\.\d+\.\d+)[^\n]*\n(.*?)(?=^## |\Z)", CHANGES, re.DOTALL | re.MULTILINE)
    )
    assert list(sections) == [VERSION, *reversed(recorded_releases())]
    assert [version for version, text in sections.items() if "### What an operator does" not in text] == []


@in_a_clone
def test_the_recorded_commit_is_that_version() -> None:
    release = last_release()
    assert ("operations", "0001_initial") in release.migrations()
    project = tomllib.loads(release.text_of("pyproject.toml"))["project"]
    assert project["version"] == release.version


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads the SQL of PostgreSQL")
def test_a_migration_that_old_code_could_not_live_with_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for which people have made an exception is found without it."""
    released = set(MigrationLoader(None).disk_migrations) - lint.EXAMINED
    assert examine(released) == (0, len(lint.EXAMINED))
    monkeypatch.setattr(lint, "EXAMINED", frozenset())
    unsafe, new = examine(released)
    assert 0 < unsafe == new


@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads the SQL of PostgreSQL")
def test_a_squash_is_new_only_if_it_replaces_more_than_the_release_has() -> None:
    migrations = MigrationLoader(None).disk_migrations
    squashes = {key for key, migration in migrations.items() if migration.replaces}
    replaced = {one for key in squashes for one in migrations[key].replaces}
    released = set(migrations) - squashes | replaced
    assert replaced
    assert examine(released) == (0, 0)
    assert examine(released - {min(replaced)})[1] == 1


@in_a_clone
@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads the SQL of PostgreSQL")
def test_migrations_since_the_last_release_are_safe_beside_it() -> None:
    assert examine(last_release().migrations())[0] == 0
