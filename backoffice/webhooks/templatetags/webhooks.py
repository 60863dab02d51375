"""What other pages show of webhooks."""

from django import template

from backoffice.webhooks import deliveries
from backoffice.webhooks.models import DeliveryVerification

register = template.Library()
register.simple_tag(deliveries.cached_missing_deliveries, name="missing_webhooks")
_TONES = {DeliveryVerification.VALID: "good", DeliveryVerification.UNVERIFIED: "warn"}


@register.filter
def verdict_tone(verdict: str) -> str:
    """The class that gives the badge of a verdict its colour."""
    return _TONES.get(DeliveryVerification(verdict), "bad")
