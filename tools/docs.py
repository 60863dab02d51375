"""Generate the tables of the documentation and check the names in its pages.

`python -m tools.docs` rewrites the generated regions of the pages; `--check` changes nothing and fails if one
is stale, or if a page names a file, a module, a `make` target, a management command or a variable that does
not exist. `--site` fails if a page of the built site loads anything from another site.
"""

import argparse
import ast
import os
import re
import runpy
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from unittest.mock import patch

from django.core.exceptions import ImproperlyConfigured

from payments_gateway.profile.model import PROFILES
from tools.asvs import answers_table
from tools.deploy_check import production_environment
from tools.measurements import benchmarks_table, capacity_table, partitions_table, storage_table
from tools.processes import ROOT, clean_environment

SETTINGS = ROOT / "backoffice" / "settings.py"
PREFIX = "COUNTERSIGN_"
_REGION = re.compile(r"(<!-- begin generated: (\w+) -->\n).*?(<!-- end generated: \2 -->)", re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
_PATH = re.compile(r"(?:[\w.-]+/)+[\w.-]*")
_PACKAGES = [folder.parent.name for folder in sorted(ROOT.glob("*/__init__.py"))]
_MODULE = re.compile(rf"(?:{'|'.join(_PACKAGES)})(?:\.\w+)+")
_OF_OTHERS = {"pytest", "venv"}  # third-party modules that pages mention with `python -m`
_LOADED = re.compile(
    r"""(?:src\s*=\s*["']?|<link\b[^>]*\bhref\s*=\s*["']?|url\(\s*["']?|@import\s+["'])((?:https?:)?//[^"'\s)>]+)"""
)
_FROM_DJANGO = {"check", "collectstatic", "migrate", "shell", "showmigrations"}
_MADE_LATER = ("var/", "site/", ".venv/")  # not in git: data, the built documentation, the environment


@dataclass(frozen=True)
class Setting:
    """One environment variable with its description."""

    section: str
    name: str
    default: str
    is_required: bool
    meaning: str


# Generated tables


def settings_table() -> str:
    """A table of the environment variables for each section of the settings, in their order."""
    lines: list[str] = []
    section = ""
    for setting in settings_read():
        if setting.section != section:
            section = setting.section
            lines += [
                "",
                f"## {section}",
                "",
                "| Variable | Default | Required in production | Meaning |",
                "|---|---|---|---|",
            ]
        required = "yes" if setting.is_required else ""
        lines.append(f"| `{setting.name}` | {setting.default} | {required} | {setting.meaning} |")
    return "\n".join([*lines, "", ""])


def profile_table() -> str:
    """A row for each field of the provider profile, and its tables in full below."""
    lines = [
        "",
        "| Field | `specification` (default) | `published`, if other | Confidence"
        " | Section of the specification | Meaning |",
        "|---|---|---|---|---|---|",
    ]
    tables: list[str] = []
    published = dict(PROFILES["published"])
    for point in PROFILES["specification"].open_points():
        other = "" if published[point.name] == point.value else _profile_default(published[point.name])
        default = _profile_default(point.value)
        if isinstance(point.value, Mapping):
            default = f"[below](#{point.name})"
            tables += ["", f"### {point.name}", "", "```toml", f"[{point.name}]", *_toml(point.value), "```"]
        lines.append(
            f"| `{point.name}` | {default} | {other} | {point.confidence} | {point.where} | {point.why} |"
        )
    return "\n".join([*lines, "", "## Tables", *tables, ""])


def _profile_default(value: object) -> str:
    if not isinstance(value, tuple):
        return f"`{str(value).lower() if isinstance(value, bool) else value}`"
    items = [".".join(item) if isinstance(item, tuple) else str(item) for item in value]
    return ", ".join(f"`{item}`" if item else "`data` itself" for item in items) or "none"


def _toml(table: Mapping[object, object]) -> Iterator[str]:
    for key, value in table.items():
        text = f"'{value}'" if "\\" in str(value) else f'"{value}"'
        yield f'"{key}" = {text}'


GENERATED: dict[str, Callable[[], str]] = {
    "settings": settings_table,
    "profile": profile_table,
    "asvs": answers_table,
    "benchmarks": benchmarks_table,
    "storage": storage_table,
    "partitions": partitions_table,
    "capacity": capacity_table,
}


def refreshed(text: str) -> str:
    """The page with its generated regions up to date. Raises KeyError for a region without a generator."""
    return _REGION.sub(lambda found: f"{found[1]}{GENERATED[found[2]]()}{found[3]}", text)


# Variables that the settings read


def settings_read(source: str | None = None) -> list[Setting]:
    """Every variable that the settings read, with the `#:` comment above it.

    Raises ValueError for a variable without such a comment, or without a default that can be shown: if the
    default is an expression, the comment has to state it ("Default: …").
    """
    text = SETTINGS.read_text() if source is None else source
    lines = text.splitlines()
    required = required_in_production()
    found: dict[str, Setting] = {}
    for call, statement in _reads(ast.parse(text)):
        name = str(ast.literal_eval(call.args[0]))
        comment = _comment_above(lines, call.lineno) or _comment_above(lines, statement.lineno)
        if name in found:
            continue  # read a second time: described at the first
        if not comment:
            raise ValueError(f"{name} has no comment that begins with `#:` above it")
        default, meaning = _default_and_meaning(name, call, comment)
        section = _section_above(lines, statement.lineno)
        found[name] = Setting(section, name, default, name in required, meaning)
    return list(found.values())


@cache
def required_in_production() -> frozenset[str]:
    """The variables without which the process refuses to start in production, found by removing each in turn."""
    with tempfile.TemporaryDirectory() as folder:
        complete = production_environment(Path(folder))
        others = complete.keys() - {f"{PREFIX}DATA_DIR"}
        return frozenset(
            left_out
            for left_out in others
            if not _starts({name: complete[name] for name in complete if name != left_out})
        )


def _starts(environment: Mapping[str, str]) -> bool:
    with patch.dict(os.environ, clean_environment(environment), clear=True):
        try:
            runpy.run_path(str(SETTINGS))
        except ImproperlyConfigured:
            return False
    return True


def _reads(tree: ast.Module) -> Iterator[tuple[ast.Call, ast.stmt]]:
    """Each call that reads a variable of ours, with its statement, in the order of the file."""
    for statement in tree.body:
        calls = [
            node
            for node in ast.walk(statement)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "env"
            and node.args
        ]
        for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
            yield call, statement


def _comment_above(lines: list[str], number: int) -> str:
    """The `#:` comment that ends on the line above this one, as one line of text."""
    found: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("#:"):
            break
        found.insert(0, line.strip()[2:].strip())
    return " ".join(found)


def _section_above(lines: list[str], number: int) -> str:
    headings = [line[5:].strip() for line in lines[:number] if line.startswith("# == ")]
    if not headings:
        raise ValueError(f"Line {number} of the settings is in no section (`# == Name`)")
    return headings[-1]


def _default_and_meaning(name: str, call: ast.Call, comment: str) -> tuple[str, str]:
    match = re.search(r"\s*Default: (.+?)\.(?=\s|$)", comment)
    if match:
        return match[1], comment.replace(match[0], "", 1).strip()
    default = next((keyword.value for keyword in call.keywords if keyword.arg == "default"), None)
    try:
        value = None if default is None else ast.literal_eval(default)
    except ValueError:
        raise ValueError(f'{name}: say the default in its comment, as in "Default: none."') from None
    return _default_text(value), comment


def _default_text(value: object) -> str:
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case None | "" | [] | {}:
            return "none"
        case list():
            return f"`{','.join(map(str, value))}`"
    return f"`{value}`"


# Names in pages


def problems(page: Path, text: str) -> Iterator[str]:
    """Everything the page names that does not exist."""
    prose = _FENCE.sub("", text)
    for code in dict.fromkeys(_CODE.findall(prose)):
        if _names_a_missing_file(code):
            yield f"{code}: there is no such file"
        if _MODULE.fullmatch(code) and not _is_in_a_module(code):
            yield f"{code}: there is no such module or name"
    for target in dict.fromkeys(_LINK.findall(prose)):
        if "://" not in target and not (page.parent / target).exists():
            yield f"{target}: the link leads nowhere"
    yield from _unknown_commands(text)


def _unknown_commands(text: str) -> Iterator[str]:
    makefile = (ROOT / "Makefile").read_text()
    for target in sorted(set(re.findall(r"(?:^|`)make ([a-z][\w-]*)", text, re.MULTILINE))):
        if not re.search(rf"^{target}:", makefile, re.MULTILINE):
            yield f"make {target}: there is no such target"
    for module in sorted(set(re.findall(r"python -m ([\w.]+)", text)) - _OF_OTHERS):
        if not _is_in_a_module(module):
            yield f"python -m {module}: there is no such module"
    for command in sorted(set(re.findall(r"manage\.py ([a-z_]+)", text)) - _management_commands()):
        yield f"manage.py {command}: there is no such command"
    for variable in sorted(set(re.findall(rf"{PREFIX}[A-Z0-9_]*[A-Z0-9]", text)) - _variables()):
        yield f"{variable}: nothing reads it"


def _names_a_missing_file(code: str) -> bool:
    """Whether this has the form of a path of the project and does not exist."""
    if not _PATH.fullmatch(code) or code.startswith(_MADE_LATER):
        return False
    is_path = code.endswith("/") or "." in code.rpartition("/")[2] or (ROOT / code.partition("/")[0]).exists()
    return is_path and not (ROOT / code).exists()


def _is_in_a_module(dotted: str) -> bool:
    """Whether the longest prefix that is a module contains each of the remaining names in its text."""
    names = dotted.split(".")
    for length in range(len(names), 0, -1):
        path = ROOT.joinpath(*names[:length])
        module = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if module.exists():
            text = module.read_text()
            return all(re.search(rf"\b{name}\b", text) for name in names[length:])
    return False


@cache
def _management_commands() -> set[str]:
    files = [file for package in _PACKAGES for file in (ROOT / package).rglob("management/commands/*.py")]
    return {file.stem for file in files} | _FROM_DJANGO


@cache
def _variables() -> set[str]:
    """Every variable of ours that the program, its tests or its tools read."""
    texts = [file.read_text() for package in _PACKAGES for file in (ROOT / package).rglob("*.py")]
    texts.append((ROOT / ".ci" / "run").read_text())
    return {name for text in texts for name in re.findall(rf"{PREFIX}[A-Z0-9_]*[A-Z0-9]", text)}


def foreign_loads(text: str) -> list[str]:
    """URLs of other sites that a page or a stylesheet loads; links are not included."""
    return _LOADED.findall(text)


def pages() -> list[Path]:
    """The README, the security policy and every page of the documentation."""
    return [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(arguments: list[str] | None = None) -> int:
    """Write the generated regions, or report problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if something is wrong")
    parser.add_argument("--site", type=Path, help="the folder of the built site, to check what it loads")
    options = parser.parse_args(arguments)
    problems_found = (
        [*_problems_in_pages(is_check=options.check)]
        if options.site is None
        else [*_problems_in_site(options.site)]
    )
    for line in problems_found:
        print(line, file=sys.stderr)
    return 1 if problems_found else 0


def _problems_in_pages(*, is_check: bool) -> Iterator[str]:
    for page in pages():
        text = page.read_text()
        fresh = refreshed(text)
        if fresh != text and is_check:
            yield f"{page}: a generated table is stale, run `make docs-tables`"
        elif fresh != text:
            page.write_text(fresh)
        yield from (f"{page}: {problem}" for problem in problems(page, fresh))


def _problems_in_site(site: Path) -> Iterator[str]:
    for file in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        yield from (f"{file}: loads {address}" for address in foreign_loads(file.read_text()))


if __name__ == "__main__":
    sys.exit(main())
