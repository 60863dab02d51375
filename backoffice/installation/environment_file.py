"""Files of variables, `NAME=value` a line, readable by their owner only. What is in one is never overwritten."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from backoffice.core.storage.files import sync_folder

_LINE = re.compile(r"(COUNTERSIGN_\w+)=(.*)")
_PLAIN = re.compile(r"[\w.,:;/@%+=~?&<> -]*", re.ASCII)


class EnvironmentFileError(Exception):
    """The file cannot be used. Nothing was written to it."""


def read(path: Path) -> dict[str, str]:
    """The variables in the file; none if there is no file. Raises EnvironmentFileError if others may read it."""
    if not path.exists():
        return {}
    if path.stat().st_mode & 0o077:
        raise EnvironmentFileError(f"{path} can be read by others than its owner: chmod 600 {path}")
    lines = map(_LINE.fullmatch, path.read_text().splitlines())
    return {found[1]: found[2] for found in lines if found}


def add(path: Path, values: Mapping[str, str]) -> list[str]:
    """Add the variables that the file lacks, and return their names. Raises EnvironmentFileError.

    The file is replaced as a whole, so that a crash leaves the earlier one.
    """
    stored = read(path)
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
