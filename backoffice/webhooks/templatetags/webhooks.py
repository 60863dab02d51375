"""Template tags of webhooks for other apps' pages."""

from django import template

from backoffice.webhooks import deliveries
from backoffice.webhooks.models import DeliveryVerification

register = template.Library()
register.simple_tag(deliveries.cached_missing_deliveries, name="missing_webhooks")
_TONES = {DeliveryVerification.VALID: "good", DeliveryVerification.UNVERIFIED: "warn"}


@register.filter
def verdict_tone(verdict: str) -> str:
    """CSS class of the badge for the result of a verification."""
    return _TONES.get(DeliveryVerification(verdict), "bad")
