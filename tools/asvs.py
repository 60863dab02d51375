"""The answers to OWASP ASVS 5.0: read from `docs/security/asvs.toml`, and shown as tables of `docs/security.md`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.processes import ROOT

ANSWERS_FILE = ROOT / "docs" / "security" / "asvs.toml"
STATUSES = ("met", "not_applicable", "open")
_LABELS = {"met": "met", "not_applicable": "not applicable", "open": "**open**"}


@dataclass(frozen=True)
class Requirement:
    """One requirement and its answer.

    `evidence` has tests as `tests/path.py::test_name`, and sections of pages as `docs/page.md#section`, if it is met;
    otherwise `reason` says why it is not applicable or what is missing.
    """

    number: str
    level: int
    asks: str
    status: str
    evidence: tuple[str, ...] = ()
    reason: str = ""

    @property
    def chapter(self) -> str:
        return self.number.partition(".")[0]

    @property
    def tests(self) -> list[str]:
        return [item for item in self.evidence if "::" in item]

    @property
    def sections(self) -> list[str]:
        return [item for item in self.evidence if "::" not in item]


@dataclass(frozen=True)
class Answers:
    """All requirements in the order of the standard, and the names of its chapters by number."""

    chapters: Mapping[str, str]
    requirements: tuple[Requirement, ...]


def read_answers(path: Path = ANSWERS_FILE) -> Answers:
    """Raises ValueError for a requirement without exactly one answer, or with a member that is not known."""
    content = tomllib.loads(path.read_text())
    chapters = content.pop("chapters")
    return Answers(chapters, tuple(_requirement(number, members) for number, members in content.items()))


def _requirement(number: str, members: dict[str, object]) -> Requirement:
    given = [status for status in STATUSES if members.get(status)]
    if len(given) != 1 or members.keys() - {"level", "asks", *given}:
        raise ValueError(f"{number} needs level, asks, and exactly one of {', '.join(STATUSES)}")
    answer = members[given[0]]
    is_met = given[0] == "met"
    if not isinstance(answer, list if is_met else str):
        raise ValueError(f"{number}: {given[0]} is {'a list' if is_met else 'a sentence'}")
    return Requirement(
        number,
        int(str(members["level"])),
        str(members["asks"]),
        given[0],
        tuple(answer) if isinstance(answer, list) else (),
        "" if is_met else str(answer),
    )


def answers_table() -> str:
    """How many requirements have which answer, and a table for each chapter."""
    answers = read_answers()
    lines = ["", "| Chapter | Met | Not applicable | Open |", "|---|---|---|---|"]
    for chapter, name in [*answers.chapters.items(), ("", "All")]:
        counted = [one.status for one in answers.requirements if chapter in ("", one.chapter)]
        numbers = " | ".join(str(counted.count(status)) for status in STATUSES)
        lines.append(f"| {f'V{chapter} {name}'.strip() if chapter else f'**{name}**'} | {numbers} |")
    for chapter, name in answers.chapters.items():
        lines += ["", f"### V{chapter} {name}", "", "| | Level | Asks for | Answer |", "|---|---|---|---|"]
        lines += [_row(one) for one in answers.requirements if one.chapter == chapter]
    return "\n".join([*lines, ""])


def _row(one: Requirement) -> str:
    tests = [f"`{item}`" for item in one.tests]
    sections = [f"[{item.partition('#')[2]}]({item.removeprefix('docs/')})" for item in one.sections]
    answer = ", ".join([*tests, *sections]) or one.reason
    return f"| {one.number} | {one.level} | {one.asks} | {_LABELS[one.status]}: {answer} |"
