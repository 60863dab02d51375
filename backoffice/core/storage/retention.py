"""How long the rows of each table are kept: what the list of `backoffice.retention.tables` consists of."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Model, Q, TextChoices
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Keeping(TextChoices):
    """Why a table does not grow for ever, or may."""

    PRUNED = "pruned", _("deleted after a time")
    BOUNDED = "bounded", _("does not grow with time")
    EVIDENCE = "evidence", _("kept for ever; can be archived")
    RECORD = "record", _("kept for ever: the provider's record")


@dataclass(frozen=True)
class TableRetention:
    """What becomes of the rows of one table.

    A pruned one names the setting with its days, the field with the time from which they count, and what its rows are
    on the System page; `which` are the rows that may be deleted at all. `reason` says what bounds any other.
    """

    model: type[Model]
    keeping: Keeping
    reason: str = ""
    label: "StrOrPromise" = ""
    setting: str = ""
    since: str = ""
    which: Q = field(default_factory=Q)
    cascades: tuple[type[Model], ...] = ()  # tables whose rows are deleted with these

    @property
    def name(self) -> str:
        """The table's name in the database."""
        return self.model._meta.db_table

    @property
    def kept_for(self) -> timedelta | None:
        """How long its rows are kept; None if they are not deleted, or its setting is 0."""
        days: int = getattr(settings, self.setting) if self.keeping == Keeping.PRUNED else 0
        return timedelta(days=days) if days else None


_declared: list[TableRetention] = []


def declare(tables: list[TableRetention]) -> None:
    """Make this the list that `declared_tables` returns. Called once, when Django is ready."""
    _declared[:] = tables


def declared_tables() -> list[TableRetention]:
    """What becomes of the rows of every table, in the order of the list."""
    return list(_declared)
