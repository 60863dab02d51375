"""What the README says of the configuration is what the program reads."""

import re
from pathlib import Path

from payments_gateway import Dialect

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def test_every_setting_is_in_the_readme_and_every_one_there_is_read() -> None:
    settings = (ROOT / "backoffice" / "settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"(COUNTERSIGN_\w+)"', settings))
    read |= set(re.findall(r'env\.db_url\("(COUNTERSIGN_\w+)"', settings))
    table = README.partition("## Configuration")[2].partition("## In production")[0]
    assert set(re.findall(r"COUNTERSIGN_\w+", table)) == read


def test_every_open_point_of_the_specification_is_in_the_readme() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (\w+) \| (.+?) \| (.+) \|$", README, re.MULTILINE)
    points = Dialect().open_points()
    assert rows == [(point.name, point.confidence, point.where, point.why) for point in points]


def test_a_default_in_the_readme_is_the_one_that_is_used() -> None:
    wrong = [
        point.name
        for point in Dialect().open_points()
        if isinstance(point.value, (str, int)) and f"| `{point.name}` | {point.value} |" not in README
    ]
    assert wrong == []


def test_every_command_of_the_readme_is_a_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
