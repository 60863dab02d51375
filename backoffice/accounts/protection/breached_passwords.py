"""Refuse passwords of known breaches: those of a sorted file of SHA-1 hashes, as "Have I Been Pwned" offers it.

The file is searched on this machine, and nothing of a password leaves it. Without a file, those most common in breaches
are refused all the same (`password_strength`).
"""

import hashlib
import os
from typing import Any, BinaryIO

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

_DIGITS = 40  # hexadecimal digits of a hash, with which each line begins


class BreachedPasswordValidator:
    """A validator of Django."""

    def validate(self, password: str, user: Any = None) -> None:
        """Raises ValidationError, and OSError if the file cannot be read: nothing is accepted then."""
        if settings.BREACHED_PASSWORDS_FILE and is_listed(settings.BREACHED_PASSWORDS_FILE, password):
            raise ValidationError(
                gettext("This password is known from a breach of another service. Choose another one."),
                code="password_breached",
            )

    def get_help_text(self) -> str:
        return gettext("It must not be known from a breach.")


def is_listed(path: str, password: str) -> bool:
    """Whether a line of the file, whose lines are sorted, begins with the hash of the password. Raises OSError."""
    wanted = hashlib.sha1(password.encode(), usedforsecurity=False).hexdigest().upper().encode()
    with open(path, "rb") as file:
        low, high = 0, file.seek(0, os.SEEK_END)
        while low < high:
            middle = (low + high) // 2
            found = _hash_after(file, middle)
            if found and found < wanted:
                low = middle + 1
            else:
                high = middle
        return _hash_after(file, low) == wanted


def _hash_after(file: BinaryIO, offset: int) -> bytes:
    """The hash of the first line that begins at this offset or later; empty at the end of the file."""
    file.seek(max(offset - 1, 0))
    if offset:
        file.readline()
    return file.readline()[:_DIGITS].upper()
