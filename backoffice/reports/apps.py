from django.apps import AppConfig


class ReportsConfig(AppConfig):
    """What people take away: the reports, as files."""

    name = "backoffice.reports"
    label = "reports"
