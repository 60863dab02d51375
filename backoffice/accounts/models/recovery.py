"""Recovery codes: ten single-use codes that stand in for a lost authenticator."""

import secrets

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac

CODES_AT_A_TIME = 10
_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"  # no I, L, O, U, 0, 1: they are misread or misheard
_LENGTH = 16  # 78 bits


class RecoveryCode(models.Model):
    """One recovery code, kept as a keyed hash.

    A code is drawn at random from 2^78, so it cannot be guessed even by someone who holds both the table
    and the key; a slow password hash would cost seconds at each attempt and add nothing. The key
    (`SECRET_KEY`) makes a stolen table useless on its own, and old keys still count while they are listed in
    `SECRET_KEY_FALLBACKS`.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="recovery_codes"
    )
    digest = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return "used recovery code" if self.used_at else "recovery code"

    @staticmethod
    def draw() -> str:
        """A new code in groups of four, such as "7KQ2-M4XB-Z9TD-VR3H"."""
        letters = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        return "-".join(letters[start : start + 4] for start in range(0, _LENGTH, 4))

    @staticmethod
    def digests(code: str, *, user_id: int) -> list[str]:
        """The hashes that this code has under each key in force, the current key first."""
        letters = "".join(letter for letter in code.upper() if letter.isalnum())
        keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
        return [
            salted_hmac(
                "accounts.recovery", f"{user_id}:{letters}", secret=key, algorithm="sha256"
            ).hexdigest()
            for key in keys
        ]
