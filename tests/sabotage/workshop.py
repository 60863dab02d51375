"""A copy of the project in which one safeguard at a time is removed, and the one test that must fail is run."""

import ast
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Self

from tests.shared_database import KEPT_IN

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 600  # seconds, for one run of pytest
# Such a failure proves nothing: the changed program cannot run, or the test did not reach its check.
_BROKEN = ("ImportError", "ModuleNotFoundError", "NameError", "UnboundLocalError", "SyntaxError", "TypeError")

Results = Mapping[str, str]
"""The result of each test by its full name: "passed", "failed", or why it proves nothing."""


@dataclass(frozen=True)
class Safeguard:
    """A rule: the function or class that enforces it, the replacement of its text there, and the test that
    must fail then.

    `where` is "package.module:name", "package.module:Class.method", or "package.module" for a whole module.
    Only text inside that definition (with its decorators) is replaced, so other code may move or repeat it.
    """

    name: str
    where: str
    edits: Mapping[str, str]
    test: str

    @property
    def file(self) -> str:
        """The path of its module, relative to the project."""
        path = self.where.partition(":")[0].replace(".", "/")
        return f"{path}/__init__.py" if (ROOT / path).is_dir() else f"{path}.py"

    def removed_from(self, source: str) -> str:
        """The source without the safeguard.

        Raises SafeguardNotFoundError unless each text occurs in its definition exactly once.
        """
        start, end = extent_of(self.where.partition(":")[2], source)
        inside = source[start:end]
        for take_out, put in self.edits.items():
            if inside.count(take_out) != 1:
                raise SafeguardNotFoundError(
                    f"{self.where} holds {inside.count(take_out)} times, not once: {take_out!r}"
                )
            inside = inside.replace(take_out, put)
        return source[:start] + inside + source[end:]


class SafeguardNotFoundError(Exception):
    """The definition or the text of a safeguard is not as in the table."""


def extent_of(qualified_name: str, source: str) -> tuple[int, int]:
    """Start and end of the definition; the whole source for an empty name. Raises SafeguardNotFoundError."""
    if not qualified_name:
        return 0, len(source)
    within: ast.AST = ast.parse(source)
    for part in qualified_name.split("."):
        found = [node for node in ast.iter_child_nodes(within) if part in _names_of(node)]
        if len(found) != 1:
            raise SafeguardNotFoundError(f"{qualified_name} is defined {len(found)} times, not once")
        within = found[0]
    lines = source.splitlines(keepends=True)
    decorators = getattr(within, "decorator_list", [])
    first = min([within.lineno, *(decorator.lineno for decorator in decorators)])  # type: ignore[attr-defined]
    last = within.end_lineno  # type: ignore[attr-defined]
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[:last]))


def _names_of(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def pytest_environment() -> dict[str, str]:
    """The environment of a run of pytest that finds every test that a safeguard names, whatever runs it."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COUNTERSIGN_", "PYTEST_")) and name != KEPT_IN
    }
    return inherited | {"FAULTS": "whole"}  # or the tests of the campaign are left out


class SabotagedCopy:
    """A copy of all files that git tracks or would track, in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self._folder / name)
        for name in ("tmp", "migrated"):
            (self._folder / "var" / name).mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def run_all(self, tests: Iterable[str], *, migrates: bool = False) -> Results:
        """Run these tests on the copy as it is, on the database of the first run unless it `migrates` its own."""
        report = self._folder / "var" / "report.xml"
        report.unlink(missing_ok=True)
        environment = {
            **pytest_environment(),
            "TMPDIR": str(self._folder / "var" / "tmp"),
            "FAULT_ROUNDS": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # loading unneeded plugins takes half of the time
            **({} if migrates else {KEPT_IN: str(self._folder / "var" / "migrated")}),
        }
        options = ["-q", "-p", "pytest_django.plugin", "-p", "no:cacheprovider", f"--junit-xml={report}"]
        options.append("--override-ini=addopts=")  # they name plugins that are not loaded
        command = [sys.executable, "-m", "pytest", *options, *sorted(set(tests))]
        try:
            subprocess.run(
                command, cwd=self._folder, env=environment, capture_output=True, check=False, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return {}
        return results_of(report.read_text()) if report.exists() else {}

    def without(self, safeguard: Safeguard, *, migrates: bool) -> Results:
        """Run the safeguard's test without it, as `run_all`, and restore it. Raises SafeguardNotFoundError,
        SyntaxError.
        """
        file = self._folder / safeguard.file
        source = file.read_text()
        removed = safeguard.removed_from(source)
        compile(removed, safeguard.file, "exec")
        try:
            _write(file, removed)
            return self.run_all([safeguard.test], migrates=migrates)
        finally:
            _write(file, source)


def results_of(report: str) -> Results:
    """The result of each test in a JUnit report of pytest."""
    return {
        f"{case.get('classname')}.{case.get('name')}": _result(case)
        for case in ET.fromstring(report).iter("testcase")  # noqa: S314 - written by pytest a moment ago
    }


def of_test(results: Results, test: str) -> set[str]:
    """The results of one test; of all its cases if the name has no parameters."""
    path, *names = test.split("::")
    name = ".".join([path.removesuffix(".py").replace("/", "."), *names])
    return {result for found, result in results.items() if found == name or found.startswith(f"{name}[")}


def _result(case: ET.Element) -> str:
    for kind in (
        "error",
        "skipped",
    ):  # an error happens in the setup or teardown of a test
        if case.find(kind) is not None:
            return f"{kind}: {case.find(kind).get('message', '')}"  # type: ignore[union-attr]
    failure = case.find("failure")
    if failure is None:
        return "passed"
    message = failure.get("message", "").strip()
    return f"broken: {message}" if message.startswith(_BROKEN) else "failed"


def _write(file: Path, source: str) -> None:
    """Write the file so that Python does not use stale bytecode, which it identifies by time in seconds and
    size only.
    """
    file.write_text(source)
    Path(cache_from_source(str(file))).unlink(missing_ok=True)
