"""What the service told, and when: now if it answers, otherwise the last time. Kept in the database for a day, so that
every process knows it, also one that has just started."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from backoffice.ledger.models import Reading
from payments_gateway import GatewayError

Value = TypeVar("Value")
KEPT = timedelta(days=1)


@dataclass(frozen=True)
class Told(Generic[Value]):
    """What the service told of something; `problem` says why it does not tell it now, if so."""

    value: Value | None = None
    at: datetime | None = None
    problem: str = ""

    @property
    def is_known(self) -> bool:
        """Whether it ever told it."""
        return self.at is not None


@dataclass(frozen=True)
class Question(Generic[Value]):
    """Something that is asked again and again: the same text for the same question, and the type of its answer."""

    text: str
    type: TypeAdapter[Value]

    def last_told(self) -> Told[Value]:
        """What the service told last, without asking it."""
        return self.read(Reading.objects.filter(pk=self.text, at__gt=timezone.now() - KEPT).first())

    def read(self, row: Reading | None) -> Told[Value]:
        """What was kept. Nothing if there is none, or if this release cannot read what another one kept."""
        if row is None:
            return Told()
        try:
            return Told(self.type.validate_json(row.value), row.at)
        except ValidationError:
            return Told()

    def told_now(self, ask: Callable[[], Value]) -> Told[Value]:
        """What the service tells now; if it does not, what it told last, and the problem. Never raises GatewayError."""
        try:
            value, at = ask(), timezone.now()
        except GatewayError as exc:
            known = self.last_told()
            return Told(known.value, known.at, problem=exc.message)
        self._keep(value, at)
        return Told(value, at)

    def _keep(self, value: Value, at: datetime) -> None:
        text = self.type.dump_json(value, exclude_none=True).decode()
        Reading.objects.filter(at__lte=at - KEPT).delete()
        Reading.objects.bulk_create(
            [Reading(question=self.text, value=text, at=at)],
            update_conflicts=True,
            unique_fields=["question"],
            update_fields=["value", "at"],
        )


def last_told_of(questions: Iterable[Question[Value]]) -> dict[str, Told[Value]]:
    """What the service told last of each of these, by its text, in one query."""
    questions = list(questions)
    rows = Reading.objects.filter(
        pk__in=[question.text for question in questions], at__gt=timezone.now() - KEPT
    )
    kept = {row.pk: row for row in rows}
    return {question.text: question.read(kept.get(question.text)) for question in questions}
