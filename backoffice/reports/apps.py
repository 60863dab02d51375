"""The reports app, and its check for `manage.py check --deploy`."""

from collections.abc import Iterable
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Warning, register
from django.utils.translation import gettext

from backoffice.reports.errors import failure_sentence, obstacle_sentence


@register(deploy=True)
def check_public_url(**_of_django: Any) -> Iterable[CheckMessage]:
    """Without a public URL, emails of schedules could not link to their file, so none are sent."""
    if settings.PUBLIC_URL:
        return []
    return [
        Warning(
            "COUNTERSIGN_PUBLIC_URL is not set: no schedule can be created, and existing schedules send no emails.",
            hint="Set it to the https address of this installation.",
            id="reports.W001",
        )
    ]


class ReportsConfig(AppConfig):
    """Reports, their export as files, and scheduled reports."""

    name = "backoffice.reports"
    label = "reports"

    def ready(self) -> None:
        from backoffice.audit.models import SENTENCES
        from backoffice.operations.pages.system.attention import FURTHER_ATTENTION
        from backoffice.reports.attention import mail_attention

        FURTHER_ATTENTION[self.label] = mail_attention
        SENTENCES["failure"] = failure_sentence
        SENTENCES["not_sent"] = lambda missed: "; ".join(map(obstacle_sentence, missed)) or gettext("none")
