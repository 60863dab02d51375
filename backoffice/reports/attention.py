"""What of scheduled reports needs attention, for the System page."""

from collections.abc import Iterator

from django.conf import settings
from django.utils.translation import gettext, ngettext

from backoffice.operations.pages.system.attention import Attention
from backoffice.reports.models import late_mails


def mail_attention() -> Iterator[Attention]:
    """Mails of scheduled reports that the mail server does not take, for the System page."""
    late = late_mails().count() if settings.PUBLIC_URL else 0
    if late:
        text = ngettext(
            "{n} email of a scheduled report could not be delivered and is retried.",
            "{n} emails of scheduled reports could not be delivered and are retried.",
            late,
        )
        step = gettext("Ask the operator to check the mail server. The log of the sweeper has the reason.")
        yield Attention(text.format(n=late), step, is_urgent=False)
