"""`python -m tools.third_party.parts FILE`: write the third-party components of an installation as a CycloneDX SBOM.

They are the distributions of requirements.lock and requirements-extras.lock, and the vendored files that pages load
(`static/vendor/README.md`).
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.processes import ROOT

LOCKS = (ROOT / "requirements.lock", ROOT / "requirements-extras.lock")
VENDORED = ROOT / "static" / "vendor" / "README.md"
_PROGRAM = str(Path(sys.executable).with_name("cyclonedx-py"))
_OPTIONS = ("--mc-type", "application", "--output-reproducible", "--output-format", "JSON")
_ROW = re.compile(
    r"^\| (?:[^|]*\(`(?P<name>[^`]+)`\) \| (?P<version>[\d.]+)|\s*\|\s*) \| `(?P<file>[^`]+)` \|"
    r" (?P<licence>[\w.-]*) ?\| `(?P<digest>[0-9a-f]{64})` \|$",
    re.MULTILINE,
)


def vendored_parts(table: str) -> list[dict[str, Any]]:
    """A component for each package of the table. A row without a name is another file of the package above it."""
    parts: list[dict[str, Any]] = []
    for row in _ROW.finditer(table):
        if row["name"]:
            parts.append(
                {
                    "type": "library",
                    "bom-ref": f"vendor-{row['name']}",
                    "name": row["name"],
                    "version": row["version"],
                    "purl": f"pkg:npm/{row['name'].replace('@', '%40')}@{row['version']}",
                    "licenses": [{"license": {"id": row["licence"]}}],
                    "components": [],
                }
            )
        parts[-1]["components"].append(
            {
                "type": "file",
                "name": row["file"],
                "hashes": [{"alg": "SHA-256", "content": row["digest"]}],
            }
        )
    return parts


def main(file: Path) -> None:
    """Write the SBOM to this file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as lock:
        lock.write("".join(_without_repetition()))
        lock.flush()
        command = [
            _PROGRAM,
            "requirements",
            lock.name,
            "--pyproject",
            str(ROOT / "pyproject.toml"),
            *_OPTIONS,
        ]
        subprocess.run([*command, "--output-file", str(file)], check=True)  # noqa: S603
    document = json.loads(file.read_text())
    document["components"] += vendored_parts(VENDORED.read_text())
    file.write_text(json.dumps(document, indent=2) + "\n")


def _without_repetition() -> Iterator[str]:
    """The entries of both locks; a distribution that both pin is listed once."""
    seen: set[str] = set()
    for lock in LOCKS:
        for entry in re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE):
            name = entry.partition("==")[0]
            if name not in seen:
                yield entry
            seen.add(name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
