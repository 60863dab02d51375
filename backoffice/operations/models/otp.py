"""The authenticator secret from which the provider's one-time codes are made, and the codes already used.

The secret waits encrypted with the operation that stores it. The last approval puts it into use; an end without
approval deletes it.
"""

import base64
import binascii
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from cryptography.hazmat.primitives.hashes import SHA1, SHA256, SHA512
from cryptography.hazmat.primitives.twofactor import InvalidToken
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core import encryption
from backoffice.core.encryption import EncryptedRow

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_ALGORITHMS: dict[str, type[SHA1 | SHA256 | SHA512]] = {"SHA1": SHA1, "SHA256": SHA256, "SHA512": SHA512}
_DIGITS = range(6, 9)
_PERIODS = range(10, 301)  # seconds
_SHORTEST_KEY = 10  # bytes: some providers still use 80 bits
_BASE32 = re.compile(r"[A-Z2-7]+")
_FINGERPRINT_LENGTH = 16


class TotpSecretError(Exception):
    """The text is no usable authenticator secret. The message has nothing of it."""

    def __init__(self, message: "StrOrPromise") -> None:
        self.message = message
        super().__init__(str(message))


@dataclass(frozen=True)
class TotpSecret:
    """The secret of an authenticator and how its codes are made (RFC 6238)."""

    key: bytes = field(repr=False)
    algorithm: str = "SHA1"
    digits: int = 6
    period: int = 30  # seconds of one step

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what the provider shows: base32, or an `otpauth://totp/` address. Raises TotpSecretError."""
        text = text.strip()
        if not text.lower().startswith("otpauth:"):
            return cls(_key(text))
        parts = urlsplit(text)
        if parts.netloc.lower() != "totp":
            raise TotpSecretError(_("Only codes that change with time are supported (otpauth://totp/…)."))
        values = {name: found[-1] for name, found in parse_qs(parts.query).items()}
        algorithm = values.get("algorithm", "SHA1").upper().replace("-", "")
        if algorithm not in _ALGORITHMS:
            raise TotpSecretError(_("The address has an algorithm other than SHA1, SHA256 or SHA512."))
        return cls(
            _key(values.get("secret", "")),
            algorithm,
            _number(values.get("digits", "6"), _DIGITS),
            _number(values.get("period", "30"), _PERIODS),
        )

    def address(self) -> str:
        """The secret as `otpauth://totp/` address: what is encrypted."""
        values = {
            "secret": base64.b32encode(self.key).decode(),
            "algorithm": self.algorithm,
            "digits": self.digits,
            "period": self.period,
        }
        return f"otpauth://totp/?{urlencode(values)}"

    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits for two people to compare. Without the key they do not reveal the secret."""
        return encryption.keyed_hashes(self.address(), purpose="otp secret")[0][:_FINGERPRINT_LENGTH].upper()

    def step_at(self, moment: datetime) -> int:
        """The number of the step at this time."""
        return int(moment.timestamp()) // self.period

    def end_of(self, step: int) -> datetime:
        return datetime.fromtimestamp((step + 1) * self.period, tz=UTC)

    def code(self, step: int) -> SecretStr:
        """The code of one step."""
        return SecretStr(self._totp().generate(step * self.period).decode())

    def is_code_at(self, code: str, moment: datetime) -> bool:
        """Whether it is the code of the step at this time, or of the one before or after."""
        typed, totp = code.replace(" ", ""), self._totp()
        return typed.isascii() and any(
            _is_valid(totp, typed, (self.step_at(moment) + drift) * self.period) for drift in (-1, 0, 1)
        )

    def _totp(self) -> TOTP:
        return TOTP(
            self.key, self.digits, _ALGORITHMS[self.algorithm](), self.period, enforce_key_length=False
        )


def _is_valid(totp: TOTP, code: str, moment: int) -> bool:
    try:
        totp.verify(code.encode(), moment)
    except InvalidToken:
        return False
    return True


def _key(text: str) -> bytes:
    compact = re.sub(r"[\s-]", "", text).rstrip("=").upper()
    try:
        key = base64.b32decode(compact + "=" * (-len(compact) % 8)) if _BASE32.fullmatch(compact) else b""
    except binascii.Error:
        key = b""
    if len(key) < _SHORTEST_KEY:
        raise TotpSecretError(
            _("This is not an authenticator secret: enter the letters and digits, or the otpauth:// address.")
        )
    return key


def _number(text: str, allowed: range) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and int(text) in allowed):
        raise TotpSecretError(_("The address specifies a code length or a period that is not supported."))
    return int(text)


class OtpSecret(EncryptedRow):
    """The authenticator secret that an operation stores: waiting for its approval, or in use."""

    ENCRYPTED_FIELD = "encrypted_address"

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting for approval"
        IN_USE = "in_use", "In use"

    operation = models.OneToOneField(
        "operations.Operation", on_delete=models.PROTECT, primary_key=True, related_name="otp_secret"
    )
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    fingerprint = models.CharField(max_length=_FINGERPRINT_LENGTH)
    since = models.DateTimeField()
    encrypted_address = models.BinaryField()
    # The newest step whose code was taken for a request. It only grows: a code is used once.
    last_step = models.BigIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="in_use"), name="otp_secret_one_in_use"
            ),
            models.CheckConstraint(
                condition=Q(state__in=["waiting", "in_use"]), name="otp_secret_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"Authenticator secret {self.fingerprint}"

    @property
    def bound_to(self) -> str:
        """The context of the encryption: it can only be decrypted as the secret of this operation."""
        return f"otp-secret:{self.operation_id}"

    @property
    def owner(self) -> str:
        return f"the provider's authenticator ({self.fingerprint})"

    def secret(self) -> TotpSecret:
        """The secret itself. Raises DecryptionError."""
        return TotpSecret.parse(self.decrypted())


def otp_secret_in_use() -> OtpSecret | None:
    """The stored authenticator secret from which codes are made."""
    return OtpSecret.objects.filter(state=OtpSecret.State.IN_USE).first()


class UsedOtp(models.Model):
    """A keyed hash of a code that a person entered, kept while the code is valid, so that it is used once."""

    hash = models.CharField(max_length=64, primary_key=True)
    reference = models.CharField(max_length=12)  # of the operation for which it was entered
    valid_until = models.DateTimeField(db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"A code entered for {self.reference}"


def end_of_step(moment: datetime, period: int = 30) -> datetime:
    """When the code that an authenticator shows at this time stops being shown."""
    return datetime.fromtimestamp(0, tz=UTC) + timedelta(
        seconds=(int(moment.timestamp()) // period + 1) * period
    )
