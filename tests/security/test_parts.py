"""The list of parts has what the lock has, and a check of vulnerabilities that checked nothing says so."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.processes import ROOT
from tools.third_party.vulnerabilities import _OF_THE_LOCKS, read_result

LOCKED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)
SOUND = {"name": "sound", "version": "1.0", "vulns": []}
BROKEN = {"name": "broken", "version": "1.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["1.1"]}]}
UNKNOWN = {"name": "unknown", "skip_reason": "Dependency not found"}


def test_the_list_of_parts_has_every_locked_part_and_every_vendored_file(tmp_path: Path) -> None:
    recipe = re.search(r"^parts:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe
    assert "python -m tools.third_party.parts var/parts.json" in recipe[1]
    file = tmp_path / "parts.json"
    command = [sys.executable, "-m", "tools.third_party.parts", str(file)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    components = json.loads(file.read_text())["components"]
    listed = [(part["name"], part["version"]) for part in components if "components" not in part]
    names = ("requirements.lock", "requirements-extras.lock")
    locked = {part for name in names for part in LOCKED.findall((ROOT / name).read_text())}
    assert {"django", "boto3"} <= {name.lower() for name, _version in locked}
    assert sorted(listed) == sorted(locked)

    inside = {
        one["name"]: one["hashes"][0]["content"] for part in components for one in part.get("components", ())
    }
    folder = ROOT / "static" / "vendor"
    shipped = [path for path in folder.rglob("*") if path.suffix in {".js", ".css"}]
    assert inside == {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in shipped
    }
    assert "pkg:npm/htmx.org@2.0.11" in [part.get("purl") for part in components]


def test_vulnerabilities_are_sought_for_the_extras_too() -> None:
    named = [name for name in _OF_THE_LOCKS if name.startswith("--requirement")]
    assert [name.rpartition("/")[2] for name in named] == ["requirements.lock", "requirements-extras.lock"]


@pytest.mark.parametrize(
    ("parts", "exit_code", "said"),
    [
        ([SOUND], 0, "1 parts checked, 0 known vulnerabilities."),
        ([SOUND, BROKEN], 1, "broken 1.0: PYSEC-1, fixed in 1.1"),
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
