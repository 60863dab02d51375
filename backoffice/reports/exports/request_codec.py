"""Convert an export request to stored texts (URL, export, schedule) and back, checking permissions."""

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from django.forms import ChoiceField, Form, ModelChoiceField
from django.http import QueryDict
from django.utils import translation

from backoffice.accounts.models import User
from backoffice.core.web.forms import describe_value
from backoffice.reports.definitions.catalogue import REPORTS
from backoffice.reports.errors import FailureCode, ReportError, ReportNotAllowedError
from backoffice.reports.models import ExportJob, Schedule
from backoffice.reports.report import AnyReport, ExportRequest, FileFormat

FilterTexts = Mapping[str, list[str]]


def readable_report(user: User, name: str) -> AnyReport:
    """The report of this name. Raises ReportNotAllowedError unless the person may read it."""
    report = REPORTS.get(name)
    if report is None or not report.may_be_read_by(user):
        raise ReportNotAllowedError(FailureCode.REPORT_NOT_ALLOWED, person=str(user))
    return report


def filter_texts(report: AnyReport, data: QueryDict) -> dict[str, list[str]]:
    """The non-empty values of the report's own filters; other parameters are ignored."""
    names = report.form.base_fields
    return {name: data.getlist(name) for name in names if any(data.getlist(name))}


def filter_form(report: AnyReport, texts: FilterTexts) -> Form:
    """The filters as a bound form, not validated yet."""
    data = QueryDict(mutable=True)
    for name, values in texts.items():
        data.setlist(name, values)
    form: Form = report.form(data)
    return form


def describe_filters(report: AnyReport, texts: FilterTexts) -> list[tuple[str, str]]:
    """Label and displayed value of each filter; one that is no longer valid is shown as typed."""
    return FilterDescriber()(report, texts)


class FilterDescriber:
    """`describe_filters` for many exports and schedules: the choices of people are read once."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def __call__(self, report: AnyReport, texts: FilterTexts) -> list[tuple[str, str]]:
        form = filter_form(report, texts)
        for name in texts:
            field = form.fields.get(name)
            if isinstance(field, ModelChoiceField):
                choices = self._read((report.name, name), field)
                form.fields[name] = ChoiceField(choices=choices, label=field.label)
        form.is_valid()
        order = [*form.fields, *texts]
        return [_describe_filter(form, name, texts[name]) for name in sorted(texts, key=order.index)]

    def _read(self, of: tuple[str, str], field: "ModelChoiceField[Any]") -> list[tuple[str, str]]:
        if of not in self._named:
            self._named[of] = [(str(field.prepare_value(one)), str(one)) for one in field.queryset or ()]
        return self._named[of]


def _describe_filter(form: Form, name: str, typed: list[str]) -> tuple[str, str]:
    if name not in form.cleaned_data:
        return name.replace("_", " ").capitalize(), ", ".join(typed)
    return str(form[name].label), describe_value(form.fields[name], form.cleaned_data[name])


def decode_request(user: User, stored: ExportJob | Schedule, filters: FilterTexts) -> ExportRequest:
    """The stored request for this person, with their present permissions.

    Raises ReportNotAllowedError, ReportError.
    """
    report = readable_report(user, stored.report)
    form = filter_form(report, filters)
    if not form.is_valid():
        with translation.override("en"):  # it is stored
            problems = "; ".join(
                f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items()
            )
        raise ReportError(FailureCode.INVALID_FILTER, errors=problems[:270])
    return ExportRequest(
        report=report,
        user=user,
        form=form,
        zone=ZoneInfo(stored.time_zone),
        language=stored.language,
        columns=report.columns_named(stored.columns),
        format=FileFormat(stored.format),
        has_byte_order_mark=stored.has_byte_order_mark,
    )


def encode_request(export_request: ExportRequest, filters: FilterTexts) -> dict[str, Any]:
    """The request as texts that can be stored."""
    chosen = (
        []
        if export_request.columns == export_request.report.columns
        else [column.name for column in export_request.columns]
    )
    return {
        "report": export_request.report.name,
        "filters": dict(filters),
        "columns": chosen,
        "format": export_request.format.value,
        "has_byte_order_mark": export_request.has_byte_order_mark,
        "time_zone": export_request.zone.key,
        "language": export_request.language,
    }
