"""The documentation names only what exists, and its tables are those that the code generates."""

import re
import tomllib
from pathlib import Path

import pytest

from backoffice.operations.monitoring.integrity_checks import INTEGRITY_CHECKS
from payments_gateway import ProviderProfile
from tools import docs
from tools.processes import ROOT

RUNBOOK = (ROOT / "docs" / "operator" / "runbook.md").read_text()
PAGE = ROOT / "docs" / "index.md"


@pytest.mark.parametrize("page", docs.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_current_and_name_only_existing_things(page: Path) -> None:
    text = page.read_text()
    assert docs.refreshed(text) == text
    assert list(docs.problems(page, text)) == []


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").stat().st_size <= 12_000


def test_every_variable_that_the_settings_read_is_described() -> None:
    read = re.findall(r'env\.\w+\(\s*"(COUNTERSIGN_\w+)"', docs.SETTINGS.read_text())
    described = {setting.name: setting.meaning for setting in docs.settings_read()}
    assert set(described) == set(read)
    assert all(described.values())


def test_a_setting_has_its_section_default_and_meaning() -> None:
    source = """
# == First
#: How many there are.
MANY = env.int("COUNTERSIGN_MANY", default=3)

# == Second
#: What it is called. Default: the name of the machine. It is shown to people.
OPTIONS = {
    "name": env.str("COUNTERSIGN_NAME", default=NAME),
    #: Whether it is on.
    "is_on": env.bool("COUNTERSIGN_ON", default=False),
}
AGAIN = env.int("COUNTERSIGN_MANY", default=3)
"""
    assert docs.settings_read(source) == [
        docs.Setting("First", "COUNTERSIGN_MANY", "`3`", False, "How many there are."),
        docs.Setting(
            "Second",
            "COUNTERSIGN_NAME",
            "the name of the machine",
            False,
            "What it is called. It is shown to people.",
        ),
        docs.Setting("Second", "COUNTERSIGN_ON", "`false`", False, "Whether it is on."),
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('# == One\nX = env.str("COUNTERSIGN_X", default="")\n', "COUNTERSIGN_X has no comment"),
        ('# == One\n#: What.\nX = env.str("COUNTERSIGN_X", default=Y)\n', "say the default"),
        ('#: What.\nX = env.str("COUNTERSIGN_X", default="")\n', "in no section"),
    ],
)
def test_a_setting_that_is_not_described_is_refused(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        docs.settings_read(source)


def test_required_settings_are_those_production_needs_to_start() -> None:
    assert docs.required_in_production() == {
        "COUNTERSIGN_ENVIRONMENT",
        "COUNTERSIGN_DATABASE_URL",
        "COUNTERSIGN_BROKER_URL",
        "COUNTERSIGN_SECRET_KEY",
        "COUNTERSIGN_ENCRYPTION_KEYS",
        "COUNTERSIGN_GATEWAY_URL",
        "COUNTERSIGN_GATEWAY_URL_V4",
        "COUNTERSIGN_GATEWAY_API_KEY",
    }


def test_every_field_of_the_profile_has_its_row() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (\w+) \| (.+?) \| (.+) \|$", docs.profile_table(), re.MULTILINE)
    points = ProviderProfile().open_points()
    assert rows == [(point.name, point.confidence, point.where, point.why) for point in points]


def test_the_documented_profile_tables_equal_the_defaults() -> None:
    written = "\n".join(re.findall(r"```toml\n(.*?)```", docs.profile_table(), re.DOTALL))
    assert ProviderProfile().overridden(tomllib.loads(written)) == ProviderProfile()


@pytest.mark.parametrize(
    "text",
    [
        "`backoffice/settings.py`, `backoffice/operations/`, `var/demo`, `/openapi.json`, `/hooks/<secret>/`",
        "`backoffice.settings`, `backoffice.operations.policy.check_may_approve`, `payments_gateway.verify_webhook`",
        "`make check`, `manage.py sweep`, `manage.py migrate`, `python -m venv .venv`, `COUNTERSIGN_LOG_LEVEL`",
        "[one](how-money-moves.md#states), [another](https://example.com/nothing)",
        "```\nbackoffice/nothing.py\n```",
    ],
)
def test_existing_names_are_accepted(text: str) -> None:
    assert list(docs.problems(PAGE, text)) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("`backoffice/nothing.py`", "backoffice/nothing.py: there is no such file"),
        ("`operations/policy.py`", "operations/policy.py: there is no such file"),
        ("`gone/`", "gone/: there is no such file"),
        ("`backoffice.nothing`", "backoffice.nothing: there is no such module or name"),
        (
            "`backoffice.settings.NOTHING_LIKE_IT`",
            "backoffice.settings.NOTHING_LIKE_IT: there is no such module",
        ),
        ("`make nothing`", "make nothing: there is no such target"),
        ("```\nmake nothing\n```", "make nothing: there is no such target"),
        ("```\npython -m nothing.here\n```", "python -m nothing.here: there is no such module"),
        ("`manage.py nothing`", "manage.py nothing: there is no such command"),
        ("`COUNTERSIGN_" + "NOTHING`", "COUNTERSIGN_" + "NOTHING: nothing reads it"),
        ("[one](nothing.md)", "nothing.md: the link leads nowhere"),
    ],
)
def test_missing_names_are_reported(text: str, problem: str) -> None:
    (found,) = docs.problems(PAGE, text)
    assert found.startswith(problem)


def test_a_stale_table_is_reported_and_regenerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    stale = (
        "# A page\n\n<!-- begin generated: profile -->\nold\n<!-- end generated: profile -->\n\nThe end.\n"
    )
    page.write_text(stale)
    monkeypatch.setattr(docs, "pages", lambda: [page])

    assert docs.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert page.read_text() == stale

    assert docs.main([]) == 0
    assert docs.profile_table() in page.read_text()
    assert page.read_text().endswith("-->\n\nThe end.\n")
    assert docs.main(["--check"]) == 0


def test_a_page_that_loads_from_another_site_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "index.html"
    page.write_text(
        '<link href="css/own.css"><script src="js/own.js"></script><a href="https://example.com">x</a>'
    )
    assert docs.main(["--site", str(tmp_path)]) == 0

    page.write_text('<link rel="stylesheet" href="https://fonts.example/a.css"><img src=//cdn.example/a.png>')
    (tmp_path / "own.css").write_text("@font-face { src: url(https://fonts.example/b.woff2) }")
    assert docs.main(["--site", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert [address in error for address in ("fonts.example/a.css", "//cdn.example/a.png", "b.woff2")] == [
        True
    ] * 3


def test_every_integrity_check_is_in_the_runbook() -> None:
    section = RUNBOOK.partition("## Integrity checks")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)[1:] == [
        rule.name for rule in INTEGRITY_CHECKS
    ]
