"""What people type about files and schedules. The filters of a report are its own form."""

from typing import Any

from django import forms

from backoffice.accounts.models import User
from backoffice.accounts.models.user import validate_time_zone
from backoffice.reports.calendar import WEEKDAYS, Frequency, RelativePeriod
from backoffice.reports.models import Schedule
from backoffice.reports.report import AnyReport
from backoffice.reports.selectors import readers_of
from backoffice.reports.wanted import Format


class FileForm(forms.Form):
    """Which columns, in what kind of file. Nothing asked about them: all columns, as CSV.

    `chooses` says that columns were offered, so that none of them is not taken for all.
    """

    chooses = forms.BooleanField(required=False, widget=forms.HiddenInput)
    columns = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    format = forms.ChoiceField(required=False, label="File", choices=Format.choices)
    has_mark = forms.BooleanField(required=False, label="For old versions of Excel (with a byte order mark)")

    def __init__(self, data: Any, report: AnyReport) -> None:
        super().__init__(data, auto_id="file-%s")
        self.report = report
        columns: Any = self.fields["columns"]
        columns.choices = [(column.header, column.header) for column in report.columns]

    def clean(self) -> dict[str, Any]:
        """Refuse a file without columns."""
        values = self.cleaned_data
        if values["chooses"] and not values.get("columns", True):
            self.add_error("columns", "Choose at least one column.")
        return values

    @property
    def offered(self) -> list[tuple[str, str, bool]]:
        """Heading, explanation and whether it is chosen, of every column in the order of the file."""
        return [
            (column.header, column.about, column.header in self._chosen) for column in self.report.columns
        ]

    @property
    def count(self) -> int:
        """How many of the offered columns are chosen."""
        return sum(is_chosen for _, _, is_chosen in self.offered)

    @property
    def _chosen(self) -> set[str]:
        chosen = set(self["columns"].value())
        return chosen if chosen or self["chooses"].value() else set(self.report.header)


class ScheduleForm(forms.Form):
    """When, for whom, and about which days."""

    name = forms.CharField(max_length=80, help_text="Stands in the list and in the message.")
    frequency = forms.ChoiceField(label="How often", choices=Frequency.choices)
    weekday = forms.TypedChoiceField(
        label="Weekday",
        coerce=int,
        choices=list(enumerate(WEEKDAYS, start=1)),
    )
    day = forms.TypedChoiceField(
        label="Day of the month",
        coerce=int,
        choices=[(day, str(day)) for day in range(1, 32)],
        help_text="A shorter month: its last day.",
    )
    hour = forms.TypedChoiceField(
        label="At", coerce=int, initial=6, choices=[(hour, f"{hour:02}:00") for hour in range(24)]
    )
    time_zone = forms.CharField(
        max_length=64,
        validators=[validate_time_zone],
        widget=forms.TextInput(attrs={"list": "zones", "autocomplete": "off"}),
    )
    period = forms.ChoiceField(
        label="About which days", initial=RelativePeriod.YESTERDAY, choices=RelativePeriod.choices
    )
    recipients = forms.ModelMultipleChoiceField(
        User.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        help_text="Those who may read this report. Each gets a file of their own and a message with a link to it.",
        error_messages={"required": "Choose at least one person."},
    )

    def __init__(self, data: Any, *, report: AnyReport, initial: dict[str, Any]) -> None:
        super().__init__(data, initial=initial)
        recipients: Any = self.fields["recipients"]
        recipients.queryset = readers_of(report)
        period: Any = self.fields["period"]
        if report.own_zone:
            period.help_text = f"The days of this report are those of {report.own_zone}."
        if not report.has_days:
            period.choices = [(RelativePeriod.AS_IT_STANDS, RelativePeriod.AS_IT_STANDS.label)]

    @property
    def members(self) -> dict[str, Any]:
        """The columns of the schedule that are typed here. Call only on a valid form."""
        values = self.cleaned_data
        day = values["weekday"] if values["frequency"] == Frequency.WEEKLY else values["day"]
        names = ("name", "frequency", "hour", "time_zone", "period")
        return {**{name: values[name] for name in names}, "day": day}


def typed_before(schedule: Schedule) -> dict[str, Any]:
    """The form's values for a schedule that is there."""
    names = ("name", "frequency", "day", "hour", "time_zone", "period")
    weekday = schedule.day if schedule.frequency == Frequency.WEEKLY else 1
    return {
        **{name: getattr(schedule, name) for name in names},
        "weekday": weekday,
        "recipients": schedule.recipients.all(),
    }
