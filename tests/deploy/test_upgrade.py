"""Releases are numbered, written down for operators, and examined against the one before."""

import re
import shutil
import tomllib

import pytest
from django.db import connection

from backoffice.settings import VERSION
from tools.processes import ROOT
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
def test_a_migration_that_old_code_could_not_live_with_is_found() -> None:
    unsafe, new = examine(released=set())
    assert new > 30
    assert 0 < unsafe < new


@in_a_clone
@pytest.mark.django_db
@pytest.mark.skipif(connection.vendor != "postgresql", reason="reads the SQL of PostgreSQL")
def test_migrations_since_the_last_release_are_safe_beside_it() -> None:
    assert examine(last_release().migrations())[0] == 0
