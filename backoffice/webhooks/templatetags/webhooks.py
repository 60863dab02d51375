"""What other pages say of webhooks."""

from django import template

from backoffice.webhooks import selectors
from backoffice.webhooks.states import DeliveryVerification

register = template.Library()
register.simple_tag(selectors.silence_on_pages, name="silent_webhooks")
_TONES = {DeliveryVerification.VALID: "good", DeliveryVerification.UNVERIFIED: "warn"}


@register.filter
def verdict_tone(verdict: str) -> str:
    """The class that gives the badge of a verdict its colour."""
    return _TONES.get(DeliveryVerification(verdict), "bad")
