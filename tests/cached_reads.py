"""What has been read from the provider: forgotten, or some time old."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.utils import timezone

from backoffice.core import cached_reads
from backoffice.core.models import CachedReadRow


def forget_reads() -> None:
    CachedReadRow.objects.all().delete()


class Elapse:
    """Lets time pass for cached reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._elapsed = timedelta()
        monkeypatch.setattr(
            cached_reads, "timezone", SimpleNamespace(now=lambda: timezone.now() + self._elapsed)
        )

    def __call__(self, time: timedelta) -> None:
        self._elapsed += time
