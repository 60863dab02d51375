from django.apps import AppConfig


class ReportsConfig(AppConfig):
    """What people take away: the reports, as files."""

    name = "backoffice.reports"
    label = "reports"

    def ready(self) -> None:
        from backoffice.reports import checks as checks  # registered by being imported
