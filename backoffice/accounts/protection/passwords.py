"""Refuse passwords that are guessed easily, however long they are, and those of known breaches.

Breached ones are those of a sorted file of SHA-1 hashes, as "Have I Been Pwned" offers it. It is searched on this
machine, and nothing of a password leaves it. Without a file, those most common in breaches are refused all the same, as
guessed easily.
"""

import hashlib
import os
from typing import Any, BinaryIO

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from zxcvbn import zxcvbn

# Of zxcvbn's scores 0 to 4: more than 10^8 guesses by someone who knows common passwords, patterns and this person.
_MIN_SCORE = 3
CONTEXT_WORDS = (
    *("countersign", "backoffice", "merchant", "payment", "payments", "payout", "withdrawal", "treasury"),
    *("preparer", "approver", "auditor", "administrator"),
)
"""Words that everybody here thinks of first. The list is in docs/operator/people-and-keys.md."""

_ESTIMATED_CHARACTERS = 72  # the estimate takes long for long passwords; the rest can only make it stronger
_DIGITS = 40  # hexadecimal digits of the hash of a breached password, with which each line begins


class GuessablePasswordValidator:
    """A validator of Django: estimates the guesses needed, with the person's name and email address, the words of
    this product and the host names of this installation known.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Raises ValidationError."""
        known = [user.full_name, *user.full_name.split(), *user.email.split("@")] if user else []
        here = [label for host in settings.ALLOWED_HOSTS for label in host.split(".") if label]
        estimate = zxcvbn(password[:_ESTIMATED_CHARACTERS], user_inputs=[*known, *CONTEXT_WORDS, *here])
        if estimate["score"] < _MIN_SCORE:
            raise ValidationError(
                gettext(
                    "This password is easily guessed. Use four or more unrelated words, or let a password manager "
                    "generate one."
                ),
                code="password_guessable",
            )

    def get_help_text(self) -> str:
        return gettext(
            "It must not be easily guessed: no common password, repetition, sequence or well-known phrase, and nothing "
            "like your name or email address."
        )


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
