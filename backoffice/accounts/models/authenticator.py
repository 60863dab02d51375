"""The authenticator application on a person's phone: time-based one-time codes (RFC 6238)."""

import base64
import re
import secrets
import uuid
from datetime import timedelta
from urllib.parse import quote, urlencode

from django.conf import settings
from django.db import models
from django.db.models import F
from django.utils import timezone
from django_otp.models import Device, ThrottlingMixin, TimestampMixin
from django_otp.oath import TOTP

from backoffice.core.sealed import SealedRow

STEP_SECONDS = 30
DIGITS = 6
_TOLERATED_STEPS = 1
_SEED_BYTES = 20  # as long as the output of SHA-1, as RFC 4226 recommends
_ISSUER = "Countersign"


class AuthenticatorDevice(SealedRow, TimestampMixin, ThrottlingMixin, Device):
    """A person's authenticator. At most one is confirmed; another may be waiting to take its place.

    A code counts once: `last_t` only grows, by compare-and-set, so of two requests with the same code one
    succeeds. Wrong codes slow further attempts down: 1, 2, 4, 8 ... seconds, and whoever causes the delay
    has to wait for it himself, so nobody is shut out for longer than he was under attack.
    """

    SEALED = "sealed_seed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="authenticators"
    )
    name = models.CharField(max_length=64, default="Authenticator")
    sealed_seed = models.BinaryField(editable=False)
    last_t = models.BigIntegerField(default=-1, editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "confirmed"], name="authenticator_one_of_each"),
        ]

    def __str__(self) -> str:
        return self.name

    def set_new_seed(self) -> None:
        """Draw a new secret and seal it to this row. Nothing is saved."""
        self.seal(secrets.token_hex(_SEED_BYTES))

    def totp(self) -> TOTP:
        """The generator of codes, at the present time."""
        seed = bytes.fromhex(self.unsealed())
        return TOTP(seed, step=STEP_SECONDS, digits=DIGITS)

    def verify_token(self, token: str) -> bool:
        """True if this is an unused code of now, one step ago or one step ahead; it is used up then."""
        if self.wait():
            return False
        if re.fullmatch(r"[0-9]{6}", token) and self._use(int(token)):
            return True
        self.charge_failure()
        return False

    def wait(self) -> timedelta | None:
        """How long codes will still be refused because of wrong ones before; None if they will not."""
        allowed, why = ThrottlingMixin.verify_is_allowed(self)
        return None if allowed else why["locked_until"] - timezone.now()

    def charge_failure(self) -> None:
        """Count one wrong code, so that the next attempt has to wait longer."""
        AuthenticatorDevice.objects.filter(pk=self.pk).update(
            throttling_failure_count=F("throttling_failure_count") + 1,
            throttling_failure_timestamp=timezone.now(),
        )

    def forgive_failures(self) -> None:
        """Forget wrong codes, after a right one."""
        AuthenticatorDevice.objects.filter(pk=self.pk).update(
            throttling_failure_count=0, throttling_failure_timestamp=None, last_used_at=timezone.now()
        )

    def get_throttle_factor(self) -> int:
        return 1

    def secret_text(self) -> str:
        """The secret as people type it: base32."""
        return base64.b32encode(self.totp().key).decode()

    def provisioning_uri(self) -> str:
        """What the QR code says: the secret with its issuer and account, in the Key URI format."""
        label = quote(f"{_ISSUER}:{self.user.email}", safe="@:")
        query = urlencode({"secret": self.secret_text(), "issuer": _ISSUER, "digits": DIGITS})
        return f"otpauth://totp/{label}?{query}&period={STEP_SECONDS}"

    @property
    def bound_to(self) -> str:
        """What the seed is sealed to."""
        return f"authenticator:{self.pk}"

    @property
    def owner(self) -> str:
        """Whose authenticator it is."""
        return str(self.user.email)

    def _use(self, code: int) -> bool:
        totp = self.totp()
        if not totp.verify(code, tolerance=_TOLERATED_STEPS):
            return False
        used = AuthenticatorDevice.objects.filter(pk=self.pk, last_t__lt=totp.t()).update(last_t=totp.t())
        if used:
            self.forgive_failures()
        return used == 1
