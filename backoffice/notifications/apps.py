from django.apps import AppConfig


class NotificationsConfig(AppConfig):
    """Notifies people, on the channels that they chose, of what waits for them and of what happened."""

    name = "backoffice.notifications"
    label = "notifications"

    def ready(self) -> None:
        from backoffice.notifications import checks as checks  # importing it registers them
        from backoffice.notifications.metrics import notification_metrics
        from backoffice.operations.monitoring.metrics import FURTHER_METRICS

        FURTHER_METRICS[self.label] = notification_metrics
