"""Audit log: the entries with their hashes, so that a reader can verify them without us."""

import json
from collections.abc import Iterator
from operator import attrgetter

from backoffice.accounts.models import User
from backoffice.audit.forms import EntryFilterForm
from backoffice.audit.models import Entry
from backoffice.audit.selectors import entries
from backoffice.reports.report import Column, Report, chosen_period, in_batches


def rows(_user: User, form: EntryFilterForm) -> Iterator[Entry]:
    """The entries, newest first."""
    return in_batches(entries(**form.cleaned_data), order=("-position",))


def _detail(entry: Entry) -> str:
    return json.dumps(entry.detail, sort_keys=True, ensure_ascii=False)


AUDIT_LOG: Report[Entry, EntryFilterForm] = Report(
    name="audit-log",
    title="Audit log",
    about="Who did what, to what, when and from where, with the hash of every entry.",
    permission="audit.view_entry",
    form=EntryFilterForm,
    columns=(
        Column("position", attrgetter("position")),
        Column("at", attrgetter("at")),
        Column("actor", attrgetter("actor_label")),
        Column("actor_id", attrgetter("actor_id")),
        Column("action", attrgetter("action")),
        Column("target_type", attrgetter("target_type")),
        Column("target_id", attrgetter("target_id")),
        Column("target", attrgetter("target_label")),
        Column("address", attrgetter("address")),
        Column("request_id", attrgetter("request_id")),
        Column("detail", _detail),
        Column("version", attrgetter("version")),
        Column("previous_hash", attrgetter("previous_hash")),
        Column("hash", attrgetter("hash")),
    ),
    rows=rows,
    period=chosen_period,
)
