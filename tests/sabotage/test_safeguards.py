"""The table matches the code, and a test that never ran its check does not count as having noticed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sabotage.__main__ import why_unnoticed
from tests.sabotage.safeguards import SAFEGUARDS
from tests.sabotage.workshop import (
    ROOT,
    Results,
    SabotagedCopy,
    Safeguard,
    SafeguardNotFoundError,
    of_test,
    pytest_environment,
    results_of,
)

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a.test_b" name="test_noticed"><failure message="assert 1 == 2">…</failure></testcase>
<testcase classname="tests.a.test_b" name="test_of_cases[1]" />
<testcase classname="tests.a.test_b" name="test_of_cases[2]"><failure message="Failed: DID NOT RAISE" /></testcase>
<testcase classname="tests.a.test_b.TestC" name="test_mutilated"><failure message="NameError: name 'x'" /></testcase>
<testcase classname="tests.a.test_b" name="test_without_its_fixture"><error message="failed on setup" /></testcase>
<testcase classname="tests.a.test_b" name="test_left_out"><skipped message="no Redis" /></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize("safeguard", SAFEGUARDS, ids=lambda safeguard: safeguard.name)
def test_each_safeguard_is_found_and_its_removal_is_valid_python(safeguard: Safeguard) -> None:
    removed = safeguard.removed_from((ROOT / safeguard.file).read_text())
    compile(removed, safeguard.file, "exec")


def test_each_named_test_exists() -> None:
    """With its parameters: pytest runs none of those that it is given if one of them is not found."""
    named = sorted({safeguard.test for safeguard in SAFEGUARDS})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named]
    ran = subprocess.run(
        command, cwd=ROOT, env=pytest_environment(), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_safeguard_names_are_unique() -> None:
    assert len({safeguard.name for safeguard in SAFEGUARDS}) == len(SAFEGUARDS) >= 20


@pytest.mark.parametrize(
    ("test", "results"),
    [
        ("tests/a/test_b.py::test_noticed", {"failed"}),
        ("tests/a/test_b.py::test_of_cases", {"passed", "failed"}),
        ("tests/a/test_b.py::test_of_cases[1]", {"passed"}),
        ("tests/a/test_b.py::TestC::test_mutilated", {"broken: NameError: name 'x'"}),
        ("tests/a/test_b.py::test_without_its_fixture", {"error: failed on setup"}),
        ("tests/a/test_b.py::test_left_out", {"skipped: no Redis"}),
        ("tests/a/test_b.py::test_not", set()),
    ],
)
def test_only_an_assertion_failure_counts_as_a_failed_test(test: str, results: set[str]) -> None:
    assert of_test(results_of(REPORT), test) == results


def test_a_missing_text_is_an_error() -> None:
    safeguard = Safeguard("", "a", {"if paid:": "if False:"}, "")
    for source in ("", "if paid:\nif paid:\n"):
        with pytest.raises(SafeguardNotFoundError, match=r"a holds [02] times"):
            safeguard.removed_from(source)


SOURCE = """@decorated
def send(paid):
    if paid: return 1

class Door:
    def send(self):
        if paid: return 2
"""


def test_only_the_named_definition_is_changed() -> None:
    removed = Safeguard("", "a:Door.send", {"if paid": "if True"}, "").removed_from(SOURCE)
    assert removed == SOURCE.replace("if paid: return 2", "if True: return 2")
    with_its_decorator = Safeguard("", "a:send", {"@decorated\n": ""}, "").removed_from(SOURCE)
    assert with_its_decorator == SOURCE.removeprefix("@decorated\n")


def test_a_missing_definition_is_an_error() -> None:
    with pytest.raises(SafeguardNotFoundError, match="close is defined 0 times"):
        Safeguard("", "a:close", {"if paid": ""}, "").removed_from(SOURCE)


@pytest.mark.parametrize(
    ("where", "fails_on", "migrated"),
    [
        ("a", {False}, [False]),
        ("a", {True}, [False, True]),
        ("a", set(), [False, True]),
        ("a.migrations.0001_initial", {True}, [True]),
    ],
)
def test_the_database_is_migrated_again_where_the_test_does_not_fail_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, where: str, fails_on: set[bool], migrated: list[bool]
) -> None:
    done: list[bool] = []

    def without(_copy: SabotagedCopy, _safeguard: Safeguard, *, migrates: bool) -> Results:
        done.append(migrates)
        return {"tests.a.test_b": "failed" if migrates in fails_on else "passed"}

    monkeypatch.setattr(SabotagedCopy, "without", without)
    why = why_unnoticed(SabotagedCopy(tmp_path), Safeguard("", where, {}, "tests/a.py::test_b"))
    assert (done, why == "") == (migrated, bool(fails_on))
