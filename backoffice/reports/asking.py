"""What was asked for, from the texts in which it is kept: an address, an export or a schedule."""

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from django.forms import ChoiceField, Form, ModelChoiceField
from django.http import QueryDict

from backoffice.accounts.models import User
from backoffice.core.filters import in_words
from backoffice.reports.catalogue import REPORTS
from backoffice.reports.errors import ExportError, NotAllowedError
from backoffice.reports.models import ExportJob, Schedule
from backoffice.reports.report import AnyReport
from backoffice.reports.wanted import Format, Wanted

Texts = Mapping[str, list[str]]


def report_for(user: User, name: str) -> AnyReport:
    """The report of this name. Raises NotAllowedError unless the person may read it."""
    report = REPORTS.get(name)
    if report is None or not report.may_be_read_by(user):
        raise NotAllowedError(f"{user} may not read this report.")
    return report


def filters_in(report: AnyReport, data: QueryDict) -> dict[str, list[str]]:
    """The texts of the report's own filters, and no others, that are set."""
    names = report.form.base_fields
    return {name: data.getlist(name) for name in names if any(data.getlist(name))}


def form_of(report: AnyReport, texts: Texts) -> Form:
    """The filters as a form that is not validated yet."""
    data = QueryDict(mutable=True)
    for name, values in texts.items():
        data.setlist(name, values)
    form: Form = report.form(data)
    return form


def filters_in_words(report: AnyReport, texts: Texts) -> list[tuple[str, str]]:
    """Label and words of each filter, as on the report's page; one that no longer makes sense as it was typed."""
    return FiltersInWords()(report, texts)


class FiltersInWords:
    """The same for any number of exports and schedules: the people whom a filter may name are read once for all."""

    def __init__(self) -> None:
        self._named: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def __call__(self, report: AnyReport, texts: Texts) -> list[tuple[str, str]]:
        form = form_of(report, texts)
        for name in texts:
            field = form.fields.get(name)
            if isinstance(field, ModelChoiceField):
                choices = self._read((report.name, name), field)
                form.fields[name] = ChoiceField(choices=choices, label=field.label)
        form.is_valid()
        order = [*form.fields, *texts]
        return [_in_words(form, name, texts[name]) for name in sorted(texts, key=order.index)]

    def _read(self, of: tuple[str, str], field: "ModelChoiceField[Any]") -> list[tuple[str, str]]:
        if of not in self._named:
            self._named[of] = [(str(one.pk), str(one)) for one in field.queryset or ()]
        return self._named[of]


def _in_words(form: Form, name: str, typed: list[str]) -> tuple[str, str]:
    if name not in form.cleaned_data:
        return name.replace("_", " ").capitalize(), ", ".join(typed)
    return str(form[name].label), in_words(form.fields[name], form.cleaned_data[name])


def wanted_by(user: User, kept: ExportJob | Schedule, filters: Texts) -> Wanted:
    """What is kept there, for this person, by the rights of now. Raises NotAllowedError, ExportError."""
    report = report_for(user, kept.report)
    form = form_of(report, filters)
    if not form.is_valid():
        words = "; ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
        raise ExportError(f"A filter no longer makes sense. {words}"[:300])
    return Wanted(
        report=report,
        user=user,
        form=form,
        zone=ZoneInfo(kept.time_zone),
        columns=report.chosen(kept.columns),
        format=Format(kept.format),
        has_mark=kept.has_mark,
    )


def wish_of(wanted: Wanted, filters: Texts) -> dict[str, Any]:
    """The same as texts, to keep."""
    chosen = [] if wanted.columns == wanted.report.columns else wanted.header
    return {
        "report": wanted.report.name,
        "filters": dict(filters),
        "columns": chosen,
        "format": wanted.format.value,
        "has_mark": wanted.has_mark,
        "time_zone": wanted.zone.key,
    }
