"""`python -m tools.third_party.vulnerabilities`: check what production installs, extras included, for known
vulnerabilities with pip-audit.

Exits with 0 if every distribution was checked and none is vulnerable, with 1 if one is, and with 2 if some were not
checked because the vulnerability database cannot be reached or does not list them.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.third_party.parts import LOCKS

_PIP_AUDIT = (str(Path(sys.executable).with_name("pip-audit")), "--progress-spinner=off", "--format=json")
_OF_THE_LOCKS = (*(f"--requirement={lock}" for lock in LOCKS), "--require-hashes", "--disable-pip")
_MANY = 5


@dataclass(frozen=True)
class Result:
    """The distributions that pip-audit checked, those that it did not, and a line for each vulnerability."""

    checked: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    vulnerabilities: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        if self.vulnerabilities:
            return 1
        return 2 if self.not_checked or not self.checked else 0

    def lines(self) -> Iterator[str]:
        """The result in sentences."""
        yield from self.vulnerabilities
        if not self.checked:
            yield "NOTHING WAS CHECKED: no database of vulnerabilities can be reached from here. Run this elsewhere."
            return
        if self.not_checked:
            some = ", ".join(self.not_checked[:_MANY])
            yield f"NOT CHECKED: {len(self.not_checked)} of the parts, among them {some}."
        yield f"{len(self.checked)} parts checked, {len(self.vulnerabilities)} known vulnerabilities."


def read_result(text: str) -> Result:
    """Parse pip-audit's JSON; from any other text, the result is that nothing was checked."""
    try:
        parts = json.loads(text)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return Result()
    return Result(
        tuple(part["name"] for part in parts if "skip_reason" not in part),
        tuple(part["name"] for part in parts if "skip_reason" in part),
        tuple(
            f"{part['name']} {part['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'none'}"
            for part in parts
            for found in part.get("vulns", ())
        ),
    )


def main() -> int:
    """Run pip-audit and print what it found."""
    done = subprocess.run([*_PIP_AUDIT, *_OF_THE_LOCKS], capture_output=True, text=True, check=False)  # noqa: S603
    result = read_result(done.stdout)
    if not result.checked:
        print(done.stderr.strip()[-1000:], file=sys.stderr)
    for line in result.lines():
        print(line)
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
