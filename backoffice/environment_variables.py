"""How settings read the variables of the process and of the file that `manage.py setup` stored.

What cannot be read is refused with the name of the setting, never ignored and never repeated: it may be a secret.
"""

import io
import os
import re
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

ADMIN_DATABASE_URL = "COUNTERSIGN_SETUP_DATABASE_URL"
"""Of a role that may create roles and databases. Read by `manage.py setup` alone, and stored nowhere."""
_ASSIGNMENT = re.compile(r"(?:export )?[A-Za-z_0-9]+=.*")  # those that `read_env` reads
_COMMENTS = ("#", ";")  # those of systemd, which reads the same file
_YES_OR_NO = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
_EXPECTED = {
    bool: "must be true or false; yes or no, on or off, and 1 or 0 are accepted, too",
    int: "must be a whole number",
    float: "must be a number",
}


class EnvironmentVariables(environ.FileAwareEnv):
    """The variables of the process. COUNTERSIGN_…_FILE names a file that holds the value."""

    def __init__(self) -> None:  # typed, unlike that of the library
        environ.FileAwareEnv.__init__(self)
        self.names_read: set[str] = set()

    def get_value(self, var: str, *args: Any, **options: Any) -> Any:
        """The value of this variable, or the default. Raises ImproperlyConfigured, without the value, if it is none."""
        self.names_read.add(var)
        try:
            return super().get_value(var, *args, **options)
        except OSError as exc:
            raise ImproperlyConfigured(
                f"{var}_FILE names a file that cannot be read: {exc.strerror}"
            ) from exc
        except ValueError:
            expected = _EXPECTED.get(options.get("cast", str), "cannot be read")
            raise ImproperlyConfigured(f"{var} {expected}") from None

    @classmethod
    def parse_value(cls, value: str, cast: Any) -> Any:
        """As the library, but strict: it takes what is no yes for a no, and drops letters from numbers.

        Raises ValueError.
        """
        if cast is bool:
            return _yes_or_no(value)
        return float(value) if cast is float else environ.FileAwareEnv.parse_value(value, cast)

    def unknown(self) -> list[str]:
        """The variables of Countersign that nothing has read, neither by their name nor with _FILE appended."""
        known = {*self.names_read, *(f"{name}_FILE" for name in self.names_read), ADMIN_DATABASE_URL}
        return sorted(name for name in os.environ if name.startswith("COUNTERSIGN_") and name not in known)

    def read_file(self, setting: str, path: str) -> None:
        """Add the variables of this file that the process does not have.

        Raises ImproperlyConfigured for a file or a line that cannot be read, and for a missing file that the setting
        names. The default may be missing.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except FileNotFoundError:
            if setting not in self.ENVIRON:
                return
            raise ImproperlyConfigured(f"{setting} names {path}, which does not exist") from None
        except UnicodeDecodeError:
            raise ImproperlyConfigured(f"{setting} names {path}, which cannot be read: not UTF-8") from None
        except OSError as exc:
            raise ImproperlyConfigured(
                f"{setting} names {path}, which cannot be read: {exc.strerror}"
            ) from exc
        if problem := problem_of_line(text):
            raise ImproperlyConfigured(f"{setting} names {path}, whose {problem}")
        environ.Env.read_env(io.StringIO("\n".join(filter(_ASSIGNMENT.fullmatch, text.splitlines()))))


def _yes_or_no(text: str) -> bool:
    try:
        return _YES_OR_NO[text.strip().lower()]
    except KeyError:
        raise ValueError from None


def problem_of_line(text: str) -> str:
    """Which line of a file of variables cannot be read, without its content; empty if all can."""
    for number, line in enumerate(text.splitlines(), start=1):
        is_empty = not line.strip() or line.lstrip().startswith(_COMMENTS)
        if not (is_empty or _ASSIGNMENT.fullmatch(line)):
            return f"line {number} cannot be read: write NAME=value, without a space before the name or around the ="
    return ""
