"""What a downloaded report is called."""

from datetime import UTC
from typing import Any

from django.utils import timezone

from backoffice.reports.report import Filters, Report


def file_name(report: Report[Any, Filters], form: Filters) -> str:
    """`countersign-<report>-<first day>-to-<last day>.csv`, or with the time of the export where no day is set.

    Days are of the current time zone, the time is UTC.
    """
    today = timezone.localdate()
    period = report.period(form, today)
    if period.since is None and period.until is None:
        return f"countersign-{report.name}-as-of-{timezone.now().astimezone(UTC):%Y-%m-%dT%H%MZ}.csv"
    return f"countersign-{report.name}-{period.since or 'beginning'}-to-{period.until or today}.csv"
