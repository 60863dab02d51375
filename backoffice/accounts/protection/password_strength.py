"""Refuse passwords that are guessed easily, however long they are."""

from typing import Any

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
