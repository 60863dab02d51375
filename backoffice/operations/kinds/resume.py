"""Resume: ends a pause of all payments. Needs a second person; nothing is sent to the provider."""

from datetime import datetime
from typing import Any

from django import forms

from backoffice.core.web.formatting import local_time
from backoffice.operations.kinds.base import Facts, KindForm, LocalEffect, LocalKind, Payload, Recipient
from backoffice.operations.models.monitoring import current_pause
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

    reason = forms.CharField(
        label="Why sending may go on",
        max_length=300,
        help_text="Whoever countersigns reads it.",
        widget=forms.Textarea(attrs={"rows": 3}),
        error_messages={"required": "Say why sending may go on."},
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        self.pause = current_pause()
        if self.pause is None:
            self.add_error(None, "Sending is not paused, so there is nothing to end. Nothing was prepared.")
        return values

    def content(self) -> ResumePayload:
        if self.pause is None:
            raise ValueError("only a valid form has content")
        return ResumePayload(
            pause=self.pause.pk,
            paused_by=str(self.pause.paused_by),
            paused_at=self.pause.paused_at,
            pause_reason=self.pause.reason,
            reason=self.cleaned_data["reason"],
        )


class ResumeKind(LocalKind[ResumePayload]):
    """Ends a pause that one person started; needs a second person's approval."""

    name = "resume"
    label = "Resumption"
    plural = "Resumptions of sending"
    letter = "G"
    verb = "Let sending go on"
    permission = PAUSE
    effect = LocalEffect.RESUMES_PAYMENTS
    payload_type = ResumePayload
    form_type = ResumeForm

    def sentence(self, payload: ResumePayload) -> str:
        return f"Let sending go on, paused since {local_time(payload.paused_at)}"

    def recipient(self, payload: ResumePayload) -> Recipient:
        return Recipient("Sending", "Pause")

    def facts(self, payload: ResumePayload) -> Facts:
        return [
            ("Paused", f"{local_time(payload.paused_at)}, by {payload.paused_by}"),
            ("Because", payload.pause_reason),
            ("Why it may go on", payload.reason),
        ]

    def initial(self, payload: ResumePayload) -> dict[str, Any]:
        return {"reason": payload.reason}
