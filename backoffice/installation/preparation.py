"""The first half of `manage.py setup`, before there are settings: the files of variables, and the database.

The other half (`management/commands/setup.py`) runs with the settings that these files make. They have `NAME=value` a
line and are readable by their owner only. What is in one is never overwritten.
"""

import argparse
import os
import re
import sys
from collections.abc import Mapping, Sequence
from getpass import getpass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from backoffice.core.storage.files import sync_folder
from backoffice.environment_variables import ADMIN_DATABASE_URL, problem_of_line
from backoffice.installation.database import (
    FORM,
    SCHEMES,
    DatabaseSetupError,
    DatabaseUrls,
    check_database,
    fault_of_address,
    holds_installation,
    new_urls,
    prepare_database,
)
from backoffice.installation.questions import (
    DATA_DIR,
    DATABASE_URL,
    DESTINATIONS,
    JOURNAL_DIR,
    KEYS,
    MIGRATION_DATABASE_URL,
    MissingAnswersError,
    answered,
    ask_at_terminal,
)

_LINE = re.compile(r"(COUNTERSIGN_\w+)=(.*)")
_PLAIN = re.compile(r"[\w.,:;/@%+=~?&<> -]*", re.ASCII)


class EnvironmentFileError(Exception):
    """The file cannot be used. Nothing was written to it."""


FAILURES = (MissingAnswersError, DatabaseSetupError, EnvironmentFileError, OSError, psycopg.Error)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command, for both of its halves."""
    parser.add_argument(
        "--env-file", type=Path, default=Path(".env"), help="where the variables are stored (default: .env)"
    )
    parser.add_argument(
        "--migration-env-file",
        type=Path,
        help="where the password of the role that owns the tables is stored (default: the same name with .migrate)",
    )
    parser.add_argument("--no-input", action="store_true", help="ask nothing: use the environment alone")
    parser.add_argument(
        "--administrator",
        action="append",
        default=[],
        metavar='"NAME <EMAIL>"',
        help="one of the first two administrators; give it twice",
    )


def main(arguments: Sequence[str]) -> None:
    """Store what is missing and set up the database; the process's environment has all variables afterwards.

    Ends the process with a message if something is missing or wrong.
    """
    parser = argparse.ArgumentParser(prog="manage.py setup", add_help=False)
    add_arguments(parser)
    options, _of_django = parser.parse_known_args(arguments)
    if {"-h", "--help"} & set(arguments):
        return
    try:
        owner_file = options.migration_env_file or options.env_file.with_name(
            f"{options.env_file.name}.migrate"
        )
        _prepare(options.env_file, owner_file, is_asked=sys.stdin.isatty() and not options.no_input)
    except FAILURES as exc:
        sys.exit(f"{exc}\nSetup is not complete. Run it again: it continues where it stopped.")


def _prepare(env_file: Path, owner_file: Path, *, is_asked: bool) -> None:
    """`owner_file` is for `manage.py migrate` alone: no process that runs may read it."""
    for file in (env_file, owner_file):
        os.environ.update({name: os.environ.get(name, value) for name, value in read_variables(file).items()})
    stored = read_variables(env_file)
    for name in (ADMIN_DATABASE_URL, DATABASE_URL, MIGRATION_DATABASE_URL):
        _check_address(name, is_asked=is_asked, files=(env_file, owner_file))
    values = answered(os.environ, stored, ask_at_terminal if is_asked else None)
    urls = _database_urls()
    _check_keys_are_not_made_anew(urls, stored)
    for folder in _folders(values):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _store(env_file, {**values, DATABASE_URL: urls.runs})
    if urls.owns:
        _store(owner_file, {MIGRATION_DATABASE_URL: urls.owns})
    administrator = os.environ.get(ADMIN_DATABASE_URL, "")
    if administrator:
        prepare_database(administrator, urls, _report)
    for url in filter(None, (urls.runs, urls.owns)):
        if urlsplit(url).scheme in SCHEMES:
            check_database(url)
    os.environ.update({**values, DATABASE_URL: urls.runs, MIGRATION_DATABASE_URL: urls.owns})


def _check_address(name: str, *, is_asked: bool, files: Sequence[Path]) -> None:
    """The variable is then empty or an address that can be used. A wrong one is asked again, unless a file has it.

    Raises DatabaseSetupError.
    """
    os.environ[name] = os.environ.get(name, "").strip()
    file = next(
        (file for file in files if read_variables(file).get(name, "").strip() == os.environ[name]), None
    )
    while fault := _fault_of(name, os.environ[name]):
        where = f" (stored in {file}: change it there)" if file else ""
        message = f"{name}{where} is no address of a PostgreSQL database: {fault}. {FORM}"
        if file or not is_asked:
            raise DatabaseSetupError(message)
        _report(message)
        os.environ[name] = getpass(f"{name}: ").strip()


def _fault_of(name: str, address: str) -> str:
    is_sqlite = name == DATABASE_URL and address.startswith("sqlite:")
    return "" if is_sqlite or not address else fault_of_address(address)


def _folders(values: Mapping[str, str]) -> list[Path]:
    """Those for data, the journal, and checkpoints in files."""
    addresses = [urlsplit(address.strip()) for address in values[DESTINATIONS].split(",")]
    checkpoints = [Path(address.path).parent for address in addresses if address.scheme == "file"]
    return [Path(values[DATA_DIR]), Path(values[JOURNAL_DIR]), *checkpoints]


def _check_keys_are_not_made_anew(urls: DatabaseUrls, stored: dict[str, str]) -> None:
    """With other keys an installation could neither read its secrets nor verify its seals and checkpoints.

    A database that cannot be reached may hold one, so it raises DatabaseSetupError.
    """
    made = [name for name in KEYS if not (stored.get(name) or os.environ.get(name))]
    administrator = os.environ.get(ADMIN_DATABASE_URL, "")
    is_postgresql = urlsplit(administrator or urls.runs).scheme in SCHEMES
    if made and is_postgresql and holds_installation(urls.runs, administrator):
        raise MissingAnswersError(
            f"The database holds an installation already, and its keys are not set: {', '.join(made)}. Set them "
            "as they are for its processes."
        )


def _database_urls() -> DatabaseUrls:
    runs, owns = os.environ.get(DATABASE_URL, ""), os.environ.get(MIGRATION_DATABASE_URL, "")
    administrator = os.environ.get(ADMIN_DATABASE_URL, "")
    if runs and (owns or not administrator):
        return DatabaseUrls(runs, owns)
    if not administrator:
        raise MissingAnswersError(
            f"Not set: {DATABASE_URL}, or {ADMIN_DATABASE_URL} (postgres://… of a role that may create roles and the "
            "database, used once and not stored)"
        )
    made = new_urls(administrator)
    return DatabaseUrls(runs or made.runs, owns or made.owns)


def _store(file: Path, values: dict[str, str]) -> None:
    added = add_variables(file, values)
    _report(f"{file}: added {len(added)} variables" if added else f"{file}: nothing to add")


def _report(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def read_variables(path: Path) -> dict[str, str]:
    """The variables in the file; none if there is no file.

    Raises EnvironmentFileError if others may read it, or if a line cannot be read: what it sets would be made anew.
    """
    if not path.exists():
        return {}
    if path.stat().st_mode & 0o077:
        raise EnvironmentFileError(f"{path} can be read by others than its owner: chmod 600 {path}")
    text = path.read_text()
    if problem := problem_of_line(text):
        raise EnvironmentFileError(f"{path}: {problem}")
    lines = map(_LINE.fullmatch, text.splitlines())
    return {found[1]: found[2] for found in lines if found}


def add_variables(path: Path, values: Mapping[str, str]) -> list[str]:
    """Add the variables that the file lacks, and return their names. Raises EnvironmentFileError.

    The file is replaced as a whole, so that a crash leaves the earlier one.
    """
    stored = read_variables(path)
    new = {name: value for name, value in values.items() if name not in stored}
    unusable = [name for name, value in new.items() if not _PLAIN.fullmatch(value) or value.startswith("$")]
    if unusable:
        raise EnvironmentFileError(f"Quotes, backslashes and $ cannot be stored: {', '.join(unusable)}")
    if not new:
        return []
    before = path.read_text() if path.exists() else ""
    text = before + ("\n" if before and not before.endswith("\n") else "")
    text += "".join(f"{name}={value}\n" for name, value in new.items())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(path.parent)
    return list(new)
