"""Read-through cache of provider reads, kept in the database for a day so that every process shares it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from django.utils import timezone
from pydantic import TypeAdapter, ValidationError

from backoffice.core.models import CachedReadRow
from payments_gateway import GatewayError

Value = TypeVar("Value")
KEPT_FOR = timedelta(days=1)


@dataclass(frozen=True)
class CachedValue(Generic[Value]):
    """The last value read and when; `problem` says why it could not be refreshed, if so."""

    value: Value | None = None
    at: datetime | None = None
    problem: str = ""

    @property
    def is_known(self) -> bool:
        """Whether any value is stored."""
        return self.at is not None


@dataclass(frozen=True)
class CachedRead(Generic[Value]):
    """One read whose last result is kept: `text` is the key of the cache, `type` the type of the value."""

    text: str
    type: TypeAdapter[Value]

    def last_told(self) -> CachedValue[Value]:
        """The last value read, without asking the provider."""
        return self.read(CachedReadRow.objects.filter(pk=self.text, at__gt=timezone.now() - KEPT_FOR).first())

    def read(self, row: CachedReadRow | None) -> CachedValue[Value]:
        """The stored value; an empty one if there is no row, or if this release cannot parse what another
        release stored.
        """
        if row is None:
            return CachedValue()
        try:
            return CachedValue(self.type.validate_json(row.value), row.at)
        except ValidationError:
            return CachedValue()

    def told_now(self, ask: Callable[[], Value]) -> CachedValue[Value]:
        """Read from the provider now and store the result. If that fails, the last value read and the
        problem.

        Never raises GatewayError.
        """
        try:
            value, at = ask(), timezone.now()
        except GatewayError as exc:
            known = self.last_told()
            return CachedValue(known.value, known.at, problem=exc.message)
        self._keep(value, at)
        return CachedValue(value, at)

    def _keep(self, value: Value, at: datetime) -> None:
        text = self.type.dump_json(value, exclude_none=True).decode()
        CachedReadRow.objects.filter(at__lte=at - KEPT_FOR).delete()
        CachedReadRow.objects.bulk_create(
            [CachedReadRow(question=self.text, value=text, at=at)],
            update_conflicts=True,
            unique_fields=["question"],
            update_fields=["value", "at"],
        )


def cached_values(questions: Iterable[CachedRead[Value]]) -> dict[str, CachedValue[Value]]:
    """The last value of each of these reads, by its text, in one query."""
    questions = list(questions)
    rows = CachedReadRow.objects.filter(
        pk__in=[question.text for question in questions], at__gt=timezone.now() - KEPT_FOR
    )
    kept = {row.pk: row for row in rows}
    return {question.text: question.read(kept.get(question.text)) for question in questions}
