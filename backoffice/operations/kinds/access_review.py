"""Access review: two people sign off who may do what. Nothing is changed and nothing is sent."""

from typing import Any

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from backoffice.accounts.access_report import RightKind, access_rows, report_digest
from backoffice.core.web.forms import reason_field
from backoffice.operations.errors import OperationError
from backoffice.operations.kinds.base import (
    Facts,
    GroupedCode,
    KindForm,
    LocalEffect,
    LocalKind,
    Payload,
    Recipient,
)
from backoffice.operations.permissions import APPROVE_GOVERNANCE, PROPOSE
from backoffice.operations.refusals.codes import Refusal


class AccessReviewPayload(Payload):
    """The report that was reviewed, by its digest, and what the preparer found."""

    digest: str
    people: int
    rights: int
    findings: str

    def identity(self) -> dict[str, Any]:
        """Only one review may be pending."""
        return {}


class AccessReviewForm(KindForm):
    """Asks what was found; `report` is the digest of the report that the preparer has seen."""

    report = forms.CharField(max_length=64, widget=forms.HiddenInput)
    findings = reason_field(
        label=_("Findings"),
        help_text=_("What you checked, and what was changed because of it. Shown to the approver."),
        missing=_("Enter what you found."),
        max_length=1000,
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        self.rows = access_rows()
        if values.get("report") != report_digest(self.rows):
            text = gettext(
                "Rights have changed since you opened the report. Open it again, then check it again."
            )
            self.add_error(None, text)
        return values

    def content(self) -> AccessReviewPayload:
        return AccessReviewPayload(
            digest=self.cleaned_data["report"],
            people=len({row.person for row in self.rows}),
            rights=sum(row.kind != RightKind.NONE for row in self.rows),
            findings=self.cleaned_data["findings"],
        )


class AccessReviewKind(LocalKind[AccessReviewPayload]):
    """Records that two people reviewed exactly this report."""

    name = "access_review"
    label = _("Access review")
    plural = _("Access reviews")
    letter = "Z"
    verb = _("Sign off access review")
    permission = PROPOSE
    approval_permission = APPROVE_GOVERNANCE
    effect = LocalEffect.SIGNS_ACCESS_REVIEW
    content_page = "governance:reviewed"
    success_texts = (_("Signed off"), _("Two people reviewed these rights."))
    payload_type = AccessReviewPayload
    form_type = AccessReviewForm

    def sentence(self, payload: AccessReviewPayload) -> str:
        n_people = ngettext("{n} person", "{n} people", payload.people).format(n=payload.people)
        n_rights = ngettext("{n} right", "{n} rights", payload.rights).format(n=payload.rights)
        return gettext("Sign off the access review: {people}, {rights}").format(
            people=n_people, rights=n_rights
        )

    def recipient(self, payload: AccessReviewPayload) -> Recipient:
        return Recipient(gettext("Access review"), payload.digest[:8])

    def facts(self, payload: AccessReviewPayload) -> Facts:
        return [
            (gettext("People"), str(payload.people)),
            (gettext("Rights"), str(payload.rights)),
            (gettext("Findings"), payload.findings),
            (gettext("Verification code of the report"), GroupedCode(payload.digest[:16].upper())),
        ]

    def initial(self, payload: AccessReviewPayload) -> dict[str, Any]:
        return {"findings": payload.findings}


def check_report_unchanged(payload: AccessReviewPayload) -> None:
    """Raise OperationError unless the rights are still those of the report."""
    if report_digest(access_rows()) != payload.digest:
        raise OperationError(Refusal.ACCESS_CHANGED)
