"""How long what grows is kept, as the System page shows it. Each app adds its rules to the list when it is ready."""

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class RetentionRule:
    """What is kept, and for how long in words. A function, if that depends on a setting."""

    what: Promise | str
    kept: Promise | str | Callable[[], str]

    @property
    def period(self) -> str:
        return self.kept() if callable(self.kept) else str(self.kept)


RETENTION_RULES: list[RetentionRule] = [
    RetentionRule(_("Operations, approvals, attempts, audit log"), _("For good")),
    RetentionRule(_("Reports of processes"), _("1 day")),
    RetentionRule(_("Counts of the provider's responses, by minute"), _("1 day, then added up")),
]
