"""What a request asks of a report."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import PermissionDenied
from django.forms import Form
from django.http import Http404, QueryDict

from backoffice.accounts.http import StaffRequest
from backoffice.reports.asking import filters_in, form_of, report_for
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.errors import NotAllowedError
from backoffice.reports.forms import FileForm
from backoffice.reports.report import AnyReport
from backoffice.reports.wanted import Format, Wanted


@dataclass(frozen=True)
class Asked:
    """A report with its two forms, as they were sent."""

    request: StaffRequest
    report: AnyReport
    filters: dict[str, list[str]]
    form: Any
    file: FileForm

    def is_valid(self) -> bool:
        """Whether both forms make sense."""
        return all((self.form.is_valid(), self.file.is_valid()))

    @property
    def wanted(self) -> Wanted:
        """What to make. Call only when it is valid."""
        values = self.file.cleaned_data
        return Wanted(
            report=self.report,
            user=self.request.user,
            form=self.form,
            zone=ZoneInfo(self.request.user.time_zone),
            columns=self.report.chosen(values["columns"]),
            format=Format(values["format"] or Format.CSV),
            has_mark=values["has_mark"],
        )


def asked(request: StaffRequest, name: str, data: QueryDict) -> Asked:
    """The report of this name with what was sent about it. Raises Http404, PermissionDenied."""
    report = readable(request, name)
    filters = filters_in(report, data)
    form: Form = form_of(report, filters)
    form.auto_id = f"{report.name}-%s"
    return Asked(request, report, filters, form, FileForm(data, report))


def readable(request: StaffRequest, name: str) -> AnyReport:
    """The report of this name. Raises Http404 where there is none, PermissionDenied where it is not for this person."""
    if name not in REPORTS:
        raise Http404
    try:
        return report_for(request.user, name)
    except NotAllowedError as exc:
        raise PermissionDenied from exc
