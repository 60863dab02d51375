"""The two locks: production installs nothing that only development needs, each file is known by its hash, and no
registry is named.
"""

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tools.processes import ROOT

LOCKS = ("requirements.lock", "requirements-extras.lock", "requirements-dev.lock")
OF_EXTRAS = {"core/storage/bucket.py", "core/telemetry/error_reports.py", "core/telemetry/tracing.py"}
"""Imported only if a setting asks for them: they may need requirements-extras.lock."""
LOCKED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==(\S+)( ;)?")
HOST = re.compile(r"//|@ |--(?:extra-)?index-url|--find-links|--trusted-host|\b[\w-]+\.(?:com|io|net|org)\b")
RUNTIME = (
    *(ROOT / "backoffice").rglob("*.py"),
    *(ROOT / "payments_gateway").rglob("*.py"),
    ROOT / "manage.py",
)
OURS = {"backoffice", "payments_gateway"}


def distributions(lock: str) -> set[str]:
    """The names that a lock pins, as `importlib.metadata` would compare them."""
    lines = (ROOT / lock).read_text().splitlines()
    return {canonical(found[1]) for line in lines if (found := LOCKED.match(line))}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported_by(path: Path) -> Iterator[str]:
    """The top-level names of the modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host(lock: str) -> None:
    lines = (ROOT / lock).read_text().splitlines()
    assert [line for line in lines if HOST.search(line)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_file_has_its_hash(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = [entry for entry in re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE) if "==" in entry]
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    assert len(entries) > 10


def pins(lock: str) -> dict[str, tuple[str, bool]]:
    """The version of each distribution, and whether it is for some platforms only."""
    lines = (ROOT / lock).read_text().splitlines()
    return {
        canonical(found[1]): (found[2], bool(found[3])) for line in lines if (found := LOCKED.match(line))
    }


def test_a_lock_repeats_only_what_an_earlier_one_names_for_some_platforms() -> None:
    earlier: dict[str, tuple[str, bool]] = {}
    for lock in LOCKS:
        for name, (version, _for_some) in pins(lock).items():
            assert earlier.get(name, (version, True)) == (version, True), f"{lock} repeats {name}"
        earlier |= pins(lock)


def test_what_is_locked_for_this_platform_is_all_that_it_needs() -> None:
    """pip refuses a requirement that no lock pins, so an installation from the locks would fail."""
    here = {
        canonical(found.name)
        for lock in LOCKS
        for line in (ROOT / lock).read_text().splitlines()
        if LOCKED.match(line)
        for found in [Requirement(line.rstrip("\\ "))]
        if found.marker is None or found.marker.evaluate()
    }
    missing = {
        f"{name} needs {needed.name}"
        for name in here
        for needed in map(Requirement, requires(name) or ())
        if (needed.marker is None or needed.marker.evaluate({"extra": ""}))
        and canonical(needed.name) not in here
    }
    assert missing == set()


def test_production_installs_no_tool_of_the_tests() -> None:
    tools = {"pytest", "playwright", "hypothesis", "mypy", "ruff", "uv", "properdocs", "django-import-export"}
    assert distributions("requirements.lock") & tools == set()
    assert tools <= distributions("requirements-dev.lock")


def test_what_runs_in_production_imports_only_what_production_installs() -> None:
    installed, locked = packages_distributions(), distributions("requirements.lock")
    with_extras = locked | distributions("requirements-extras.lock")
    foreign = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in RUNTIME
        for name in imported_by(path)
        if name not in OURS
        and name not in sys.stdlib_module_names
        and not {canonical(distribution) for distribution in installed.get(name, ())}
        & (with_extras if any(path.match(f"backoffice/{one}") for one in OF_EXTRAS) else locked)
    }
    assert foreign == set()
