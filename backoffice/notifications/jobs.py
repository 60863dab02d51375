"""The sweeper's jobs of notifications: store messages of what happened, and deliver them."""

from collections.abc import Callable

from backoffice.notifications.delivery import deliver_chat_due, deliver_email_due, deliver_webhooks_due
from backoffice.notifications.recording.audit_feed import record_events_due
from backoffice.notifications.recording.occurrences import find_occurrences_due

JOBS: dict[str, Callable[[], int]] = {
    "record_events_due": record_events_due,
    "find_occurrences_due": find_occurrences_due,
    "deliver_email_due": deliver_email_due,
    "deliver_chat_due": deliver_chat_due,
    "deliver_webhooks_due": deliver_webhooks_due,
}
