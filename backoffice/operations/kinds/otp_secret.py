"""Authenticator secret: from which Countersign makes the provider's one-time codes by itself. Nothing is sent."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from backoffice.core import clock, encryption
from backoffice.core.gateway import OtpMode, otp_mode
from backoffice.operations.kinds.base import (
    Facts,
    GroupedCode,
    KindForm,
    LocalEffect,
    LocalKind,
    Payload,
    Recipient,
)
from backoffice.operations.models.otp import TotpSecret, TotpSecretError, otp_secret_in_use
from backoffice.operations.permissions import PROPOSE

STORE, REMOVE = "store", "remove"


class OtpSecretPayload(Payload):
    """The fingerprint of the secret to use, empty to use none; how its codes are made; and what it replaces."""

    fingerprint: str = ""
    algorithm: str = ""
    digits: int = 0
    period: int = 0
    replaces: str = ""


class OtpSecretForm(KindForm):
    """Asks for the secret once. The review carries it encrypted, bound to this submission."""

    secret_fields: ClassVar[tuple[str, ...]] = ("secret", "code", "sealed")

    change = forms.ChoiceField(
        label=_("Change"),
        choices=[(STORE, _("Store an authenticator secret")), (REMOVE, _("Remove the stored secret"))],
        initial=STORE,
    )
    secret = forms.CharField(
        label=_("Authenticator secret"),
        required=False,
        max_length=500,
        help_text=_(
            "The letters and digits that the provider shows when an authenticator is set up, or its otpauth:// "
            "address. Stored encrypted and never shown again."
        ),
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    code = forms.CharField(
        label=_("Current code of this authenticator"),
        required=False,
        max_length=16,
        help_text=_("Shows that the secret was entered correctly. The code is not sent to the provider."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "numeric", "spellcheck": "false"}),
    )
    sealed = forms.CharField(required=False, max_length=2000, widget=forms.HiddenInput)

    def full_clean(self) -> None:
        """Check the form, then replace what was typed by its encrypted form, so that no page shows it."""
        self.totp_secret: TotpSecret | None = None
        super().full_clean()
        if self.is_bound:
            self.data = {**dict(self.data.items()), "secret": "", "code": "", "sealed": self._sealed()}

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        in_use = otp_secret_in_use()
        self.replaces = in_use.fingerprint if in_use else ""
        if values.get("change") == STORE:
            self._read_secret(values)
        elif not self.replaces:
            self.add_error("change", gettext("No secret is stored. Nothing was prepared."))
        return values

    def _read_secret(self, values: dict[str, Any]) -> None:
        if values.get("sealed") and not values.get("secret"):
            self.totp_secret = self._unsealed(values["sealed"])
        if self.totp_secret is not None:
            return
        try:
            secret = TotpSecret.parse(values.get("secret", ""))
        except TotpSecretError as exc:
            self.add_error("secret", str(exc))
            return
        if secret.is_code_at(values.get("code", ""), clock.now()):
            self.totp_secret = secret
        else:
            self.add_error(
                "code",
                gettext(
                    "This is not the current code for this secret. Nothing was prepared. Check the clock of the "
                    "device, then enter both again."
                ),
            )

    def _sealed(self) -> str:
        if self.totp_secret is None:
            return ""
        return encryption.encrypt(self.totp_secret.address(), bound_to=self._bound_to).hex()

    def _unsealed(self, sealed: str) -> TotpSecret | None:
        try:
            return TotpSecret.parse(encryption.decrypt(bytes.fromhex(sealed), bound_to=self._bound_to))
        except (ValueError, encryption.DecryptionError):
            return None

    @property
    def _bound_to(self) -> str:
        return f"otp-secret-form:{self.submission}"

    def content(self) -> OtpSecretPayload:
        secret = self.totp_secret
        if secret is None:
            return OtpSecretPayload(replaces=self.replaces)
        return OtpSecretPayload(
            fingerprint=secret.fingerprint(),
            algorithm=secret.algorithm,
            digits=secret.digits,
            period=secret.period,
            replaces=self.replaces,
        )


class OtpSecretKind(LocalKind[OtpSecretPayload]):
    """Puts a secret into use, or removes it; needs a second person's approval."""

    name = "otp_secret"
    label = _("Authenticator secret")
    plural = _("Authenticator secrets")
    letter = "O"
    verb = _("Change authenticator secret")
    permission = PROPOSE
    effect = LocalEffect.CHANGES_AUTHENTICATOR
    payload_type = OtpSecretPayload
    form_type = OtpSecretForm

    def sentence(self, payload: OtpSecretPayload) -> str:
        if not payload.fingerprint:
            return gettext("Remove the authenticator secret of the provider")
        return gettext("Store the authenticator secret of the provider")

    def recipient(self, payload: OtpSecretPayload) -> Recipient:
        return Recipient(gettext("Provider's one-time codes"), payload.fingerprint or payload.replaces)

    def facts(self, payload: OtpSecretPayload) -> Facts:
        replaced = GroupedCode(payload.replaces) if payload.replaces else gettext("None")
        if not payload.fingerprint:
            return [(gettext("Removed fingerprint"), replaced)]
        codes = gettext("{digits} digits, new every {period} seconds ({algorithm})").format(
            digits=payload.digits, period=payload.period, algorithm=payload.algorithm
        )
        return [
            (gettext("Fingerprint"), GroupedCode(payload.fingerprint)),
            (gettext("Codes"), codes),
            (gettext("Replaced fingerprint"), replaced),
            (
                gettext("Checked"),
                gettext("The code entered matched this secret when the operation was prepared."),
            ),
        ]

    def initial(self, payload: OtpSecretPayload) -> dict[str, Any]:
        return {"change": STORE if payload.fingerprint else REMOVE}

    def cautions(self, payload: OtpSecretPayload) -> list[str]:
        if payload.fingerprint:
            return [
                gettext(
                    "Countersign then generates the codes for payments; no person enters them. Compare the "
                    "fingerprint with the preparer."
                )
            ]
        if otp_mode() == OtpMode.MANAGED:
            return [gettext("Without a stored secret, nothing that needs a one-time code is sent.")]
        return []
