"""The sweeper's jobs of notifications: store messages of what happened, and deliver them."""

from backoffice.notifications.audit_feed import record_events_due
from backoffice.notifications.delivery import deliver_chat_due, deliver_email_due, deliver_webhooks_due
from backoffice.notifications.occurrences import find_occurrences_due

JOBS = {
    "record_events_due": record_events_due,
    "find_occurrences_due": find_occurrences_due,
    "deliver_email_due": deliver_email_due,
    "deliver_chat_due": deliver_chat_due,
    "deliver_webhooks_due": deliver_webhooks_due,
}
