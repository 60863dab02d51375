"""Resume: ends a pause of all payments. Needs a second person. It is not sent itself, but what was released is."""

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext, ngettext, pgettext
from django.utils.translation import gettext_lazy as _

from backoffice.core.web.formatting import local_time, zoned_time
from backoffice.core.web.forms import reason_field
from backoffice.operations.kinds.base import Facts, KindForm, LocalEffect, LocalKind, Payload, Recipient
from backoffice.operations.models.monitoring import current_pause
from backoffice.operations.models.operations import Release
from backoffice.operations.permissions import PAUSE


class ResumePayload(Payload):
    """Exactly one pause, and why it may end."""

    pause: int
    paused_by: str
    paused_at: datetime
    pause_reason: str
    reason: str

    def identity(self) -> dict[str, Any]:
        """Only one operation to end a pause may be pending, whatever reason it gives."""
        return {"pause": self.pause}


class ResumeForm(KindForm):
    """Asks for the reason; it always ends the current pause."""

    reason = reason_field(
        label=_("Reason for resuming"),
        help_text=_("Shown to the approver."),
        missing=_("Enter the reason for resuming payments."),
        max_length=300,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.pause = current_pause()
        if self.pause is None:
            self.fields["reason"].help_text = gettext("Payments are not paused: there is nothing to resume.")

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if self.pause is None:
            self.add_error(None, gettext("Payments are not paused. Nothing was prepared."))
        return values

    def content(self) -> ResumePayload:
        if self.pause is None:
            raise ValueError("only a valid form has content")
        return ResumePayload(
            pause=self.pause.pk,
            paused_by=self.pause.by,
            paused_at=self.pause.paused_at,
            pause_reason=self.pause.why,
            reason=self.cleaned_data["reason"],
        )


class ResumeKind(LocalKind[ResumePayload]):
    """Ends a pause of all payments, whoever started it; needs a second person's approval."""

    name = "resume"
    label = _("Resumption")
    plural = _("Resumptions")
    letter = "G"
    verb = _("Resume payments")
    permission = PAUSE
    effect = LocalEffect.RESUMES_PAYMENTS
    payload_type = ResumePayload
    form_type = ResumeForm

    def sentence(self, payload: ResumePayload) -> str:
        return gettext("Resume payments, paused since {time}").format(time=zoned_time(payload.paused_at))

    def recipient(self, payload: ResumePayload) -> Recipient:
        return Recipient(gettext("Payments"), pgettext("payments", "Paused"))

    def facts(self, payload: ResumePayload) -> Facts:
        return [
            (
                gettext("Pause"),
                gettext("{time}, by {person}").format(
                    time=local_time(payload.paused_at), person=payload.paused_by
                ),
            ),
            (gettext("Reason for the pause"), payload.pause_reason),
            (gettext("Reason for resuming"), payload.reason),
        ]

    def initial(self, payload: ResumePayload) -> dict[str, Any]:
        return {"reason": payload.reason}

    def cautions(self, payload: ResumePayload) -> list[str]:
        """How many operations would be sent without a further order; a resumption expires older releases."""
        now = timezone.now()
        oldest = now - timedelta(minutes=settings.RELEASE_LIFETIME_MINUTES)
        of_batch = "operation__batch_row__batch__batch"
        is_stopped = Q(**{f"{of_batch}__paused_at__isnull": False}) | Q(
            **{f"{of_batch}__cancelled_at__isnull": False}
        )
        waiting = Release.objects.filter(expires_at__gt=now, released_at__gt=oldest)
        released = waiting.exclude(is_stopped).count()
        if not released:
            return []
        text = ngettext(
            "{count} operation was released and not sent. It is sent as soon as payments are resumed, unless its "
            "release expires first. If it must not be sent, cancel it before that.",
            "{count} operations were released and not sent. They are sent as soon as payments are resumed, unless "
            "their release expires first. If some must not be sent, cancel them before that.",
            released,
        )
        return [text.format(count=released)]
