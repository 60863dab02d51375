"""The list of parts has what the lock has, and a check of vulnerabilities that checked nothing says so."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.processes import ROOT
from tools.vulnerabilities import read_result

LOCKED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
BROKEN = {"name": "broken", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found"}


def test_the_list_of_parts_has_every_locked_part(tmp_path: Path) -> None:
    recipe = re.search(r"^parts:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    assert "cyclonedx-py requirements requirements.lock" in recipe[1]
    file = tmp_path / "parts.json"
    program = str(Path(sys.executable).with_name("cyclonedx-py"))
    arguments = ("requirements", "requirements.lock", "--output-format", "JSON", "--output-file", str(file))
    subprocess.run([program, *arguments], cwd=ROOT, check=True, capture_output=True)
    listed = {(part["name"], part["version"]) for part in json.loads(file.read_text())["components"]}
    locked = set(LOCKED.findall((ROOT / "requirements.lock").read_text()))
    assert len(locked) > 20
    assert listed == locked


@pytest.mark.parametrize(
    ("parts", "exit_code", "said"),
    [
        ([SOUND], 0, "1 parts checked, 0 known vulnerabilities."),
        ([SOUND, BROKEN], 1, "broken 1.0: PYSEC-1, mended in 1.1"),
        ([SOUND, UNKNOWN], 2, "NOT CHECKED: 1 of the parts, among them unknown."),
        ([UNKNOWN], 2, "NOTHING WAS CHECKED"),
        ([], 2, "NOTHING WAS CHECKED"),
    ],
)
def test_only_a_complete_check_without_findings_is_a_success(
    parts: list[dict[str, object]], exit_code: int, said: str
) -> None:
    result = read_result(json.dumps({"dependencies": parts, "fixes": []}))
    assert result.exit_code == exit_code
    assert said in "\n".join(result.lines())


@pytest.mark.parametrize("text", ["", "Traceback", "[]", "{}"])
def test_a_check_that_failed_checked_nothing(text: str) -> None:
    result = read_result(text)
    assert result.exit_code == 2
    assert "NOTHING WAS CHECKED" in "\n".join(result.lines())
