"""The words that the dialect chooses from: ours, or those that the specification shows."""

import enum
from typing import Literal, get_args

OtpType = Literal["otp", "totp"]
OTP_TYPES: tuple[OtpType, ...] = get_args(OtpType)

Capability = Literal["banks", "rates", "currencies", "minimums", "wallet_config", "transaction", "payment"]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)

DURATIONS = ("one day", "one week", "one month", "one year")
STATUSES = ("fulfilled", "processing", "failed")


class EventKind(enum.StrEnum):
    """Kinds of event that have been seen; there may be others."""

    PAYMENT_CREATED = "payment created"
    PAYMENT_UPDATED = "payment updated"
    TRANSACTION_UPDATED = "transaction updated"
    DEPOSIT = "deposit"
    CONVERT = "convert"
    TRANSFER = "transfer"
    WITHDRAWAL = "withdrawal"
    ONRAMP = "onramp"
    OFFRAMP = "offramp"
