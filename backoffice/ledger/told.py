"""What the service told, and when: now if it answers, otherwise the last time. Remembered by this process only."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from django.core.cache import cache
from django.utils import timezone

from payments_gateway import GatewayError

Value = TypeVar("Value")
_KEPT_SECONDS = 24 * 60 * 60


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


def last_told(key: str) -> Told[Value]:
    """What the service told last, without asking it."""
    known: Told[Value] | None = cache.get(_named(key))
    return known or Told()


def told_now(key: str, ask: Callable[[], Value]) -> Told[Value]:
    """What the service tells now; if it does not, what it told last, and the problem. Never raises GatewayError."""
    try:
        told = Told(ask(), timezone.now())
    except GatewayError as exc:
        known: Told[Value] = last_told(key)
        return Told(known.value, known.at, problem=exc.message)
    cache.set(_named(key), told, _KEPT_SECONDS)
    return told


def _named(key: str) -> str:
    return f"told:{key}"
