"""Every requirement of ASVS 5.0, levels 1 and 2, has one answer, and what an answer names exists."""

import re
from functools import cache
from pathlib import Path

import pytest

from tools import asvs
from tools.processes import ROOT

# Of each section the requirements of the levels 1 and 2, as the standard has them.
REQUIRED = {
    "1.1": "1-2",
    "1.2": "1-9",
    "1.3": "1-11",
    "1.4": "1-3",
    "1.5": "1-2",
    "2.1": "1-3",
    "2.2": "1-3",
    "2.3": "1-4",
    "2.4": "1-1",
    "3.2": "1-2",
    "3.3": "1-4",
    "3.4": "1-6",
    "3.5": "1-5",
    "3.7": "1-2",
    "4.1": "1-3",
    "4.2": "1-1",
    "4.3": "1-2",
    "4.4": "1-4",
    "5.1": "1-1",
    "5.2": "1-3",
    "5.3": "1-2",
    "5.4": "1-3",
    "6.1": "1-3",
    "6.2": "1-12",
    "6.3": "1-4",
    "6.4": "1-4",
    "6.5": "1-5",
    "6.6": "1-3",
    "6.8": "1-4",
    "7.1": "1-3",
    "7.2": "1-4",
    "7.3": "1-2",
    "7.4": "1-5",
    "7.5": "1-2",
    "7.6": "1-2",
    "8.1": "1-2",
    "8.2": "1-3",
    "8.3": "1-1",
    "8.4": "1-1",
    "9.1": "1-3",
    "9.2": "1-4",
    "10.1": "1-2",
    "10.2": "1-2",
    "10.3": "1-4",
    "10.4": "1-11",
    "10.5": "1-5",
    "10.6": "1-2",
    "10.7": "1-3",
    "11.1": "1-2",
    "11.2": "1-3",
    "11.3": "1-3",
    "11.4": "1-4",
    "11.5": "1-1",
    "11.6": "1-1",
    "12.1": "1-3",
    "12.2": "1-2",
    "12.3": "1-4",
    "13.1": "1-1",
    "13.2": "1-5",
    "13.3": "1-2",
    "13.4": "1-5",
    "14.1": "1-2",
    "14.2": "1-4",
    "14.3": "1-3",
    "15.1": "1-3",
    "15.2": "1-3",
    "15.3": "1-7",
    "16.1": "1-1",
    "16.2": "1-5",
    "16.3": "1-4",
    "16.4": "1-3",
    "16.5": "1-3",
    "17.1": "1-1",
    "17.2": "1-4",
    "17.3": "1-2",
}
OF_LEVEL_3 = {"1.2.10", "2.3.5", "7.5.3", "8.3.3", "15.4.2"}
OF_LEVEL_1 = 70
ANSWERS = asvs.read_answers()
ABOUT_DOCUMENTATION = re.compile(r"(2|5|6|7|8|11|13|14|15|16)\.1\.\d+")
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def required() -> set[str]:
    """The numbers of all requirements of the levels 1 and 2."""
    numbers = set()
    for section, which in REQUIRED.items():
        first, last = map(int, which.split("-"))
        numbers |= {f"{section}.{number}" for number in range(first, last + 1)}
    return numbers


def anchor(heading: str) -> str:
    """The anchor that the documentation's site gives to a heading."""
    return re.sub(r"[^\w\s-]", "", heading).strip().lower().replace(" ", "-")


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text() if (ROOT / path).exists() else ""


def test_every_requirement_of_levels_1_and_2_has_an_answer() -> None:
    assert len(required()) == 253
    assert {one.number for one in ANSWERS.requirements if one.level < 3} == required()
    assert {one.number for one in ANSWERS.requirements if one.level == 3} == OF_LEVEL_3
    assert len([one for one in ANSWERS.requirements if one.level == 1]) == OF_LEVEL_1


def test_every_requirement_is_in_a_chapter_with_a_name() -> None:
    assert {one.chapter for one in ANSWERS.requirements} == set(ANSWERS.chapters)
    assert all(ANSWERS.chapters.values())


def test_no_answer_is_empty() -> None:
    assert [one.number for one in ANSWERS.requirements if not one.asks.strip()] == []
    assert [one.number for one in ANSWERS.requirements if not one.evidence and len(one.reason) < 5] == []


def test_what_is_met_names_tests_or_is_about_documentation() -> None:
    without_test = [
        one.number
        for one in ANSWERS.requirements
        if one.status == "met" and not one.tests and not ABOUT_DOCUMENTATION.fullmatch(one.number)
    ]
    assert without_test == []


@pytest.mark.parametrize("name", sorted({name for one in ANSWERS.requirements for name in one.tests}))
def test_every_named_test_exists(name: str) -> None:
    path, _, test = name.partition("::")
    assert re.search(rf"^(?:    )?(?:async )?def {test}\(", text_of(path), re.MULTILINE), (
        f"{name} does not exist"
    )


@pytest.mark.parametrize("name", sorted({name for one in ANSWERS.requirements for name in one.sections}))
def test_every_named_section_exists(name: str) -> None:
    path, _, section = name.partition("#")
    assert section in {anchor(heading) for heading in HEADING.findall(text_of(path))}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[^`]+)`", asvs.ANSWERS_FILE.read_text()))))
def test_every_test_named_in_a_sentence_exists(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.parametrize(
    "answer",
    [
        "",
        'met = ["tests/a.py::test_b"]\nopen = "All of it."',
        'met = "tests/a.py::test_b"',
        'open = ["All of it."]',
        'open = ""',
        'open = "All of it."\nanother = 1',
    ],
)
def test_a_requirement_without_exactly_one_answer_is_refused(tmp_path: Path, answer: str) -> None:
    file = tmp_path / "asvs.toml"
    file.write_text(f'[chapters]\n1 = "One"\n\n["1.1.1"]\nlevel = 1\nasks = "It"\n{answer}\n')
    with pytest.raises(ValueError, match=r"1\.1\.1"):
        asvs.read_answers(file)
