"""How settings read the variables of the process and of the file that `manage.py setup` stored.

What cannot be read is refused with the name of the setting, never ignored and never repeated: it may be a secret.
"""

import io
import re
from collections.abc import Iterator
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

_ASSIGNMENT = re.compile(r"(?:export )?[A-Za-z_0-9]+=.*")  # those that `read_env` reads
_COMMENTS = ("#", ";")  # those of systemd, which reads the same file


class EnvironmentVariables(environ.FileAwareEnv):
    """The variables of the process. COUNTERSIGN_…_FILE names a file that holds the value."""

    def __init__(self) -> None:  # typed, unlike that of the library
        super().__init__()

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
        for number in _unreadable_lines(text):
            raise ImproperlyConfigured(
                f"{setting} names {path}, whose line {number} cannot be read: write NAME=value, without a space before "
                "the name or around the ="
            )
        environ.Env.read_env(io.StringIO("\n".join(filter(_ASSIGNMENT.fullmatch, text.splitlines()))))


def _unreadable_lines(text: str) -> Iterator[int]:
    for number, line in enumerate(text.splitlines(), start=1):
        is_empty = not line.strip() or line.lstrip().startswith(_COMMENTS)
        if not (is_empty or _ASSIGNMENT.fullmatch(line)):
            yield number
