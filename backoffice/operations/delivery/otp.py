"""The provider's one-time codes: how long an entered one is kept, which are used up, and how managed ones are made.

A managed code is taken in two steps. The claim reserves a time step of the authenticator by compare-and-set, so two
senders never use the same code. The code itself is made right before the request.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import DatabaseError, IntegrityError, InterfaceError, connection, transaction
from django.utils.translation import gettext_noop
from pydantic import SecretStr

from backoffice.core import clock, encryption
from backoffice.core.gateway import OtpMode, otp_mode, provider_profile
from backoffice.operations.errors import OtpUsedError
from backoffice.operations.kinds.registry import AnyKind
from backoffice.operations.models.operations import Operation
from backoffice.operations.models.otp import OtpSecret, UsedOtp, end_of_step, otp_secret_in_use
from backoffice.operations.models.reason_codes import Blocker
from payments_gateway import NotSentError

_SENT_CODE_LIFETIME = timedelta(seconds=90)  # of a code that the provider sends, unless configured
_AUTHENTICATOR_PERIOD = timedelta(seconds=30)


class CodeNotReadyError(Exception):
    """No code can be made now, so nothing may be claimed; the blocker says why."""

    def __init__(self, blocker: Blocker) -> None:
        super().__init__(blocker.label)
        self.blocker = blocker
        self.parameters: dict[str, str] = {}


@dataclass(frozen=True)
class ReservedStep:
    """A time step of the stored secret that one claim may use."""

    secret: UUID
    step: int


def valid_until(now: datetime) -> datetime:
    """Until when the provider accepts a code that was entered now."""
    if settings.OTP_LIFETIME_SECONDS:
        return now + timedelta(seconds=settings.OTP_LIFETIME_SECONDS)
    profile = provider_profile()
    if profile.otp_type == "totp":
        return end_of_step(now) + timedelta(seconds=profile.otp_tolerance_seconds)
    return now + _SENT_CODE_LIFETIME


def longest_lifetime() -> timedelta:
    """The longest that an entered code may be kept."""
    if settings.OTP_LIFETIME_SECONDS:
        return timedelta(seconds=settings.OTP_LIFETIME_SECONDS)
    tolerance = timedelta(seconds=provider_profile().otp_tolerance_seconds)
    return max(_SENT_CODE_LIFETIME, _AUTHENTICATOR_PERIOD + tolerance)


def remember_entered(code: str, operation: Operation, until: datetime) -> None:
    """Record that this code is used up. Raises OtpUsedError if it was entered before and is still valid."""
    if not provider_profile().otp_single_use:
        return
    UsedOtp.objects.filter(valid_until__lte=clock.now()).delete()
    hashes = encryption.keyed_hashes(code, purpose="entered otp")
    used = UsedOtp.objects.filter(pk__in=hashes).first()
    if used is None:
        used = _insert_used(UsedOtp(hash=hashes[0], reference=operation.reference, valid_until=until))
    if used is not None:
        raise OtpUsedError(used.reference)


def _insert_used(row: UsedOtp) -> UsedOtp | None:
    """Insert the row; the one that is there already if a concurrent release entered the same code."""
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return UsedOtp.objects.get(pk=row.pk)
    return None


def check_ready(kind: AnyKind) -> None:
    """Raises CodeNotReadyError while no managed code can be made for an operation of this kind."""
    if kind.takes_otp and otp_mode() == OtpMode.MANAGED:
        _next_step(_secret())


def reserve_step(kind: AnyKind) -> ReservedStep | None:
    """Take the present step for one request, in the transaction of the claim; None if no code is made here.

    A compare-and-set decides between concurrent senders. Raises CodeNotReadyError.
    """
    if not (kind.takes_otp and otp_mode() == OtpMode.MANAGED):
        return None
    stored = _secret()
    step = _next_step(stored)
    if provider_profile().otp_single_use:
        unused = OtpSecret.objects.filter(pk=stored.pk, state=OtpSecret.State.IN_USE, last_step__lt=step)
        if unused.update(last_step=step) != 1:
            raise CodeNotReadyError(Blocker.OTP_NEXT_STEP)
    return ReservedStep(stored.pk, step)


def make_code(reserved: ReservedStep) -> SecretStr:
    """The code of a reserved step, right before the request. Raises NotSentError if the secret is gone."""
    try:
        return OtpSecret.objects.get(pk=reserved.secret).secret().code(reserved.step)
    except OtpSecret.DoesNotExist as exc:
        raise NotSentError.of(
            gettext_noop("The authenticator secret was replaced before sending began. Nothing was sent.")
        ) from exc
    except encryption.DecryptionError as exc:
        raise NotSentError.of(
            gettext_noop(
                "The authenticator secret cannot be decrypted. Nothing was sent. Contact the operator."
            )
        ) from exc
    except (DatabaseError, InterfaceError) as exc:
        raise NotSentError.of(
            gettext_noop("The database connection was lost before sending began. Nothing was sent.")
        ) from exc
    finally:
        connection.close()


def _secret() -> OtpSecret:
    stored = otp_secret_in_use()
    if stored is None:
        raise CodeNotReadyError(Blocker.OTP_SECRET_MISSING)
    return stored


def _next_step(stored: OtpSecret) -> int:
    """The present step. Raises CodeNotReadyError if its code was used or would expire before the request begins, or the
    secret cannot be decrypted.
    """
    try:
        secret = stored.secret()
    except encryption.DecryptionError as exc:
        raise CodeNotReadyError(Blocker.OTP_SECRET_UNREADABLE) from exc
    now, profile = clock.now(), provider_profile()
    step = secret.step_at(now)
    last_moment = secret.end_of(step) + timedelta(seconds=profile.otp_tolerance_seconds)
    is_used = profile.otp_single_use and step <= stored.last_step
    if is_used or now + timedelta(seconds=settings.SEND_WITHIN_SECONDS) > last_moment:
        raise CodeNotReadyError(Blocker.OTP_NEXT_STEP)
    return step
