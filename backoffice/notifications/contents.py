"""The text of a message, in the reader's language: what happened, reference and kind, and a link that needs sign-in.

No amount, no name and no link with rights, unless the deployment chose that messages hold the sentence of an operation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q
from django.utils.translation import get_language, gettext, ngettext

from backoffice.core.web.formatting import zoned_time
from backoffice.notifications.events import Notice
from backoffice.notifications.models import Message
from backoffice.operations.kinds.registry import KINDS, sentence_of
from backoffice.operations.models.batches import BatchRow
from backoffice.operations.models.operations import Operation
from backoffice.operations.states import Status


@dataclass(frozen=True)
class Item:
    """One event as it is shown. `reference`, `kind` and `sentence` are empty if it concerns no operation."""

    event: str
    notice: str
    text: str
    reference: str
    kind: str
    kind_name: str
    sentence: str
    at: datetime
    time: str
    url: str

    @property
    def heading(self) -> str:
        """`W-7Q2K9F: Waits for your decision`; what happened alone without an operation."""
        if not self.reference:
            return self.text
        return gettext("{reference}: {text}").format(reference=self.reference, text=self.text)


@dataclass(frozen=True)
class Contents:
    """The events of one delivery, the newest last, in the active language."""

    items: Sequence[Item]
    more: int
    language: str
    settings_url: str  # where a person chooses; empty for a shared channel

    @property
    def subject(self) -> str:
        """One line: the event, or how many there are."""
        if len(self.items) == 1:
            return self.items[0].heading
        number = len(self.items) + self.more
        return ngettext("{count} notification", "{count} notifications", number).format(count=number)

    @property
    def lines(self) -> list[str]:
        """One line for each event, for chat."""
        lines = [f"{item.heading}{f' ({item.kind})' if item.kind else ''}\n{item.url}" for item in self.items]
        return [*lines, *([self.more_text] if self.more else [])]

    @property
    def more_text(self) -> str:
        """How many events are not listed."""
        return ngettext("and {count} more", "and {count} more", self.more).format(count=self.more)


def operations_of(messages: Sequence[Message]) -> dict[UUID, Operation]:
    """The operations that these messages concern."""
    return Operation.objects.in_bulk({one.operation for one in messages if one.operation is not None})


def _failures(messages: Sequence[Message]) -> dict[UUID, str]:
    """By batch, for those whose failed payments are reported: how many failed, in words. One query, or none."""
    batches = {one.operation for one in messages if one.notice == Notice.ROWS_FAILED}
    if not batches:
        return {}
    groups = BatchRow.objects.filter(batch__in=batches).order_by().values_list("batch")
    counts = groups.annotate(rows=Count("pk"), failed=Count("pk", filter=Q(operation__status=Status.FAILED)))
    return {
        batch: ngettext(
            "{failed} of {rows} payment failed", "{failed} of {rows} payments failed", rows
        ).format(failed=failed, rows=rows)
        for batch, rows, failed in counts
    }


def contents_of(
    messages: Sequence[Message],
    operations: Mapping[UUID, Operation],
    *,
    listed: int,
    settings_url: str,
    with_sentences: bool,
) -> Contents:
    """The text of these messages, in the active language and time zone: the first `listed`, and the rest as a count."""
    shown = sorted(messages, key=lambda one: (one.at, one.pk))[:listed]
    failures = _failures(shown)
    items = []
    for one in shown:
        operation = operations.get(one.operation) if one.operation else None
        item = _item(one, operation, with_sentences=with_sentences)
        if one.notice == Notice.ROWS_FAILED and one.operation in failures:
            item = replace(item, text=failures[one.operation])
        items.append(item)
    return Contents(items, len(messages) - len(items), get_language() or settings.LANGUAGE_CODE, settings_url)


def _item(message: Message, operation: Operation | None, *, with_sentences: bool) -> Item:
    kind = KINDS.get(operation.kind) if operation else None
    return Item(
        event=message.event,
        notice=message.notice,
        text=str(Notice(message.notice).label) if message.notice in Notice else message.notice,
        reference=operation.reference if operation else "",
        kind=str(kind.label) if kind else "",
        kind_name=operation.kind if operation else "",
        sentence=sentence_of(operation) if operation and with_sentences else "",
        at=message.at,
        time=zoned_time(message.at),
        url=f"{settings.PUBLIC_URL}{message.path}",
    )
