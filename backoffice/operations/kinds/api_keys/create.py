"""Create an API key, in either way of the specification (POST /user/api-key, or POST /auth/api-key)."""

from datetime import datetime
from typing import Any, Literal

from django import forms
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from pydantic import SecretStr

from backoffice.core.gateway import FORM_CHECK_TIMEOUT
from backoffice.core.web.formatting import local_time_of_iso
from backoffice.operations.kinds.api_keys.base import (
    KEYS_UNREADABLE,
    RotationForm,
    available_scopes,
    describe_scope,
    expiry_of,
    list_keys,
    rotation_facts,
    scopes_of_own_keys,
    translated_scope,
)
from backoffice.operations.kinds.base import ChangeKind, Facts, Payload, Recipient, SendReceipt
from payments_gateway import CreatedKey, GatewayError, KeyInfo, KeyRequest, PaymentsGateway

CreationMethod = Literal["named", "full"]
NAME_MAX = 120
MAX_LIFETIME = {"days": 3650, "months": 120}
_METHODS = [
    ("named", _("Named key with scope and expiry")),
    ("full", _("Full-access key")),
]
_UNITS = [("days", _("days")), ("months", _("months"))]
_ALL_RIGHTS = describe_scope("Master")


class ApiKeyCreatePayload(Payload):
    """The key to create. `keys_before` (short hashes) show which listed key is the new one."""

    OBSERVED = frozenset({"keys_before"})

    method: CreationMethod
    key_name: str = ""
    scope: str = ""
    scope_text: str = ""
    expires_in: int | None = None
    expires_unit: Literal["", "days", "months"] = ""
    keys_before: tuple[str, ...] = ()
    rotation: str = ""


class ApiKeyCreateForm(RotationForm):
    """Asks which way to create it, and for a named key its name, scope and expiry."""

    method = forms.ChoiceField(label=_("Key type"), choices=_METHODS, initial="named")
    key_name = forms.CharField(
        label=_("Name"),
        required=False,
        max_length=NAME_MAX,
        help_text=_("Must be unique in the provider's list: the new key is matched by its name."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scope = forms.ChoiceField(label=_("Permissions"), required=False)
    expires_in = forms.IntegerField(
        label=_("Expires after"),
        required=False,
        min_value=1,
        help_text=_("If empty, the provider decides; the key may never expire."),
    )
    expires_unit = forms.ChoiceField(label=_("Unit"), choices=_UNITS, required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scopes = available_scopes()
        self.keys_before: tuple[str, ...] = ()
        scope: Any = self.fields["scope"]
        scope.choices = [
            ("", gettext("Select permissions")),
            *((name, translated_scope(text)) for name, text in self.scopes.items()),
        ]

    def clean_key_name(self) -> str:
        """Printable text only: the name is shown in lists, logs and files."""
        name = str(self.cleaned_data["key_name"])
        if not name.isprintable():
            raise forms.ValidationError(gettext("Use one line of printable characters."))
        return name

    def clean(self) -> dict[str, Any]:
        """Check what a named key needs, and read the existing keys."""
        values = super().clean() or self.cleaned_data
        if values.get("method") == "named":
            self._check_named(values)
        if not self.errors:
            self._read_keys(values)
        return values

    def content(self) -> ApiKeyCreatePayload:
        values = self.cleaned_data
        if values["method"] == "full":
            return ApiKeyCreatePayload(
                method="full",
                scope_text=_ALL_RIGHTS,
                keys_before=self.keys_before,
                rotation=values["rotation"],
            )
        return ApiKeyCreatePayload(
            method="named",
            key_name=values["key_name"],
            scope=values["scope"],
            scope_text=self.scopes[values["scope"]],
            expires_in=values["expires_in"],
            expires_unit=values["expires_unit"] if values["expires_in"] else "",
            keys_before=self.keys_before,
            rotation=values["rotation"],
        )

    def is_needed(self, name: str) -> bool:
        """Also what a named key needs."""
        is_named = self["method"].value() == "named"
        return super().is_needed(name) or (is_named and name in {"key_name", "scope"})

    def _check_named(self, values: dict[str, Any]) -> None:
        required = {"key_name": gettext("Enter a name for the key."), "scope": gettext("Select permissions.")}
        for name, message in required.items():
            if name in values and not values[name]:
                self.add_error(name, message)
        unit, number = values.get("expires_unit"), values.get("expires_in")
        if number and not unit:
            self.add_error("expires_unit", gettext("Select days or months."))
        elif number and number > MAX_LIFETIME[str(unit)]:
            self.add_error("expires_in", _max_lifetime_text(str(unit)))

    def _read_keys(self, values: dict[str, Any]) -> None:
        try:
            listed = list_keys(patience=FORM_CHECK_TIMEOUT)
        except GatewayError:
            self.add_error("key_name" if values["method"] == "named" else "method", str(KEYS_UNREADABLE))
            return
        self.keys_before = tuple(sorted(key.short_hash for key in listed))
        if values["method"] == "named" and values["key_name"] in {key.name for key in listed}:
            self.add_error(
                "key_name", gettext("The provider already lists a key with this name. Enter another name.")
            )


class ApiKeyCreateKind(ChangeKind[ApiKeyCreatePayload]):
    """Needs the one-time code. The key is encrypted for the releasing user and stored nowhere else."""

    name = "api_key_create"
    label = _("New API key")
    plural = _("New API keys")
    letter = "K"
    verb = _("Create API key")
    payload_type = ApiKeyCreatePayload
    form_type = ApiKeyCreateForm
    takes_otp = True
    excluded_from_bulk = True

    def sentence(self, payload: ApiKeyCreatePayload) -> str:
        if payload.method == "full":
            return gettext("Create an API key with full access")
        return gettext("Create API key “{name}”: {permissions}").format(
            name=payload.key_name, permissions=_lower_first(translated_scope(payload.scope_text))
        )

    def recipient(self, payload: ApiKeyCreatePayload) -> Recipient:
        return Recipient(payload.key_name or gettext("Full-access key"), translated_scope(payload.scope_text))

    def facts(self, payload: ApiKeyCreatePayload) -> Facts:
        path = "/user/api-key" if payload.method == "named" else "/auth/api-key"
        return [
            (gettext("Name"), payload.key_name or gettext("Set by the provider")),
            (gettext("Permissions"), translated_scope(payload.scope_text)),
            (gettext("Key expires"), _expiry_text(payload)),
            (gettext("Request"), f"POST {path}"),
            (gettext("Existing keys"), str(len(payload.keys_before))),
            *rotation_facts(payload.rotation),
        ]

    def initial(self, payload: ApiKeyCreatePayload) -> dict[str, Any]:
        return payload.model_dump(
            include={"method", "key_name", "scope", "expires_in", "expires_unit", "rotation"}
        )

    def cautions(self, payload: ApiKeyCreatePayload) -> list[str]:
        if payload.scope_text != _ALL_RIGHTS:
            return []
        return [gettext("This key gives full access: it can move all money, and create and delete API keys.")]

    def send(
        self, gateway: PaymentsGateway, payload: ApiKeyCreatePayload, otp: SecretStr | None
    ) -> SendReceipt:
        created = (
            gateway.api_keys.create(otp=otp)
            if payload.method == "full"
            else gateway.api_keys.generate(_request(payload), otp=otp)
        )
        return SendReceipt(is_final=True, result=_result(payload, created), secret=created.key)

    def is_done(self, gateway: PaymentsGateway, payload: ApiKeyCreatePayload) -> bool:
        """Whether the list has the key; if it has no name, whether exactly one new key is unaccounted for."""
        return _find_created_key(payload, gateway.api_keys.list()) is not None

    def fetch_details(self, gateway: PaymentsGateway, payload: ApiKeyCreatePayload) -> dict[str, str]:
        """The details of the key that the answer did not include, from the list of keys."""
        return details_from_list(payload, gateway.api_keys.list())

    def outcome_facts(self, payload: ApiKeyCreatePayload, result: dict[str, str]) -> Facts:
        labels = {
            "name": gettext("API key"),
            "short_hash": gettext("Short hash"),
            "scope": gettext("Permissions"),
            "expires": gettext("Key expires"),
        }
        shown = {
            **result,
            "scope": translated_scope(result.get("scope", "")),
            "expires": local_time_of_iso(result.get("expires", "")),
        }
        return [(label, shown[name]) for name, label in labels.items() if shown.get(name)]


def _request(payload: ApiKeyCreatePayload) -> KeyRequest:
    return KeyRequest(
        name=payload.key_name,
        scope=payload.scope,
        expires_in_days=payload.expires_in if payload.expires_unit == "days" else None,
        expires_in_months=payload.expires_in if payload.expires_unit == "months" else None,
    )


def _result(payload: ApiKeyCreatePayload, created: CreatedKey) -> dict[str, str]:
    """The result to store and show: everything but the key itself. The list completes empty values later."""
    return {
        "name": payload.key_name,
        "short_hash": "",
        "scope": payload.scope_text,
        "expires": _iso_or_empty(created.expires),
    }


def details_from_list(payload: ApiKeyCreatePayload, listed: list[KeyInfo]) -> dict[str, str]:
    """The list's details of the new key; nothing if it cannot be identified."""
    key = _find_created_key(payload, listed)
    if key is None:
        return {}
    return {
        "name": _printable(key.name),
        "short_hash": _printable(key.short_hash),
        "expires": _iso_or_empty(expiry_of(key)),
    }


def _find_created_key(payload: ApiKeyCreatePayload, listed: list[KeyInfo]) -> KeyInfo | None:
    """The only listed key that is new and can be this one."""
    explained = {*payload.keys_before, *scopes_of_own_keys()}
    new = [key for key in listed if key.short_hash not in explained]
    if payload.method == "named":
        new = [key for key in new if key.name == payload.key_name]
    return new[0] if len(new) == 1 else None


def _expiry_text(payload: ApiKeyCreatePayload) -> str:
    if payload.expires_in is None:
        return gettext("Set by the provider")
    number = payload.expires_in
    if payload.expires_unit == "days":
        text = ngettext("{n} day after creation", "{n} days after creation", number)
    else:
        text = ngettext("{n} month after creation", "{n} months after creation", number)
    return text.format(n=number)


def _max_lifetime_text(unit: str) -> str:
    most = MAX_LIFETIME[unit]
    if unit == "days":
        return ngettext("Enter at most {n} day.", "Enter at most {n} days.", most).format(n=most)
    return ngettext("Enter at most {n} month.", "Enter at most {n} months.", most).format(n=most)


def _printable(text: str) -> str:
    """Removes characters that a database may refuse: a failed insert would lose the key."""
    return "".join(letter for letter in text if letter.isprintable())[:NAME_MAX]


def _iso_or_empty(moment: datetime | None) -> str:
    return moment.isoformat() if moment else ""


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
