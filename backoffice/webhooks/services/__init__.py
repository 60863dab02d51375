"""What becomes of a delivery: it is kept, and, if the service signed it, the service is read again."""

from backoffice.webhooks.services.looking import look_again, look_due
from backoffice.webhooks.services.receiving import receive_delivery

__all__ = ["look_again", "look_due", "receive_delivery"]
