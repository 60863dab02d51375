"""What a delivery is worth."""

from django.db.models import TextChoices


class DeliveryVerification(TextChoices):
    """What its signature says. All but the first start nothing."""

    VALID = "valid", "Valid"
    INVALID = "invalid", "Invalid"
    UNSIGNED = "unsigned", "Unsigned"
    MALFORMED = "malformed", "Malformed"
    UNVERIFIED = "unverified", "Not verified"  # no key is configured to verify it with
