"""What a downloaded report is called."""

from datetime import UTC, datetime

from django.utils import timezone

from backoffice.reports.wanted import Wanted


def file_name(wanted: Wanted, as_of: datetime | None = None) -> str:
    """`countersign-<report>-<first day>-to-<last day>.csv`, or with the time of its content where no day is set.

    Days are of the zone that is wanted, if the report has none of its own; the time is UTC.
    """
    now = timezone.now()
    today = now.astimezone(wanted.report.zone_of_days(wanted.zone)).date()
    period = wanted.report.period(wanted.form, today)
    start, end = f"countersign-{wanted.report.name}", wanted.format.value
    if period.since is None and period.until is None:
        return f"{start}-as-of-{(as_of or now).astimezone(UTC):%Y-%m-%dT%H%MZ}.{end}"
    return f"{start}-{period.since or 'beginning'}-to-{period.until or today}.{end}"
